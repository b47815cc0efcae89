//! The shared state of a run in progress.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::environment::Environment;
use super::error::RunError;
use crate::engine::Observer;
use crate::host::{Interrupt, machine};
use crate::plan::{NamedQuery, Plan};
use crate::probe::Probe;
use crate::probe::locations::{Devices, Locations};
use crate::probe::perf::Perf;
use crate::probe::queries::QueryProbe;
use crate::probe::topology::Topology;
use crate::record::{DatasetRecord, LiveStart, Record, SCHEMA, Status, Verdict};
use crate::server::{Connection, ConnectionError, Feature, Nodes, Server};

/// Pause between two attempts to connect to a server that is recovering.
const PAUSE: Duration = Duration::from_millis(100);

/// Open files besides those of sessions and workers.
const OTHER_FILES: u64 = 64;

/// A run in progress.
pub(super) struct ActiveRun<'a> {
    pub(super) plan: Plan,
    pub(super) server: Server,
    pub(super) id: Uuid,
    started_at: Timestamp,
    pub(super) interrupt: &'a Interrupt,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) environment: Environment,
    pub(super) nodes: Nodes,
    /// Profiles the server, if the plan requests it.
    pub(super) perf: Option<Perf>,
    /// Directories of a local server with the tables of the last stage.
    pub(super) locations: Option<Locations>,
    /// Connection for everything that is not measured. It holds the lock on the dataset.
    pub(super) control: Connection,
}

impl<'a> ActiveRun<'a> {
    /// Opens the control connection and determines the environment of the run.
    pub(super) fn open(
        plan: &Plan,
        server: &Server,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer,
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
        let environment = Environment::read(plan, &server, &mut control, interrupt, observer)?;
        let perf = plan.profile_hz.map(|hz| environment.perf(hz)).transpose()?;
        observer.started(&LiveStart {
            id,
            started_at,
            server: &environment.server_text(&server),
            host: environment.client_host(),
            pid: std::process::id(),
            plan,
        });
        let nodes = environment.nodes(plan, &server, &mut control, interrupt, observer)?;
        Ok(Self {
            plan: plan.clone(),
            server,
            id,
            started_at,
            interrupt,
            observer,
            environment,
            nodes,
            perf,
            locations: None,
            control,
        })
    }

    /// Opens another connection like the control connection.
    pub(super) fn connect(&self) -> Result<Connection, RunError> {
        Ok(Connection::open(&self.server.conninfo, self.interrupt)?)
    }

    /// Returns the devices of the server with these tables; none if the server is on another machine.
    fn devices(&mut self, tables: &[String]) -> Result<Devices, RunError> {
        let Some(data) = self.environment.local_data() else {
            return Ok(Devices::default());
        };
        let locations = if self.control.dialect().has(Feature::Heap) {
            Locations::read(&mut self.control, data, tables)?
        } else {
            Locations::of_data(data)
        };
        let devices = locations.devices(&Topology::of_this_machine());
        self.locations = Some(locations);
        Ok(devices)
    }

    /// Returns a probe of this machine and of the devices of a local server with these tables.
    pub(super) fn machine_probe<'p>(&mut self, tables: &[String]) -> Result<Probe<'p>, RunError> {
        let devices = self.devices(tables)?;
        let mut probe = Probe::machine(self.environment.local_data())
            .with_server(self.environment.place())
            .with_devices(&devices);
        probe.uses_network = self.control.is_over_network();
        Ok(probe)
    }

    /// Returns a probe of these queries and of those of the plan.
    pub(super) fn query_probe(&self, queries: &[NamedQuery]) -> QueryProbe {
        let queries = queries.iter().chain(&self.plan.probes).cloned().collect();
        let dedicated = !self.environment.is_transaction_pooled();
        let prometheus = self.plan.prometheus.as_ref();
        QueryProbe::new(&self.server.conninfo, dedicated, self.plan.interval(), queries)
            .with_prometheus(prometheus.map(|prometheus| prometheus.url.clone()))
    }

    /// Returns the record without its results.
    pub(super) fn record(&self, dataset: Option<DatasetRecord>) -> Record {
        let (plan, history) = (self.plan.clone(), self.observer.history());
        let (locations, environment) = (self.locations.as_ref(), &self.environment);
        let (server, control) = (&self.server, &self.control);
        Record {
            schema: SCHEMA,
            id: self.id,
            started_at: self.started_at,
            workload: plan.work.traits().name.to_owned(),
            label: plan.label.clone(),
            tags: plan.tags.clone(),
            imported: None,
            status: Status::Done,
            failure: None,
            target: environment.target_record(server, control, dataset, locations, history),
            client: environment.client_record(&plan),
            plan,
            agents: Vec::new(),
            stages: Vec::new(),
            accesses: Vec::new(),
            unknown_outcomes: None,
            checks: Vec::new(),
            notes: Vec::new(),
            thresholds: Vec::new(),
            verdict: Verdict::default(),
        }
    }
}

/// Connects to the node of the sessions, if they use only one: the counters of the server are those of this node.
fn use_one_node(
    plan: &Plan,
    server: &mut Server,
    control: &mut Connection,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let wanted = (&plan.spread, plan.nodes);
    let writes = plan.work.traits().writes;
    let found = Nodes::discover(control, &server.conninfo, wanted, writes, interrupt)?;
    let node = found.nodes.choose(0).conninfo;
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

/// Opens a connection to a server that may still be recovering. The timeout is that of the sessions of the
/// run.
pub(super) fn connect_with_retries(
    server: &Server,
    plan: &Plan,
) -> Result<Connection, ConnectionError> {
    let timeout = Duration::try_from_secs_f64(plan.errors.reconnect_timeout_s).unwrap_or_default();
    server.connect_within(timeout, PAUSE, &Interrupt::new())
}
