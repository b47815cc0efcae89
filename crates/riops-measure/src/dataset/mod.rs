//! Datasets in a database: creates, registers, locks, verifies and drops them.
//!
//! Everything is in the schema `riops`, except adopted tables. Workloads describe datasets; this module
//! sends the statements.
//!
//! # Design
//!
//! All objects are in the schema `riops`, except tables of `oltp` with `--schema`. `riops.dataset` lists the
//! prepared datasets with their parameters, and whether each is `complete`. `riops.run` is the ledger of changes.
//! A table belongs to riops only if its comment is `riops dataset <workload>`; any other table is neither
//! measured nor dropped. Preparation writes `loading` first, and `complete` last, after the rows were counted.
//! Any failure in between (Ctrl-C, SIGKILL, a full disk, a dead server) leaves a dataset that no run accepts. A
//! run holds a shared advisory lock on the dataset. Creating, verifying or dropping it requires an exclusive
//! lock.
//!
//! A run reads the parameters of its dataset from the registry. They must match the parameters in the plan
//! (`plan.dataset`). A dataset that a run prepares uses the seed of the run, unless the plan specifies another
//! one.
//!
//! A load creates its table again for each stage, with the status `loading`, and verifies it before it sets
//! `complete`. The table of an unfinished load is kept, so that `verify` can compare it with the acknowledged
//! changes. The load's entry in the ledger is removed when the table is complete: from then on, the ledger
//! contains only later changes.
//!
//! The table of `cbc` gets its comment in the transaction that creates it, and its database is marked by a
//! comment too. However a run ends, the next run can identify what it may drop.
//!
//! Tables that sysbench prepared are adopted: they are registered as they are found, again before each run, and
//! never dropped. The changes of `oltp` (rows inserted and deleted, sums added to `k`) are in the ledger as
//! effects.
//!
//! A run that changes rows enters itself into the ledger before it starts, and adds the acknowledged changes of each
//! table when it ends. `verify` compares the sum over all runs with the data, table by table. Transactions with an
//! unknown outcome are resolved first, if the rows prove the outcome: `xmin` shows which row versions are older than
//! the run, and since the same plan gives the same transactions, all transactions of the run are generated again to
//! find versions that only one of them can have written. This costs nothing without such transactions. Outcomes that
//! remain unknown become a range (±) in the checks of their table. A run that never reported removes the upper bound,
//! and the check shows only the lower one. The next verified run with changes then takes the contents as the new
//! baseline and empties the ledger, unless they contradict the lower bound, or sessions of that run or another run may
//! still change rows (on PostgreSQL without a transaction-mode pooler, where advisory locks reveal other runs). If the
//! server died before the run could report, the next run or `verify` settles the ledger from the record of that run.

mod adopted;
mod catalog;
mod cleanup;
mod condition;
pub mod database;
mod error;
mod initialize;
mod ledger;
mod lock;
mod parallel;
pub mod pgbench;
pub mod prepare;
mod registry;
mod rights;
mod routines;
mod space;
pub mod sysbench;

pub use adopted::Unreported;
pub use cleanup::cleanup;
pub use error::{DatasetError, Holders};
pub use initialize::Initialization;
pub use ledger::{Changes, verify};
pub use lock::OnWait;
pub use registry::{Entry, Registry, State};
pub use rights::{Access, Needs, missing_grants};
