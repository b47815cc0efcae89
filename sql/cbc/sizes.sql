-- SIZE_T and SIZE_I: main forks of table and index, in bytes.
select pg_relation_size(to_regclass('settings_loop')), pg_relation_size(to_regclass('by_name'))
