-- YugabyteDB does not need VACUUM.
analyze riops.{table}
