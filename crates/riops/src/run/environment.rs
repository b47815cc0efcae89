//! What a run finds: the server, what stands between, where the data are, which nodes there are.

use std::path::Path;

use super::error::RunError;
use super::observer::{History, Observer};
use crate::host::Interrupt;
use crate::host::machine::MachineFacts;
use crate::plan::{Plan, Protocol};
use crate::probe::storage::Storage;
use crate::record::{ClientRecord, DatasetRecord, TargetRecord};
use crate::server::facts::ServerFacts;
use crate::server::{Connection, Nodes, Pooler, Server, is_on_this_machine};

/// What is known of the server before anything is measured.
pub(super) struct Environment {
    pub(super) facts: ServerFacts,
    /// The machine of the load generator.
    client: MachineFacts,
    pooler: Option<Pooler>,
    /// Whether the server's data are on this machine.
    is_local: bool,
}

impl Environment {
    /// Asks through the control connection.
    pub(super) fn read(
        plan: &Plan,
        server: &Server,
        control: &mut Connection,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<Self, RunError> {
        if let Some(reason) = control.plain_because() {
            observer.notice(&format!(
                "warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"
            ));
        }
        let pooler = Pooler::detect(control, &server.conninfo, interrupt)?;
        if let Some(pooler) = pooler {
            accept_pooler(pooler, plan, observer)?;
        }
        let facts = ServerFacts::read(control)?;
        // Behind a pooler or a proxy the address says nothing about the server's machine.
        let is_local =
            pooler.is_none() && server.conninfo.is_local() && is_on_this_machine(control)?;
        Ok(Self { facts, client: MachineFacts::read(), pooler, is_local })
    }

    /// Whether the transactions of one session may run in different sessions of the server.
    pub(super) fn by_transaction(&self) -> bool {
        self.pooler.is_some_and(|pooler| pooler.by_transaction)
    }

    /// The folder of the server's data, where it is on this machine.
    pub(super) fn local_data(&self) -> Option<&Path> {
        self.facts.data_directory.as_deref().filter(|_| self.is_local)
    }

    /// The nodes that the sessions may use.
    pub(super) fn nodes(
        &self,
        plan: &Plan,
        server: &Server,
        control: &mut Connection,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<Nodes, RunError> {
        let conninfo = &server.conninfo;
        let spec = plan.work.spec();
        // Behind a transaction pool the node of a session is unknown, and calls of a loop in the server go
        // by one server's clock.
        if server.embedded || self.by_transaction() || spec.has_server_loop() {
            return Ok(Nodes::single(conninfo));
        }
        let found = Nodes::discover(control, conninfo, &plan.spread, spec.writes(), interrupt)?;
        for warning in &found.warnings {
            observer.notice(&format!("warning: {warning}"));
        }
        if found.nodes.list().len() > 1 {
            observer.notice(&format!("nodes: {} (spread {})", found.nodes, plan.spread));
        }
        Ok(found.nodes)
    }

    /// The load generator as it stands in the record.
    pub(super) fn client_record(&self, plan: &Plan) -> ClientRecord {
        ClientRecord {
            riops_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.client.clone().into(),
            workers: plan.workers,
            shares_machine_with_server: self.is_local,
        }
    }

    /// The server as it stands in the record.
    pub(super) fn target_record(
        &self,
        server: &Server,
        control: &Connection,
        dataset: Option<DatasetRecord>,
        history: &dyn History,
    ) -> TargetRecord {
        let facts = &self.facts;
        let storage = self.local_data().map(Storage::of_path);
        TargetRecord {
            flavor: facts.flavor,
            server_version: facts.version.clone(),
            version_text: facts.version_text.clone(),
            compiler_flags: facts.compiler_flags.clone(),
            embedded: server.embedded,
            encryption: control.encryption(),
            pooler: self.pooler.as_ref().map(ToString::to_string),
            disk_limit: storage.as_ref().and_then(|storage| {
                history.disk_limit(&self.client.host, storage.device.as_deref()?)
            }),
            storage: storage.map(Into::into),
            address: server.conninfo.address(),
            database: server.conninfo.database.clone(),
            settings: facts.settings.clone(),
            dataset,
        }
    }
}

/// Fails where the plan cannot be run through a pooler.
fn accept_pooler(pooler: Pooler, plan: &Plan, observer: &mut dyn Observer) -> Result<(), RunError> {
    observer.notice(&format!("between riops and the server: {pooler}"));
    if !pooler.by_transaction {
        return Ok(());
    }
    if plan.work.spec().has_server_loop() {
        return Err(RunError::Unsuitable(
            "--loop server needs sessions of its own: name the server itself, or use a session-mode pool".to_owned(),
        ));
    }
    if plan.protocol == Protocol::Prepared && !pooler.prepared_statements {
        return Err(RunError::Unsuitable(
            "the pooler passes prepared statements through as they are, so that they are missing on its other connections: use --protocol extended or simple, or a pooler that keeps track of them (PgBouncer from 1.21 on, with max_prepared_statements)".to_owned(),
        ));
    }
    observer.notice("no session settings are made, since they would stay in the pool: what the workload needs has to be set for the role or in the pooler (connect_query)");
    Ok(())
}
