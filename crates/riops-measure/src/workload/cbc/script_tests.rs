//! Generates the psql script from the pgbench scripts, so both contain the same statements. Pure.

use std::fmt::Write as _;

use super::step::{DROP_TABLE, statement_of};
use riops_model::plan::CbcStep;

const HEAD: &str = "\
-- Complete Block Check for psql: psql -d cbc -v scale=20 -ef cbc-psql.sql > cbc.log 2>&1
-- Creates the table settings_loop (scale: nominal size in GB, decimals allowed) and drops an existing one, so
-- use a dedicated database. Generated from cbc-t00…t06 by the tests of riops: edit those files instead.
\\if :{?scale}
\\else
\\set scale 20
\\endif
";

/// The settings and the reset of the statistics, which are not timed.
const START: &str = "\
select name, current_setting(name) from pg_settings where name in ('autovacuum', 'shared_buffers') order by name;
select pg_stat_reset();
select exists (select from pg_extension where extname = 'pg_stat_statements') as has_statements \\gset
\\if :has_statements
select pg_stat_statements_reset();
\\endif
\\timing on
";

/// The collector expects a line for each size with its label, so the output is expanded.
const END: &str = "
\\timing off
\\x on
select pg_relation_size('settings_loop') as \"Size-Table\";
select pg_relation_size('by_name') as \"Size-Index\";
";

/// Returns the text of `sql/cbc/cbc-psql.sql`.
fn psql_script() -> String {
    let mut text = [HEAD, DROP_TABLE, START].concat();
    for step in CbcStep::ALL {
        let _ = write!(text, "\n\\echo {}\n{};\n", step.key(), statement_of(step));
    }
    text + END
}

#[test]
fn the_psql_script_is_generated_from_the_pgbench_scripts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sql/cbc/cbc-psql.sql");
    if std::env::var_os("RIOPS_WRITE_SCRIPTS").is_some() {
        std::fs::write(path, psql_script()).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        psql_script(),
        "regenerate it with RIOPS_WRITE_SCRIPTS=1 cargo test"
    );
}
