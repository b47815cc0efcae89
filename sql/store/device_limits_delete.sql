delete from device_limits
