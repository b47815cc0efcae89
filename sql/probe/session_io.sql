-- PostgreSQL 18 and later: block operations on tables and indexes by the sessions of the run, then by all clients with their
-- parallel workers. With many sessions, the query would be part of the load.
select coalesce(own.hits + own.reads + own.extends, 0), coalesce(own.read_bytes, 0),
       coalesce(own.write_bytes + own.extend_bytes, 0), (
         select coalesce(sum(hits + reads + extends), 0)
           from pg_stat_io where backend_type in ('client backend', 'background worker') and object = 'relation')
  from (
    select sum(io.hits) as hits, sum(io.reads) as reads, sum(io.extends) as extends, sum(io.read_bytes) as read_bytes,
           sum(io.write_bytes) as write_bytes, sum(io.extend_bytes) as extend_bytes
      from pg_stat_activity as a, pg_stat_get_backend_io(a.pid) as io
     where a.application_name = current_setting('application_name') and a.pid <> pg_backend_pid()
       and io.object = 'relation') as own
 where (select count(*) from pg_stat_activity
         where application_name = current_setting('application_name')) <= 200
