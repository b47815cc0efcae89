analyze riops.{table}
