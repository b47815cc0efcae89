set synchronous_commit to off;
set client_min_messages to error;
set client_encoding to 'UTF8'
