//! The initialization steps of pgbench, as statements and loads.

use super::table::{TABLES, create_sql, filled, foreign_keys, key_of, primary_key};
use crate::plan::script::ScriptDataset;
use crate::server::Dialect;
use crate::units::sql;
use crate::workload::tables::Table;

/// A step of `pgbench -i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitStep {
    /// `d`: drops the tables.
    Drop,
    /// `t`: creates the empty tables.
    Create,
    /// `g`: loads the rows from the client.
    Load,
    /// `G`: generates the rows in the server.
    Generate,
    /// `v`: vacuums and analyzes the tables.
    Vacuum,
    /// `p`: creates the primary keys.
    PrimaryKeys,
    /// `f`: creates the foreign keys.
    ForeignKeys,
}

impl InitStep {
    /// All steps, with the letters that select them.
    pub const ALL: [(char, Self); 7] = [
        ('d', Self::Drop),
        ('t', Self::Create),
        ('g', Self::Load),
        ('G', Self::Generate),
        ('v', Self::Vacuum),
        ('p', Self::PrimaryKeys),
        ('f', Self::ForeignKeys),
    ];

    /// Returns the step with this letter.
    #[must_use]
    pub fn of(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, step)| (known == letter).then_some(step))
    }

    /// Returns its name in the last line of pgbench.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop tables",
            Self::Create => "create tables",
            Self::Load => "client-side generate",
            Self::Generate => "server-side generate",
            Self::Vacuum => "vacuum",
            Self::PrimaryKeys => "primary keys",
            Self::ForeignKeys => "foreign keys",
        }
    }

    /// Returns what it does, as pgbench says it.
    #[must_use]
    pub fn action(self) -> &'static str {
        match self {
            Self::Drop => "dropping old tables",
            Self::Create => "creating tables",
            Self::Load => "generating data (client-side)",
            Self::Generate => "generating data (server-side)",
            Self::Vacuum => "vacuuming",
            Self::PrimaryKeys => "creating primary keys",
            Self::ForeignKeys => "creating foreign keys",
        }
    }
}

/// What a step does.
pub enum InitWork {
    /// It executes these statements.
    Statements(Vec<String>),
    /// It executes statements, then loads the tables.
    Load {
        /// The statements.
        before: Vec<String>,
        /// The tables with their jobs.
        tables: Vec<Table>,
    },
}

/// Returns the work of a step.
#[must_use]
pub fn init_work(step: InitStep, dataset: &ScriptDataset, dialect: Dialect) -> InitWork {
    let names: Vec<String> =
        TABLES.iter().map(|table| format!("{}.{table}", sql::name(&dataset.schema))).collect();
    let truncate = format!("truncate {}", names.join(", "));
    InitWork::Statements(match step {
        InitStep::Drop => vec![format!("drop table if exists {}", names.join(", "))],
        InitStep::Create => {
            TABLES.iter().flat_map(|table| create_sql(dataset, dialect, table)).collect()
        }
        InitStep::Load => {
            let tables = filled(dataset, dialect).tables;
            return InitWork::Load { before: vec![truncate], tables };
        }
        InitStep::Generate => generate(dataset, truncate),
        InitStep::Vacuum => names.iter().map(|name| format!("vacuum analyze {name}")).collect(),
        InitStep::PrimaryKeys => TABLES
            .iter()
            .filter_map(|table| Some(primary_key(dataset, table, key_of(table)?)))
            .collect(),
        InitStep::ForeignKeys => foreign_keys(dataset),
    })
}

fn generate(dataset: &ScriptDataset, truncate: String) -> Vec<String> {
    let (schema, scale) = (sql::name(&dataset.schema), dataset.scale);
    let select = |table: &str, columns: &str, rows: u64, values: &str| {
        format!(
            "insert into {schema}.{table} ({columns}) select {values} from generate_series(1, {rows}) as id"
        )
    };
    vec![
        "begin".to_owned(),
        truncate,
        select("pgbench_branches", "bid, bbalance", scale, "id, 0"),
        select("pgbench_tellers", "tid, bid, tbalance", scale * 10, "id, (id - 1) / 10 + 1, 0"),
        select(
            "pgbench_accounts",
            "aid, bid, abalance, filler",
            scale * 100_000,
            "id, (id - 1) / 100000 + 1, 0, ''",
        ),
        "commit".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_a_step() {
        for (letter, step) in InitStep::ALL {
            assert_eq!(InitStep::of(letter), Some(step));
        }
        assert_eq!(InitStep::of('x'), None);
    }
}
