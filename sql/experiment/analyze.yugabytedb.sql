-- YugabyteDB has no VACUUM.
analyze {table}
