-- Number of rows of one batch.
select count(*) from riops.{table} where id between {first} and {last}
