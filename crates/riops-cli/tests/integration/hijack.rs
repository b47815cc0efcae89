//! Functions, operators and types that other roles define are not executed by the SQL of riops.

use crate::fixture::{CommandOutput, Database, database};

/// Creates, in the schema `evil`, an overload of each function, operator and base type of PostgreSQL. Each fails
/// when it is called.
const OVERLOADS: &str = "
create schema evil;
do $do$
declare
  f record;
  skipped int := 0;
  made int := 0;
begin
  for f in
    select p.oid, p.proname, pg_get_function_identity_arguments(p.oid) as arguments,
           pg_get_function_result(p.oid) as result
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = 'pg_catalog' and p.prokind = 'f'
  loop
    begin
      execute format(
        'create function evil.%I(%s) returns %s language plpgsql as $b$ begin raise exception %L; end $b$',
        f.proname, f.arguments, f.result, 'hijacked by ' || f.proname);
      made := made + 1;
    exception when others then
      skipped := skipped + 1;
    end;
  end loop;
  if made < 2000 then
    raise exception 'only % functions were created, % skipped', made, skipped;
  end if;
  made := 0;
  for f in
    select o.oprname, o.oprleft::regtype as l, o.oprright::regtype as r, o.oprleft, p.proname
      from pg_operator o join pg_proc p on p.oid = o.oprcode
      join pg_namespace n on n.oid = o.oprnamespace
     where n.nspname = 'pg_catalog'
  loop
    begin
      execute format('create operator evil.%s (%s rightarg = %s, function = evil.%I)', f.oprname,
                     case when f.oprleft <> 0 then format('leftarg = %s,', f.l) else '' end, f.r, f.proname);
      made := made + 1;
    exception when others then
      null;
    end;
  end loop;
  if made < 600 then
    raise exception 'only % operators were created', made;
  end if;
  for f in select typname from pg_type where typtype = 'b' and typelem = 0 and typnamespace = 'pg_catalog'::regnamespace
  loop
    execute format('create domain evil.%I as pg_catalog.%I check (false)', f.typname, f.typname);
  end loop;
end $do$;
-- Better matches than the functions of PostgreSQL, in a schema that most search paths contain.
create function public.format(text, name, name) returns text language plpgsql as
  $b$ begin raise exception 'hijacked by format'; end $b$;
create function public.obj_description(oid, text) returns text language plpgsql as
  $b$ begin raise exception 'hijacked by obj_description'; end $b$;
create function public.count(bigint) returns text language plpgsql as
  $b$ begin raise exception 'hijacked by count'; end $b$;
";

/// Returns a database whose sessions search the hostile schema first.
fn hostile_database(name: &str) -> Database {
    let database = database(name);
    database.connect().execute(OVERLOADS).unwrap();
    let path = format!("alter database {name} set search_path = evil, pg_catalog, public");
    database.connect().execute(&path).unwrap();
    database
}

fn assert_not_hijacked(output: CommandOutput, line: &str) -> CommandOutput {
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(!text.contains("hijacked"), "{line}:\n{text}");
    output.expect(0)
}

#[test]
fn the_overloads_are_found_by_sessions_of_others() {
    let database = hostile_database("hijack_control");
    let mut connection = database.connect();
    for sql in ["select now()", "select 1 + 1", "select 'a'::text"] {
        assert!(connection.execute(sql).is_err(), "{sql}");
    }
}

#[test]
fn no_overload_is_executed_by_any_workload() {
    let database = hostile_database("hijack");
    let short = "--duration 200ms --warmup 0 --interval 100ms";
    for line in [
        format!("run rows --prepare --rows 2000 --batch 10 --update-percent 20 {short}"),
        format!("run rows --loop server --rows 2000 --batch 10 --update-percent 20 {short}"),
        "warm rows".to_owned(),
        "verify rows".to_owned(),
        "cleanup rows".to_owned(),
        "run load --rows 2000 --batch-size 100".to_owned(),
        format!("run point {short}"),
        "verify load".to_owned(),
        "cleanup load".to_owned(),
        format!("run oltp --prepare --tables 2 --table-size 500 {short}"),
        "verify oltp".to_owned(),
        "cleanup oltp".to_owned(),
        "run cbc --size 0.02 --place schema".to_owned(),
        "cleanup cbc".to_owned(),
        format!("run script -b tpcb-like --prepare --schema riops --scale 1 {short}"),
        "verify script".to_owned(),
        "cleanup script".to_owned(),
        format!("run ping {short}"),
        "doctor".to_owned(),
    ] {
        assert_not_hijacked(database.riops(&line), &line);
    }
}

#[test]
fn no_overload_is_executed_by_experiments_and_stores() {
    let database = hostile_database("hijack_store");
    let short = "--duration 200ms --warmup 0 --interval 100ms";
    let url = &database.url;
    for line in [
        format!("run rows --prepare --rows 2000 --batch 10 {short} --store {url}"),
        format!("runs list --store {url}"),
        format!("runs rm last --yes --store {url}"),
        format!(
            "sweep rows --axis batch=10,20 --repeat 1 --reset restore --checkpoint --vacuum {short}"
        ),
    ] {
        assert_not_hijacked(database.riops(&line), &line);
    }
}

#[test]
fn cleanup_keeps_tables_that_an_overload_would_name() {
    let database = database("hijack_public");
    let mut connection = database.connect();
    connection.execute("create table public.precious (id int)").unwrap();
    database.riops("prepare rows --rows 2000").expect(0);
    // What a role with the privilege to create functions in the schema public can do.
    connection
        .execute(
            "create function public.obj_description(oid, text) returns text language sql as
               $$ select 'riops dataset rows' $$;
             create function public.format(text, name, name) returns text language sql as
               $$ select 'public.precious' $$",
        )
        .unwrap();
    database.riops("cleanup rows").expect(0);
    let left = "select count(*) from pg_class where relname in ('precious', 'rows_0001')";
    assert_eq!(database.value(left).as_deref(), Some("1"));
    assert!(database.value("select to_regclass('public.precious')").is_some());
}
