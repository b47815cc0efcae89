select 1 from (values (1::bigint, 1::bigint)) as generated (mykey, scratch) order by {order}
