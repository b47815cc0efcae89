-- The transaction that wrote the current version of a row.
select id, id, xmin::text::bigint from {table} where id between {first} and {last}
