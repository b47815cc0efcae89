call riops.load_batch($1, $2, null)
