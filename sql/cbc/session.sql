-- Settings of the sessions of a run: timeouts configured for the role or the database must not cancel a long
-- step, and the server must detect that riops was killed (PostgreSQL 14 and later). The join skips settings
-- that older servers do not have.
select set_config(name, value, false)
  from (values ('search_path', 'riops'), ('statement_timeout', '0'), ('lock_timeout', '0'),
               ('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
               ('client_connection_check_interval', '1s')) as wanted(name, value)
  join pg_settings using (name)
