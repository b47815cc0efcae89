update runs set note = cast($2 as text) where id = $1
