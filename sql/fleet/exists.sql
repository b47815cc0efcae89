select to_regclass('riops_store.fleet_agent_token') is not null
