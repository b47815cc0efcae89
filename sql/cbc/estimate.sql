-- Rows of pg_settings visible to this role, and the approximate size of one copy of them in the table, in
-- bytes: each row has a line pointer (4 bytes) and the column seq (4 bytes, up to 7 if it is numeric), and is
-- aligned to 8 bytes; a block of 8192 bytes has a header of 24 bytes.
select count(*), ceil(sum(ceil((pg_column_size(settings.*) + 4) / 8.0) * 8 + 4) * 8192 / 8168)::bigint
  from pg_settings as settings
