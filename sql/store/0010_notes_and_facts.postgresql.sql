-- Facts about the server of a run, the first line of its newest note, and the notes of experiments as JSON.
create table facts (
  run_id text not null references runs (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (run_id, key)
);
create index facts_key_value on facts (key, value);
alter table runs add column note text;
alter table experiments add column notes text not null default '[]';
