-- Names are not unique: without the second condition, the old limits would be found for another device.
delete from device_limits
 where identity = cast($3 as text) or identity is null and host = $1 and device = $2
