-- `runs` counts the stored runs, also those that are not valid.
select {columns}
  from (select experiments.*,
               (select count(*) from tags where tags.key = 'experiment' and tags.value = experiments.id) as runs
          from experiments) as experiments
 order by created_at desc, id desc
