-- `runs` counts the stored runs, also those that are not valid.
select id, name, kind, created_at, finished_at,
       (select count(*) from tags where tags.key = 'experiment' and tags.value = experiments.id)
  from experiments
 order by created_at desc, id desc
