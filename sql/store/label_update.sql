update runs set label = cast($2 as text) where id = $1
