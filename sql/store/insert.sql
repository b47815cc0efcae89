insert into {table} ({columns}) values ({values})
