alter table {schema}.{table} add primary key ({key}){tablespace}
