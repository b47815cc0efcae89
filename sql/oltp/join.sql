select a.c, b.c from {table} as a join {other} as b on a.id = b.id
 where a.id between $1 and $2 and b.id between $3 and $4
