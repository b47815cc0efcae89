select {columns}
  from (select stages.*,
               case kind when 'statement' then device_read_mb_s + device_write_mb_s end as device_mb_s
          from stages
         where run_id in ({ids})) as stages
 order by run_id, position
