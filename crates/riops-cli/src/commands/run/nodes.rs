//! The nodes of a run's target, and what is watched of them.

use anyhow::Result;
use riops::plan::{RunPlan, WorkPlan};
use riops::probe::waits::LockSampler;
use riops::probe::yugabytedb::ClusterProbe;
use riops::server::{Connection, Flavor, Nodes};

use super::ground::Ground;
use super::{Run, Setting};

/// Finds the nodes, and tells what there is to say about them.
pub(super) fn find_nodes(
    setting: &Setting<'_>,
    plan: &RunPlan,
    ground: &Ground,
    control: &mut Connection,
) -> Result<Nodes> {
    let Setting { target, interrupt, ui, .. } = setting;
    let conninfo = &target.conninfo;
    // Behind a pooler by transaction nobody knows where a session is.
    if target.embedded.is_some() || ground.by_transaction() {
        return Ok(Nodes::single(conninfo));
    }
    // The calls of a stage go by one server's clock.
    if matches!(&plan.work, WorkPlan::Rows(rows) if rows.has_server_loop()) {
        return Ok(Nodes::single(conninfo));
    }
    let writes = plan.work.writes();
    let found = Nodes::discover(control, conninfo, &plan.spread, writes, interrupt)?;
    for warning in &found.warnings {
        ui.notice(&format!("warning: {warning}"));
    }
    if found.nodes.list().len() > 1 {
        ui.notice(&format!("nodes: {} (spread {})", found.nodes, plan.spread));
    }
    Ok(found.nodes)
}

/// Looks at lock waits, where sessions can get in each other's way and the server tells of all of
/// them.
pub(super) fn lock_sampler(run: &Run<'_>, work: &WorkPlan) -> Option<LockSampler> {
    let contended = matches!(work, WorkPlan::Oltp(_)) && work.writes();
    let one_server = run.nodes.allowed().len() == 1;
    let tells = run.context.target.flavor == Flavor::PostgreSql;
    (contended && one_server && tells).then(|| LockSampler::new(&run.target.conninfo))
}

/// Asks the nodes of YugabyteDB for their own figures.
pub(super) fn cluster_probe(run: &Run<'_>) -> Option<ClusterProbe> {
    let nodes = run.nodes.list();
    let hosts = nodes.iter().map(|node| node.host.as_str());
    run.nodes.are_discovered().then(|| ClusterProbe::new(hosts, run.context.plan.metrics_port))
}
