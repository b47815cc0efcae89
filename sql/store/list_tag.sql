   and exists (select 1 from {table}
                where {table}.run_id = runs.id and {table}.key = {key} and (cast({value} as text) is null or {table}.value = cast({value} as text)))
