-- The table of ysql-bench: a key, and four text columns for rows of any size.
create table riops.{table} (id int primary key, f1 text, f2 text, f3 text, f4 text)
