-- YugabyteDB: the samples of one node between two times, {from} and {to} seconds ago: component, class, event, and the mean number
-- of sessions or requests in it. The weights make up for samples that the node left out. Not tested against a live server.
select wait_event_component, wait_event_class, wait_event,
       sum(sample_weight) * coalesce(nullif(current_setting('yb_ash_sampling_interval_ms', true), '')::float8, 1000) / 1000
       / ({from} - {to})
  from pg_catalog.yb_active_session_history
 where sample_time >= clock_timestamp() - interval '1 second' * {from}
   and sample_time < clock_timestamp() - interval '1 second' * {to}
 group by 1, 2, 3
 order by 4 desc
 limit 30
