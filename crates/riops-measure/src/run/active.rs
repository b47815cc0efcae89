//! The shared state of a run in progress.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::environment::Environment;
use super::error::RunError;
use super::settings::RunSettings;
use crate::engine::Hooks;
use crate::host::{Interrupt, machine};
use crate::probe::instructions::Instructions;
use crate::probe::locations::{Devices, Locations};
use crate::probe::perf::{Perf, PerfError};
use crate::probe::queries::QueryProbe;
use crate::probe::topology::Topology;
use crate::probe::{Place, Probe};
use crate::server::{Connection, ConnectionError, Feature, Nodes, Server};
use riops_model::plan::{NamedQuery, Plan};
use riops_model::record::{
    ClientRecord, DatasetRecord, LiveRun, Record, RunEvent, SCHEMA, TargetRecord,
};
use riops_model::units::Span;

/// Pause between two attempts to connect to a server that is recovering.
const PAUSE: Duration = Duration::from_millis(100);

/// Open files besides the files of sessions and workers.
const OTHER_FILES: u64 = 64;

/// A run in progress.
pub(super) struct ActiveRun<'a> {
    pub(super) plan: Plan,
    pub(super) server: Server,
    pub(super) id: Uuid,
    started_at: Timestamp,
    pub(super) interrupt: &'a Interrupt,
    pub(super) hooks: Hooks<'a>,
    pub(super) environment: Environment,
    pub(super) nodes: Nodes,
    /// Profiles the server, if the plan requests it.
    pub(super) perf: Option<Perf>,
    /// Counts the instructions of the server, if the plan requests it.
    pub(super) instructions: Option<Instructions>,
    /// Directories of a local server with the tables of the last stage.
    pub(super) locations: Option<Locations>,
    /// Connection for everything that is not measured. It holds the lock on the dataset.
    pub(super) control: Connection,
    /// The dataset that it has locked.
    pub(super) locked: Option<Locked>,
    /// Whether another connection has locked the dataset.
    pub(super) has_guard: bool,
    /// Statements of each session before its first transaction, from the settings of the plan.
    pub(super) session_sql: Vec<String>,
}

/// A dataset that the control connection has locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locked {
    pub(super) name: &'static str,
    /// Whether its tables are in another schema than `riops`, where other programs change them with or without a lock.
    pub(super) is_shared: bool,
}

impl<'a> ActiveRun<'a> {
    /// Opens the control connection and determines the environment of the run.
    pub(super) fn open(
        plan: &Plan,
        server: &Server,
        interrupt: &'a Interrupt,
        hooks: Hooks<'a>,
        settings: &RunSettings,
    ) -> Result<Self, RunError> {
        allow_sessions(plan.own_sessions(), plan.workers)?;
        let id = Uuid::now_v7();
        let mut server = server.clone();
        server.await_connection(plan.connect_within_s, interrupt)?;
        server.name_sessions(&id);
        let started_at = Timestamp::now();
        if plan.work.traits().needs_dedicated_sessions {
            server.require_dedicated_sessions(interrupt)?;
        }
        let mut control = Connection::open(&server.conninfo, interrupt)?;
        if plan.nodes == Some(1) && !server.embedded {
            use_one_node(plan, &mut server, &mut control, interrupt)?;
        }
        let mut environment =
            Environment::read(plan, &server, &mut control, interrupt, &hooks.events)?;
        environment.facts.settings.extend(settings.effective.clone());
        let flags = environment.facts.compiler_flags.as_deref();
        let unsuitable = |error: PerfError| RunError::Unsuitable(error.to_string());
        let perf = plan.profile_hz.map(|hz| Perf::new(environment.place, flags, hz)).transpose();
        let perf = perf.map_err(unsuitable)?;
        let instructions = plan.instructions.then(|| Instructions::new(environment.place));
        let instructions = instructions.transpose().map_err(unsuitable)?;
        let mut active = Self {
            plan: plan.clone(),
            nodes: Nodes::single(&server.conninfo),
            server,
            id,
            started_at,
            interrupt,
            hooks,
            environment,
            perf,
            instructions,
            locations: None,
            control,
            locked: None,
            has_guard: false,
            session_sql: settings.session_sql.clone(),
        };
        let host = &active.environment.client.host;
        let (pid, server) = (std::process::id(), active.server_text());
        let run = LiveRun::new(plan, id, started_at, host, pid, &server);
        let started = RunEvent::Started { run: Box::new(run), plan: Box::new(plan.clone()) };
        active.hooks.events.send(&started);
        active.find_nodes()?;
        Ok(active)
    }

    /// Finds the nodes that the sessions may use.
    fn find_nodes(&mut self) -> Result<(), RunError> {
        let (plan, conninfo) = (&self.plan, &self.server.conninfo);
        let traits = plan.work.traits();
        // Through a transaction-mode pool the node of a session is unknown. Server-side loops rely on the
        // clock of a single server.
        let is_one = self.server.embedded
            || self.environment.is_transaction_pooled()
            || !self.control.dialect().has(Feature::Catalogs);
        if is_one || traits.has_server_loop {
            Nodes::require_one(plan.nodes)?;
            return self.require_nodes();
        }
        let discovery = Nodes::discover(
            &mut self.control,
            conninfo,
            &plan.spread,
            plan.nodes,
            traits.writes,
            self.interrupt,
        )?;
        for warning in &discovery.warnings {
            self.hooks.notice(&format!("warning: {warning}"));
        }
        if discovery.nodes.list().len() > 1 {
            self.hooks.notice(&format!("nodes: {} (spread {})", discovery.nodes, plan.spread));
        }
        self.nodes = discovery.nodes;
        self.require_nodes()
    }

    /// Fails for options about nodes that this server does not have.
    fn require_nodes(&self) -> Result<(), RunError> {
        let (plan, is_cluster) = (&self.plan, self.nodes.are_discovered());
        let has_own_port = plan.metrics_port != Plan::default().metrics_port;
        let refuse = |text: &str| Err(RunError::Unsuitable(text.to_owned()));
        if plan.rebalance && !is_cluster && self.nodes.list().len() < 2 {
            refuse("--rebalance has no effect: the sessions use one node")
        } else if has_own_port && !is_cluster {
            refuse("--metrics-port has no effect: the server has no nodes of YugabyteDB")
        } else {
            Ok(())
        }
    }

    /// Returns flavor, version and database of the server in one line.
    fn server_text(&self) -> String {
        let (facts, conninfo) = (&self.environment.facts, &self.server.conninfo);
        let place = if self.server.embedded {
            "embedded".to_owned()
        } else {
            format!("{} on {}", conninfo.database, conninfo.address())
        };
        format!("{} {} ({place})", facts.flavor, facts.version)
    }

    /// Returns a probe of this machine and of the devices of a local server with these tables.
    pub(super) fn machine_probe<'p>(&mut self, tables: &[String]) -> Result<Probe<'p>, RunError> {
        let data = self.environment.local_data();
        let mut probe = Probe::machine(data).with_server(self.environment.place);
        probe.uses_network = self.control.is_over_network();
        let Some(data) = data else {
            return Ok(probe.with_devices(&Devices::default()));
        };
        let locations = if self.control.dialect().has(Feature::Heap) {
            Locations::read(&mut self.control, data, tables)?
        } else {
            Locations::of_data(data)
        };
        let devices = locations.devices(&Topology::of_this_machine());
        self.locations = Some(locations);
        Ok(probe.with_devices(&devices))
    }

    /// Returns a probe of these queries and the queries of the plan.
    pub(super) fn query_probe(&self, queries: &[NamedQuery]) -> QueryProbe {
        let queries = queries.iter().chain(&self.plan.probes).cloned().collect();
        let dedicated = !self.environment.is_transaction_pooled();
        let prometheus = self.plan.prometheus.as_ref();
        QueryProbe::new(&self.server.conninfo, dedicated, self.plan.interval(), queries)
            .with_length(self.plan.point_length())
            .with_prometheus(prometheus.map(|prometheus| prometheus.url.clone()))
    }

    /// Returns the record without its results.
    pub(super) fn record(&self, dataset: Option<DatasetRecord>) -> Record {
        let (plan, environment) = (self.plan.clone(), &self.environment);
        Record {
            schema: SCHEMA,
            id: self.id,
            started_at: self.started_at,
            workload: plan.work.traits().name.to_owned(),
            label: plan.label.clone(),
            tags: plan.tags.clone(),
            target: self.target_record(dataset),
            client: ClientRecord {
                riops_version: env!("CARGO_PKG_VERSION").to_owned(),
                machine: environment.client.clone(),
                workers: plan.workers,
                driver: Some(environment.driver),
                shares_machine_with_server: matches!(environment.place, Place::Here(_)),
                server_may_be_here: environment.place == Place::Unknown,
            },
            plan,
            ..Record::default()
        }
    }

    /// Returns the server for the record.
    fn target_record(&self, dataset: Option<DatasetRecord>) -> TargetRecord {
        let Self { server, environment, .. } = self;
        let facts = &environment.facts;
        let of_data = || environment.local_data().map(Locations::of_data);
        let (storage, disk_limit, devices) = self
            .locations
            .clone()
            .or_else(of_data)
            .map(|locations| environment.device_records(&locations, self.hooks.history))
            .unwrap_or_default();
        TargetRecord {
            flavor: facts.flavor.clone(),
            server_version: facts.version.clone(),
            version_text: facts.version_text.clone(),
            compiler_flags: facts.compiler_flags.clone(),
            setting_defaults: facts.setting_defaults.clone(),
            embedded: server.embedded,
            encryption: self.control.encryption(),
            pooler: environment.pooler.as_ref().map(ToString::to_string),
            limits: environment.place.first_process().and_then(crate::host::machine::server_limits),
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

/// Connects to the node of the sessions, if they use only one, because riops then reads the counters of this node.
fn use_one_node(
    plan: &Plan,
    server: &mut Server,
    control: &mut Connection,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let (spread, writes) = (&plan.spread, plan.work.traits().writes);
    let discovery =
        Nodes::discover(control, &server.conninfo, spread, plan.nodes, writes, interrupt)?;
    let node = discovery.nodes.choose(0).conninfo;
    if node.servers != server.conninfo.servers {
        server.conninfo = node;
        *control = Connection::open(&server.conninfo, interrupt)?;
    }
    Ok(())
}

/// Raises the limit on open files: each session needs one, each worker a few for polling.
///
/// # Errors
/// [`RunError::Unsuitable`] if the limit cannot be raised far enough.
pub fn allow_sessions(sessions: u32, workers: u32) -> Result<(), RunError> {
    let files = u64::from(sessions) + 5 * u64::from(workers) + OTHER_FILES;
    machine::raise_open_file_limit(files).map_err(|highest| {
        RunError::Unsuitable(format!(
            "{sessions} sessions require {files} open files, but the limit is {highest}: raise it with ulimit -n"
        ))
    })
}

/// Opens a connection to a server that may still be recovering, with the timeout of the sessions of the run.
pub(super) fn connect_with_retries(
    server: &Server,
    plan: &Plan,
) -> Result<Connection, ConnectionError> {
    let timeout = Span::of_seconds(plan.errors.reconnect_timeout_s).0;
    server.connect_within(timeout, PAUSE, &Interrupt::new())
}
