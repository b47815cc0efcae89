create {unlogged}table {schema}.pgbench_accounts_{number}
  partition of {schema}.pgbench_accounts for values {values}{fillfactor}{tablespace}
