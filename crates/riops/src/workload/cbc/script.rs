//! Generates the psql script from the pgbench scripts, so both contain the same statements. Pure.

use std::fmt::Write as _;

use super::{EXPLAIN, SIZES, Step};

const HEAD: &str = "\
-- Complete Block Check for psql: psql -d cbc -v scale=20 -ef cbc.sql > cbc.log 2>&1
-- Creates the table settings_loop (scale: nominal size in GB, decimals allowed) and drops an existing one, so
-- use a dedicated database. Generated from t00…t06 by the tests of riops: edit those files instead.
\\timing on
\\if :{?scale}
\\else
\\set scale 20
\\endif
select pg_stat_reset();
select exists (select from pg_extension where extname = 'pg_stat_statements') as has_statements \\gset
\\if :has_statements
select pg_stat_statements_reset();
\\endif
drop table if exists settings_loop;
";

/// Returns the text of `sql/cbc/cbc.sql`.
#[must_use]
pub fn psql_script() -> String {
    let mut text = HEAD.to_owned();
    for step in Step::ALL {
        let statement: Vec<_> =
            step.text().lines().filter(|line| !line.starts_with("--")).collect();
        let explain = if step.is_select() { format!("{EXPLAIN}\n") } else { String::new() };
        let _ = write!(text, "\n\\echo {}\n{explain}{}\n", step.key(), statement.join("\n"));
    }
    let sizes: Vec<_> = SIZES.lines().filter(|line| !line.starts_with("--")).collect();
    let _ = write!(text, "\n\\echo SIZE_T SIZE_I\n{};\n", sizes.join("\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_psql_script_is_generated_from_the_pgbench_scripts() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sql/cbc/cbc.sql");
        if std::env::var_os("RIOPS_WRITE_SCRIPTS").is_some() {
            std::fs::write(path, psql_script()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            psql_script(),
            "regenerate it with RIOPS_WRITE_SCRIPTS=1 cargo test"
        );
    }
}
