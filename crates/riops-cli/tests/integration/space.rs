//! The free disk space before a preparation.

use crate::fixture::{CommandOutput, database};

/// No device of a test has this much space.
const HUGE: &str = "prepare rows --rows 1e14";

#[test]
fn a_dataset_that_does_not_fit_is_refused_before_anything_is_created() {
    let database = database("no_space");
    let refused = database.riops(HUGE).expect(1);
    let text = "the dataset needs about ";
    refused.stderr_contains(text).stderr_contains("--skip-space-check");
    let schemas = "select count(*) from pg_namespace where nspname = 'riops'";
    assert_eq!(database.value(schemas).as_deref(), Some("0"));
    let oltp = database.riops("prepare oltp --tables 4 --table-size 1e9 --recreate").expect(1);
    oltp.stderr_contains(text);
}

#[test]
fn the_check_can_be_skipped_and_an_existing_dataset_stays() {
    let database = database("skipped_space");
    database.riops("prepare rows --rows 100").expect(0);
    database.riops(&format!("{HUGE} --recreate")).expect(1).stderr_contains("disk space");
    assert_eq!(database.value("select count(*) from riops.rows_0001").as_deref(), Some("100"));
    // The event trigger shows that the check was passed.
    database
        .connect()
        .execute(
            "create function stop_here() returns event_trigger language plpgsql as $$
             begin raise exception 'creating tables'; end $$;
             create event trigger stop_here on ddl_command_start when tag in ('CREATE TABLE')
               execute function stop_here()",
        )
        .unwrap();
    let skipped = database.riops(&format!("{HUGE} --recreate --skip-space-check")).expect(1);
    skipped.stderr_contains("creating tables");
}

#[test]
fn the_steps_of_pgbench_check_the_space_before_they_drop_anything() {
    let database = database("no_space_pgbench");
    database.connect().execute("create table pgbench_accounts (mine int)").unwrap();
    let pgbench = |skip: &str| {
        let mut command = crate::fixture::command("pgbench -i -F 10 -s 1000000");
        command.env("RIOPS_STORE", &database.store).env("RIOPS_SKIP_SPACE_CHECK", skip);
        CommandOutput::run(command.arg(&database.url))
    };
    let refused = pgbench("false").expect(1);
    refused.stderr_contains("needs about ").stderr_contains("RIOPS_SKIP_SPACE_CHECK=1");
    let mine = "select count(mine) from pgbench_accounts";
    assert_eq!(database.value(mine).as_deref(), Some("0"), "it was not dropped");
    // The event trigger shows that the check was passed.
    database
        .connect()
        .execute(
            "create function stop_here() returns event_trigger language plpgsql as $$
             begin raise exception 'dropping tables'; end $$;
             create event trigger stop_here on ddl_command_start when tag in ('DROP TABLE')
               execute function stop_here()",
        )
        .unwrap();
    pgbench("1").expect(1).stderr_contains("dropping tables");
}
