   and exists (select 1 from tags
                where tags.run_id = runs.id and tags.key = {key} and (cast({value} as text) is null or tags.value = cast({value} as text)))
