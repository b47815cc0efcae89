-- There is nothing to vacuum.
analyze riops.{table}
