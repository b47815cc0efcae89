select host, device, identity, measured_at, figures from device_limits
