set search_path to riops_store;
set client_min_messages to warning;
set tcp_keepalives_idle to 5;
set tcp_keepalives_interval to 5;
set tcp_keepalives_count to 3;
set tcp_user_timeout to 20000;
set statement_timeout to 0
