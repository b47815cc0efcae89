-- Rows of the view as this role sees it, and about what one copy of them takes in the table: each row has
-- its pointer (4 bytes) and its number (4), is aligned to 8, and a block of 8192 has a head of 24.
select count(*), ceil(sum(ceil((pg_column_size(settings.*) + 4) / 8.0) * 8 + 4) * 8192 / 8168)::bigint
  from pg_settings as settings
