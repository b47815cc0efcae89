-- Number of transactions that have started so far, number of transactions since the oldest snapshot, which VACUUM must respect,
-- and the holder of this snapshot. The snapshots of VACUUM itself do not count.
select txid_snapshot_xmax(txid_current_snapshot()), held.transactions, held.holder
  from (select age(backend_xmin), coalesce(nullif(application_name, ''), backend_type) || coalesce(' (' || state || ')', '')
          from pg_stat_activity
         where pid <> pg_backend_pid() and backend_xmin is not null and backend_type <> 'autovacuum worker'
           and (datname = current_database() or backend_type = 'walsender')
         union all
        select age(xmin), 'the replication slot ' || slot_name from pg_replication_slots where xmin is not null
         union all
        select age(transaction), 'the prepared transaction ' || gid from pg_prepared_xacts
         where database = current_database()
         union all
        select 0, ''
         order by 1 desc limit 1) as held (transactions, holder)
