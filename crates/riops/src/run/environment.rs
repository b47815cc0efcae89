//! The environment of a run: server, pooler, location of the data with its devices, and nodes.

use std::path::Path;

use super::error::RunError;
use crate::engine::{History, Observer, choose_driver};
use crate::host::Interrupt;
use crate::plan::{Driver, Plan, Protocol};
use crate::probe::Place;
use crate::probe::locations::{Locations, RoleDisk};
use crate::probe::perf::Perf;
use crate::probe::topology::{Topology, Volume};
use crate::record::{
    ClientRecord, DatasetRecord, Disk, DiskLimit, MachineFacts, ServerLimits, Storage, TargetRecord,
};
use crate::server::capabilities::lacks;
use crate::server::facts::ServerFacts;
use crate::server::{Connection, ConnectionError, Feature, Nodes, Pooler, Server, local_server};

/// The facts about the server and the client that are read before the measurement.
pub(super) struct Environment {
    pub(super) facts: ServerFacts,
    /// Machine of the load generator.
    pub(super) client: MachineFacts,
    driver: Driver,
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
        observer: &mut dyn Observer,
    ) -> Result<Self, RunError> {
        if let Some(reason) = control.unencrypted_reason() {
            observer.notice(&format!(
                "warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"
            ));
        }
        let pooler = Pooler::detect(control, &server.conninfo, interrupt)?;
        if let Some(pooler) = pooler {
            accept_pooler(pooler, plan, observer)?;
        }
        let lacks = lacks(control)?;
        if !lacks.is_empty() {
            let lacks: Vec<_> = lacks.iter().map(ToString::to_string).collect();
            observer.notice(&format!("the server lacks {}", lacks.join(", ")));
        }
        let facts = ServerFacts::read(control)?;
        if plan.protocol == Protocol::Prepared && lacks_plan_cache_mode(control)? {
            observer.notice(
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
        let driver = driver(plan, control, observer)?;
        Ok(Self { facts, client: MachineFacts::read(), driver, pooler, place, shares_files })
    }

    /// Whether the transactions of one session may run on different server connections.
    pub(super) fn is_transaction_pooled(&self) -> bool {
        self.pooler.is_some_and(|pooler| pooler.by_transaction)
    }

    /// Returns the data directory of the server if it is on this machine.
    pub(super) fn local_data(&self) -> Option<&Path> {
        self.facts.data_directory.as_deref().filter(|_| self.shares_files)
    }

    /// Returns a profiler of the server.
    pub(super) fn perf(&self, hz: u32) -> Result<Perf, RunError> {
        Perf::new(self.place, self.facts.compiler_flags.as_deref(), hz)
            .map_err(|error| RunError::Unsuitable(error.to_string()))
    }

    /// Returns the nodes that the sessions may use.
    pub(super) fn nodes(
        &self,
        plan: &Plan,
        server: &Server,
        control: &mut Connection,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<Nodes, RunError> {
        let conninfo = &server.conninfo;
        let traits = plan.work.traits();
        // Through a transaction-mode pool the node of a session is unknown. Server-side loops rely on the
        // clock of a single server.
        let is_one = server.embedded
            || self.is_transaction_pooled()
            || !control.dialect().has(Feature::Catalogs);
        if is_one || traits.has_server_loop {
            Nodes::require_one(plan.nodes)?;
            return Ok(Nodes::single(conninfo));
        }
        let wanted = (&plan.spread, plan.nodes);
        let found = Nodes::discover(control, conninfo, wanted, traits.writes, interrupt)?;
        for warning in &found.warnings {
            observer.notice(&format!("warning: {warning}"));
        }
        if found.nodes.list().len() > 1 {
            observer.notice(&format!("nodes: {} (spread {})", found.nodes, plan.spread));
        }
        Ok(found.nodes)
    }

    /// Returns flavor, version and database of the server in one line.
    pub(super) fn server_text(&self, server: &Server) -> String {
        let (facts, conninfo) = (&self.facts, &server.conninfo);
        let place = if server.embedded {
            "embedded".to_owned()
        } else {
            format!("{} on {}", conninfo.database, conninfo.address())
        };
        format!("{} {} ({place})", facts.flavor, facts.version)
    }

    /// Returns the client for the record.
    pub(super) fn client_record(&self, plan: &Plan) -> ClientRecord {
        ClientRecord {
            riops_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.client.clone(),
            workers: plan.workers,
            driver: Some(self.driver),
            shares_machine_with_server: matches!(self.place, Place::Here(_)),
            server_may_be_here: self.place == Place::Unknown,
        }
    }

    /// Returns the server for the record. `locations` are those of the measured tables, if there were any.
    pub(super) fn target_record(
        &self,
        server: &Server,
        control: &Connection,
        dataset: Option<DatasetRecord>,
        locations: Option<&Locations>,
        history: &dyn History,
    ) -> TargetRecord {
        let facts = &self.facts;
        let locations = locations.cloned().or_else(|| self.local_data().map(Locations::of_data));
        let (storage, disk_limit, devices) = locations
            .map(|locations| devices(&locations, &self.client.host, history))
            .unwrap_or_default();
        TargetRecord {
            flavor: facts.flavor.clone(),
            server_version: facts.version.clone(),
            version_text: facts.version_text.clone(),
            compiler_flags: facts.compiler_flags.clone(),
            setting_defaults: facts.setting_defaults.clone(),
            embedded: server.embedded,
            encryption: control.encryption(),
            pooler: self.pooler.as_ref().map(ToString::to_string),
            limits: self.place.first_process().and_then(ServerLimits::read),
            disk_limit,
            devices,
            storage,
            address: server.conninfo.address(),
            database: server.conninfo.database.clone(),
            settings: facts.settings.clone(),
            dataset,
        }
    }
}

/// Returns storage and limits of the measured tables, and the disks of a server on the machine `host`, with the limits that were
/// measured before.
fn devices(
    locations: &Locations,
    host: &str,
    history: &dyn History,
) -> (Option<Storage>, Option<DiskLimit>, Vec<Disk>) {
    let topology = Topology::of_this_machine();
    let devices = locations.devices(&topology);
    let limit = |volume: &Volume| {
        history.disk_limit(host, &volume.name(), topology.identity(volume).as_deref())
    };
    let disk = |each: &RoleDisk| {
        // The limits of a volume on several disks are not those of one disk.
        let alone = Volume { members: vec![each.disk.clone()], disks: vec![each.disk.clone()] };
        let volumes = || devices.volumes_on(&each.disk);
        let measured = volumes().find_map(|volume| Some((volume, limit(volume)?)));
        let volume = measured.as_ref().map(|(volume, _)| *volume).or_else(|| volumes().next());
        Disk {
            name: each.disk.name.clone(),
            roles: each.roles.iter().map(ToString::to_string).collect(),
            model: topology.model(&each.disk),
            identity: topology.identity(volume.unwrap_or(&alone)),
            disk_limit: measured.map(|(_, limit)| limit),
        }
    };
    let disk_limit = devices.volume_of_tables().and_then(limit);
    let disks = devices.disks.iter().map(disk).collect();
    (locations.of_tables().map(Storage::of_path), disk_limit, disks)
}

/// Whether the server has no setting `plan_cache_mode`, which is new in PostgreSQL 12. Others may have it earlier.
fn lacks_plan_cache_mode(control: &mut Connection) -> Result<bool, ConnectionError> {
    let dialect = control.dialect();
    if dialect.version >= 120_000 || !dialect.has(Feature::Catalogs) {
        return Ok(false);
    }
    let sql = "select 1 from pg_settings where name = 'plan_cache_mode'";
    Ok(control.query_value(sql)?.is_none())
}

/// Fails if the plan cannot be run through the pooler.
fn accept_pooler(pooler: Pooler, plan: &Plan, observer: &mut dyn Observer) -> Result<(), RunError> {
    observer.notice(&format!("connected through {pooler}"));
    if !pooler.by_transaction {
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
    observer.notice("session settings are not applied, because they would remain in the pool: configure them for the role or in the pooler (connect_query)");
    Ok(())
}

/// Returns the driver of the workers, and says why it is not `io_uring`.
fn driver(
    plan: &Plan,
    control: &Connection,
    observer: &mut dyn Observer,
) -> Result<Driver, RunError> {
    let chosen = choose_driver(plan.driver, plan.own_sessions() as usize, plan.workers as usize)?;
    if let Some(reason) = chosen.refused {
        observer.notice(&format!("epoll is used, because io_uring is not available: {reason}"));
    }
    if control.encryption().is_none() {
        return Ok(chosen.driver);
    }
    if plan.driver == Driver::IoUring {
        observer.notice("epoll is used for the sessions, because they are encrypted");
    }
    Ok(Driver::Epoll)
}
