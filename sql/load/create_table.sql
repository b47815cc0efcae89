-- ysql-bench's table: a key, and four texts that make a row of any size.
create table riops.{table} (id int primary key, f1 text, f2 text, f3 text, f4 text)
