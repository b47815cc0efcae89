-- In the list of results the arrays are taken apart side by side; in `from` each would be copied into
-- a list of its own first.
insert into riops.{table} (id, f1, f2, f3, f4)
select unnest($1), unnest($2), unnest($3), unnest($4), unnest($5)
