-- The same as cbc-psql.sql.
\ir cbc-psql.sql
