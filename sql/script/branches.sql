create {unlogged}table {schema}.pgbench_branches
  (bid int not null, bbalance int, filler char(88)){fillfactor}{tablespace}
