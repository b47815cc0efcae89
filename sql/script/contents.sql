select count(*), coalesce(sum({number}), 0) from {schema}.{table}
