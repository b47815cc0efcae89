set search_path to riops_store;
set timezone to 'UTC';
set datestyle to 'ISO';
set client_encoding to 'UTF8';
set extra_float_digits to 3;
set client_min_messages to warning;
set default_transaction_isolation to 'read committed';
set statement_timeout to 0
