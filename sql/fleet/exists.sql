select exists (select from pg_attribute where attrelid = to_regclass('riops_store.fleet') and attname = 'end_s')
