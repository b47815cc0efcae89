select c from {table} where k between $1 and $2
