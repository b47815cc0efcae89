-- Latencies of one in 10,000 transactions. Records of earlier versions do not have them.
alter table stages add column service_p9999_us real;
alter table stages add column response_p9999_us real;
alter table operations add column service_p9999_us real;
alter table operations add column response_p9999_us real;
alter table series add column p9999_us real;
alter table series add column response_p9999_us real;
