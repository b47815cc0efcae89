-- Inserts `rows` rows, starting at `first_id`, with one statement and one array per column. The texts are
-- hexadecimal digits.
create procedure load_batch(first_id bigint, rows bigint, inout loaded bigint)
language plpgsql as $procedure$
declare
  ids int[];
  f1s text[];
  f2s text[];
  f3s text[];
  f4s text[];
begin
  select array_agg(id::int), array_agg({text}), array_agg({text}), array_agg({text}), array_agg({text})
    into ids, f1s, f2s, f3s, f4s
    from generate_series(first_id, first_id + rows - 1) as id;
  insert into riops.{table} (id, f1, f2, f3, f4)
  select unnest(ids), unnest(f1s), unnest(f2s), unnest(f3s), unnest(f4s);
  get diagnostics loaded = row_count;
end
$procedure$
