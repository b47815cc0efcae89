//! The environment of a run: server, pooler, and location of the data with its devices.

use std::path::Path;

use super::error::RunError;
use super::settings::settings_warning;
use crate::engine::{History, choose_driver};
use crate::host::Interrupt;
use crate::probe::Place;
use crate::probe::locations::{Locations, RoleDisk};
use crate::probe::topology::{Topology, Volume};
use crate::server::capabilities::lacks;
use crate::server::facts::server_facts;
use crate::server::{Connection, ConnectionError, Feature, Server, detect_pooler, local_server};
use riops_model::plan::{Driver, ObserveRun, Plan, Protocol};
use riops_model::record::diagnosis::{Pooler, ServerFacts};
use riops_model::record::{Disk, DiskLimit, Events, MachineFacts, RunEvent, Storage};

/// The facts about the server and the client that are read before the measurement.
pub(super) struct Environment {
    pub(super) facts: ServerFacts,
    /// Machine of the load generator.
    pub(super) client: MachineFacts,
    pub(super) driver: Driver,
    /// The connection pooler between riops and the server, if there is one.
    pub(super) pooler: Option<Pooler>,
    /// Where the server runs.
    pub(super) place: Place,
    /// Whether its files and the processes of the sessions can be observed.
    pub(super) shares_files: bool,
}

impl Environment {
    /// Reads the environment through the control connection.
    pub(super) fn read(
        plan: &Plan,
        server: &Server,
        control: &mut Connection,
        interrupt: &Interrupt,
        events: &Events,
    ) -> Result<Self, RunError> {
        if let Some(reason) = control.unencrypted_reason() {
            events.notice(&format!(
                "warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"
            ));
        }
        let pooler = detect_pooler(control, &server.conninfo, interrupt)?;
        if let Some(pooler) = pooler {
            accept_pooler(pooler, plan, events)?;
        }
        let lacks = lacks(control)?;
        if !lacks.is_empty() {
            let lacks: Vec<_> = lacks.iter().map(ToString::to_string).collect();
            events.notice(&format!("the server lacks {}", lacks.join(", ")));
        }
        if let Some(text) = settings_warning(control)? {
            events.send(&RunEvent::Notice { text, is_important: true });
        }
        let facts = server_facts(control)?;
        if plan.protocol == Protocol::Prepared && lacks_plan_cache_mode(control)? {
            events.notice(
                "warning: the server has no setting plan_cache_mode: it may plan a prepared statement again for each execution",
            );
        }
        let local = local_server(control)?;
        let place = match local {
            Some(local) => Place::Here(local.process),
            None if server.conninfo.is_local() => Place::Unknown,
            None => Place::Elsewhere,
        };
        // A pooler shares its connections with other clients.
        let shares_files = pooler.is_none() && local.is_some_and(|server| !server.is_contained);
        let driver = driver(plan, control, events)?;
        Ok(Self {
            facts,
            client: crate::host::machine::facts(),
            driver,
            pooler,
            place,
            shares_files,
        })
    }

    /// Whether the transactions of one session may run on different server connections.
    pub(super) fn is_transaction_pooled(&self) -> bool {
        self.pooler.is_some_and(|pooler| pooler.by_transaction)
    }

    /// Returns the data directory of the server if it is on this machine.
    pub(super) fn local_data(&self) -> Option<&Path> {
        self.facts.data_directory.as_deref().filter(|_| self.shares_files)
    }

    /// Returns storage and limits of the measured tables, and the disks of a local server, with the limits that were measured before.
    pub(super) fn device_records(
        &self,
        locations: &Locations,
        history: &dyn History,
    ) -> (Option<Storage>, Option<DiskLimit>, Vec<Disk>) {
        let topology = Topology::of_this_machine();
        let devices = locations.devices(&topology);
        let limit = |volume: &Volume| {
            let identity = topology.identity(volume);
            history.disk_limit(&self.client.host, &volume.name(), identity.as_deref())
        };
        let disk = |role_disk: &RoleDisk| {
            // A volume on several disks has other limits than one disk.
            let alone = Volume {
                members: vec![role_disk.disk.clone()],
                disks: vec![role_disk.disk.clone()],
            };
            let volumes = || devices.volumes_on(&role_disk.disk);
            let measured = volumes().find_map(|volume| Some((volume, limit(volume)?)));
            let volume = measured.as_ref().map(|(volume, _)| *volume).or_else(|| volumes().next());
            Disk {
                name: role_disk.disk.name.clone(),
                roles: role_disk.roles.clone(),
                model: topology.model(&role_disk.disk),
                identity: topology.identity(volume.unwrap_or(&alone)),
                disk_limit: measured.map(|(_, limit)| limit),
            }
        };
        let disk_limit = devices.volume_of_tables().and_then(limit);
        let disks = devices.disks.iter().map(disk).collect();
        (locations.of_tables().map(crate::probe::disk::storage_of), disk_limit, disks)
    }
}

/// Whether the server lacks the setting `plan_cache_mode`. PostgreSQL 12 added it; compatible databases may have it in earlier versions.
fn lacks_plan_cache_mode(control: &mut Connection) -> Result<bool, ConnectionError> {
    let dialect = control.dialect();
    if dialect.version >= 120_000 || !dialect.has(Feature::Catalogs) {
        return Ok(false);
    }
    let sql = "select 1 from pg_settings where name = 'plan_cache_mode'";
    Ok(control.query_value(sql)?.is_none())
}

/// Fails if the plan cannot be run through the pooler.
fn accept_pooler(pooler: Pooler, plan: &Plan, events: &Events) -> Result<(), RunError> {
    events.notice(&format!("connected through {pooler}"));
    if !pooler.by_transaction || plan.work.get::<ObserveRun>().is_some() {
        return Ok(());
    }
    if plan.work.traits().has_server_loop {
        return Err(RunError::Unsuitable(
            "--loop server requires dedicated sessions: connect to the server directly, or use a session-mode pool".to_owned(),
        ));
    }
    if plan.protocol == Protocol::Prepared && !pooler.prepared_statements {
        return Err(RunError::Unsuitable(
            "--protocol prepared is not supported by this pooler, which does not track prepared statements: use --protocol extended or simple, or PgBouncer 1.21 or later with max_prepared_statements".to_owned(),
        ));
    }
    if !plan.settings.is_empty() {
        return Err(RunError::Unsuitable(
            "--setting requires dedicated sessions: connect to the server directly, or use a session-mode pool".to_owned(),
        ));
    }
    events.notice("session settings are not applied, because they would remain in the pool: configure them for the role or in the pooler (connect_query), for example enable_seqscan = off, enable_bitmapscan = off and max_parallel_workers_per_gather = 0");
    Ok(())
}

/// Returns the driver of the workers, and says why it is not `io_uring`.
fn driver(plan: &Plan, control: &Connection, events: &Events) -> Result<Driver, RunError> {
    let chosen = choose_driver(plan.driver, plan.own_sessions() as usize, plan.workers as usize)?;
    if let Some(reason) = chosen.refused {
        events.notice(&format!("epoll is used, because io_uring is not available: {reason}"));
    }
    if control.encryption().is_none() {
        return Ok(chosen.driver);
    }
    if plan.driver == Driver::IoUring {
        events.notice("epoll is used for the sessions, because they are encrypted");
    }
    Ok(Driver::Epoll)
}
