-- From which percentile on the latencies are lower bounds. Records of earlier versions do not say it.
alter table stages add column service_lower_bound_from real;
alter table stages add column response_lower_bound_from real;
alter table operations add column service_lower_bound_from real;
alter table operations add column response_lower_bound_from real;
alter table runs add column service_lower_bound_from real;
alter table runs add column response_lower_bound_from real;
