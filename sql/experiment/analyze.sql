-- For servers without VACUUM.
analyze {table}
