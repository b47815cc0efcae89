//! The steps that create a store, and that bring one of an earlier version up to date.
//!
//! Steps are never changed, only added. All missing steps run in one transaction: another riops, or one that is
//! killed meanwhile, sees either all of them or none.

use super::backend::{Access, Backend, Session, Step, transact};
use super::derive;
use super::error::StoreError;

const fn sqlite_only(sqlite: &'static str) -> Step {
    Step { sqlite, postgresql: None, derives: false }
}

const fn shared(sql: &'static str) -> Step {
    Step { sqlite: sql, postgresql: Some(sql), derives: false }
}

pub(super) const STEPS: [Step; 11] = [
    sqlite_only(include_str!("../../sql/store/0001_run.sql")),
    sqlite_only(include_str!("../../sql/store/0002_disk_limit.sql")),
    sqlite_only(include_str!("../../sql/store/0003_device_limit.sql")),
    Step {
        sqlite: include_str!("../../sql/store/0004_tables.sql"),
        postgresql: Some(include_str!("../../sql/store/0004_tables.postgresql.sql")),
        derives: true,
    },
    shared(include_str!("../../sql/store/0005_views.sql")),
    Step {
        sqlite: include_str!("../../sql/store/0006_experiments.sql"),
        postgresql: Some(include_str!("../../sql/store/0006_experiments.postgresql.sql")),
        derives: false,
    },
    Step { derives: true, ..shared(include_str!("../../sql/store/0007_marks.sql")) },
    Step {
        sqlite: include_str!("../../sql/store/0008_p9999.sql"),
        postgresql: Some(include_str!("../../sql/store/0008_p9999.postgresql.sql")),
        derives: false,
    },
    Step {
        sqlite: include_str!("../../sql/store/0009_lower_bounds.sql"),
        postgresql: Some(include_str!("../../sql/store/0009_lower_bounds.postgresql.sql")),
        derives: false,
    },
    Step {
        sqlite: include_str!("../../sql/store/0010_notes_and_facts.sql"),
        postgresql: Some(include_str!("../../sql/store/0010_notes_and_facts.postgresql.sql")),
        derives: true,
    },
    Step {
        sqlite: include_str!("../../sql/store/0011_unknown_late.sql"),
        postgresql: Some(include_str!("../../sql/store/0011_unknown_late.postgresql.sql")),
        derives: false,
    },
];

/// Brings the store up to date.
pub(super) fn migrate(backend: &dyn Backend) -> Result<(), StoreError> {
    let found = transact(backend, Access::Read, |session| session.version())?;
    require_known(backend, found)?;
    if found == STEPS.len() {
        return Ok(());
    }
    transact(backend, Access::Write, |session| {
        session.begin_migration()?;
        // Another riops may have migrated the store meanwhile.
        let found = session.version()?;
        require_known(backend, found)?;
        let missing = STEPS.get(found..).unwrap_or_default();
        for step in missing {
            if let Some(sql) = (session.dialect().choose)(step) {
                session.script(sql)?;
            }
        }
        if missing.iter().any(|step| step.derives) {
            derive::derive_all(session)?;
        }
        session.set_version(STEPS.len())
    })
}

/// Fails if the store has another version: a newer riops may have migrated it since it was opened.
pub(super) fn require_current(
    backend: &dyn Backend,
    session: &mut dyn Session,
) -> Result<(), StoreError> {
    let found = session.version()?;
    require_known(backend, found)
}

fn require_known(backend: &dyn Backend, found: usize) -> Result<(), StoreError> {
    if found > STEPS.len() {
        let location = backend.location();
        return Err(StoreError::Newer { location, found, known: STEPS.len() });
    }
    Ok(())
}
