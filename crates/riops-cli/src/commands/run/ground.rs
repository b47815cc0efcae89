//! What a run finds: the server, what stands between, where the data lie.

use std::path::Path;

use anyhow::Result;
use riops::host::Interrupt;
use riops::host::machine::MachineFacts;
use riops::plan::{Protocol, RunPlan, WorkPlan};
use riops::probe::disk::DiskLimit;
use riops::probe::storage::Storage;
use riops::record::{ClientRecord, DatasetRecord, RunContext, TargetRecord};
use riops::server::facts::ServerFacts;
use riops::server::{Connection, Pooler, is_on_this_machine};
use riops::store::SqliteStore;
use riops::workload::access::Access;

use super::Setting;
use crate::failure::UsageError;
use crate::target::Target;
use crate::ui::Ui;

/// What is known of the target before anything is measured.
pub(super) struct Ground {
    pub(super) facts: ServerFacts,
    pooler: Option<Pooler>,
    /// Whether the server's data lie on this machine.
    is_local: bool,
}

impl Ground {
    /// Looks at the target through the control connection.
    pub(super) fn read(
        setting: &Setting<'_>,
        plan: &RunPlan,
        control: &mut Connection,
    ) -> Result<Self> {
        let Setting { target, interrupt, ui, .. } = setting;
        Target::tell_encryption(control, *ui);
        let pooler = find_pooler(target, plan, control, interrupt, *ui)?;
        let facts = ServerFacts::read(control)?;
        // Behind a pooler or a proxy the address says nothing of the server's machine.
        let is_local = pooler.is_none() && target.is_local() && is_on_this_machine(control)?;
        Ok(Self { facts, pooler, is_local })
    }

    pub(super) fn by_transaction(&self) -> bool {
        self.pooler.as_ref().is_some_and(|pooler| pooler.by_transaction)
    }

    pub(super) fn local_data(&self) -> Option<&Path> {
        self.facts.data_directory.as_deref().filter(|_| self.is_local)
    }

    /// What the record says beside the measurement.
    pub(super) fn context(
        &self,
        setting: &Setting<'_>,
        plan: RunPlan,
        (workload, accesses): (&'static str, Vec<Access>),
        dataset: DatasetRecord,
        control: &Connection,
    ) -> RunContext {
        let Self { facts, pooler, .. } = self;
        let conninfo = &setting.target.conninfo;
        let storage = self.local_data().map(Storage::of_path);
        RunContext {
            id: setting.id,
            started_at: setting.started_at,
            workload: workload.to_owned(),
            accesses,
            client: ClientRecord {
                riops_version: env!("CARGO_PKG_VERSION").to_owned(),
                machine: MachineFacts::read(),
                workers: plan.workers,
                shares_machine_with_server: self.is_local,
            },
            target: TargetRecord {
                flavor: facts.flavor,
                server_version: facts.version.clone(),
                version_text: facts.version_text.clone(),
                compiler_flags: facts.compiler_flags.clone(),
                embedded: setting.target.embedded.is_some(),
                encryption: control.encryption(),
                pooler: pooler.as_ref().map(ToString::to_string),
                disk_limit: storage.as_ref().and_then(|storage| disk_limit(setting, storage)),
                storage,
                address: conninfo.address(),
                database: conninfo.database.clone(),
                settings: facts.settings.clone(),
                dataset,
            },
            plan,
        }
    }
}

/// What the device of the server's data can do, where somebody has measured it on this machine: a run is not
/// refused because that cannot be told.
fn disk_limit(setting: &Setting<'_>, storage: &Storage) -> Option<DiskLimit> {
    let read = |store: &SqliteStore| {
        store.disk_limit(&MachineFacts::read().host, storage.device.as_deref()?).ok().flatten()
    };
    match &setting.store {
        Some(store) => read(store),
        // Looking makes no file.
        None if setting.store_path.exists() => read(&SqliteStore::open(&setting.store_path).ok()?),
        None => None,
    }
}

/// What stands between, and whether the plan can be run through it.
fn find_pooler(
    target: &Target,
    plan: &RunPlan,
    control: &mut Connection,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<Option<Pooler>> {
    let pooler = Pooler::detect(control, &target.conninfo, interrupt)?;
    let Some(found) = pooler else {
        return Ok(None);
    };
    ui.notice(&format!("between riops and the server: {found}"));
    if found.by_transaction {
        if matches!(&plan.work, WorkPlan::Rows(rows) if rows.has_server_loop()) {
            return Err(UsageError(
                "--loop server needs sessions of its own: name the server itself, or a pool by session".to_owned(),
            )
            .into());
        }
        if plan.protocol == Protocol::Prepared && !found.prepared_statements {
            return Err(UsageError(
                "the pooler passes prepared statements through as they are, so that they are missing on its other connections: use --protocol extended or simple, or a pooler that keeps track of them (PgBouncer from 1.21 on, with max_prepared_statements)".to_owned(),
            )
            .into());
        }
        ui.notice("no session settings are made, since they would stay in the pool: what the workload needs has to be set for the role or in the pooler (connect_query)");
    }
    Ok(Some(found))
}
