-- In the select list the arrays are expanded in lockstep; in FROM each of them would be materialized
-- first.
insert into riops.{table} (id, f1, f2, f3, f4)
select unnest($1), unnest($2), unnest($3), unnest($4), unnest($5)
