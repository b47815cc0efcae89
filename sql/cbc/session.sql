-- For the sessions of a run: what role or database have set shall not end a step that takes long, and the
-- server shall notice (from PostgreSQL 14 on) where riops was killed. Older servers do not know all of them.
select set_config(name, value, false)
  from (values ('search_path', 'riops'), ('statement_timeout', '0'), ('lock_timeout', '0'),
               ('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
               ('client_connection_check_interval', '1s')) as wanted(name, value)
  join pg_settings using (name)
