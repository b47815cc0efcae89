-- Rows that are not the first in their block.
select count(*) from riops.{table} where split_part(trim(both '()' from ctid::text), ',', 2) <> '1'
