-- The physical order of a table, from a sample of its keys: the rows found, the rank correlation of the keys and
-- the places of their rows, and the share of keys whose row is in the same block as the row of the next key.
with found as (
  select one.{key} as key, one.ctid as place,
         (one.ctid::text::point)[0] = (next.ctid::text::point)[0] as together
    from unnest('{{keys}}'::bigint[]) as wanted(key)
    join {table} as one on one.{key} = wanted.key
    left join {table} as next on next.{key} = wanted.key + 1
), ranked as (
  select together, rank() over (order by key) as key_rank, rank() over (order by place) as place_rank
    from found
)
select count(*), corr(key_rank, place_rank), avg(together::int) from ranked
