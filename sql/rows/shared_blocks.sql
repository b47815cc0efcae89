-- Rows that are not the first of their block.
select count(*) from riops.{table} where split_part(trim(both '()' from ctid::text), ',', 2) <> '1'
