-- Another tool may not report the late transactions of an interval. SQLite cannot drop NOT NULL.
alter table series add column late_transactions integer;
update series set late_transactions = late;
alter table series drop column late;
alter table series rename column late_transactions to late;
