//! The initialization steps of pgbench, as statements and loads.

use super::table::{TABLES, create_sql, filled, foreign_keys, primary_key};
use crate::server::Dialect;
use crate::workload::tables::Table;
use riops_model::plan::script::ScriptDataset;
use riops_model::units::sql;

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
    /// All steps.
    pub const ALL: [Self; 7] = [
        Self::Drop,
        Self::Create,
        Self::Load,
        Self::Generate,
        Self::Vacuum,
        Self::PrimaryKeys,
        Self::ForeignKeys,
    ];

    /// Returns its letter, its name in the last line of pgbench, and what it does, as pgbench says it.
    fn words(self) -> (char, &'static str, &'static str) {
        match self {
            Self::Drop => ('d', "drop tables", "dropping old tables"),
            Self::Create => ('t', "create tables", "creating tables"),
            Self::Load => ('g', "client-side generate", "generating data (client-side)"),
            Self::Generate => ('G', "server-side generate", "generating data (server-side)"),
            Self::Vacuum => ('v', "vacuum", "vacuuming"),
            Self::PrimaryKeys => ('p', "primary keys", "creating primary keys"),
            Self::ForeignKeys => ('f', "foreign keys", "creating foreign keys"),
        }
    }

    /// Returns the step with this letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.words().0 == letter)
    }

    /// Returns its name in the last line of pgbench.
    pub fn name(self) -> &'static str {
        self.words().1
    }

    /// Returns what it does, as pgbench says it.
    pub fn action(self) -> &'static str {
        self.words().2
    }
}

/// Returns the work of a step: the statements that it executes, and the tables that it then loads.
pub fn init_work(
    step: InitStep,
    dataset: &ScriptDataset,
    dialect: Dialect,
) -> (Vec<String>, Vec<Table>) {
    let names: Vec<String> =
        TABLES.iter().map(|table| format!("{}.{table}", sql::name(&dataset.schema))).collect();
    let truncate = format!("truncate {}", names.join(", "));
    let mut tables = Vec::new();
    let statements = match step {
        InitStep::Drop => vec![format!("drop table if exists {}", names.join(", "))],
        InitStep::Create => {
            TABLES.iter().flat_map(|table| create_sql(dataset, dialect, table)).collect()
        }
        InitStep::Load => {
            tables = filled(dataset, dialect).tables;
            vec![truncate]
        }
        InitStep::Generate => generate(dataset, truncate),
        InitStep::Vacuum => names.iter().map(|name| format!("vacuum analyze {name}")).collect(),
        InitStep::PrimaryKeys => {
            TABLES.iter().filter_map(|table| primary_key(dataset, table)).collect()
        }
        InitStep::ForeignKeys => foreign_keys(dataset),
    };
    (statements, tables)
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
        for step in InitStep::ALL {
            assert_eq!(InitStep::from_letter(step.words().0), Some(step));
        }
        assert_eq!(InitStep::from_letter('x'), None);
    }
}
