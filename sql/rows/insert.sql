-- One batch: every {batches}th key from {first} on, sorted only within the batch. OFFSET 0 prevents the
-- planner from evaluating random() again for the sort.
insert into riops.{table} (mykey, scratch, filler)
select mykey, scratch, ''
  from (select mykey, floor(random() * ({rows} + 1))::bigint as scratch
          from generate_series({first}::bigint, {rows}::bigint, {batches}::bigint) as mykey
        offset 0) as generated
 order by {order}
