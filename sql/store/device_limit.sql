-- Limits without identity were measured before it was stored, or on a machine without one.
select figures from device_limits
 where identity = cast($3 as text) or identity is null and host = $1 and device = $2
 order by case when identity is null then 2 else 1 end
 limit 1
