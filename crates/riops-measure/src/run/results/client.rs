//! CPU use of riops itself, and whether it was the bottleneck.

use crate::probe::MachineUse;
use riops_model::plan::Plan;
use riops_model::record::{
    ClientCpu, ClientLimit, LatencySummary, THROTTLED_SHARE, counters_cover,
};

/// From this share of one processor on, a thread has no idle time left.
const BUSY_SHARE: f64 = 0.9;
/// In a shorter measurement, a few time slices of another thread are a large share.
const RUN_QUEUE_S_MIN: f64 = 0.5;
/// From this share of the session time on, the sessions mostly waited for the server.
const WAITING_SHARE: f64 = 0.5;
/// From this share of the median latency on, replies mostly wait for the poll loop.
const STALL_SHARE: f64 = 0.5;

/// Facts about the client in a stage, besides the counters of the probes.
#[derive(Default)]
pub(super) struct ClientUse<'a> {
    /// CPU seconds of each worker.
    pub(super) workers_s: &'a [f64],
    pub(super) seconds: f64,
    pub(super) transactions: u64,
    pub(super) sessions: usize,
    /// Poll-loop stalls, and the latency they are compared with.
    pub(super) stalls: Option<LatencySummary>,
    pub(super) latency: Option<LatencySummary>,
    /// Whether the server is on the same machine, and riops may use all its processors: riops then waits for a
    /// processor only when the server does.
    pub(super) shares_processors: bool,
}

pub(super) fn client_cpu(
    usage: &MachineUse,
    client: &ClientUse<'_>,
    plan: &Plan,
) -> Option<ClientCpu> {
    let process_s = usage.client_cpu_s?;
    if client.seconds <= 0.0 {
        return None;
    }
    let busiest_s = client.workers_s.iter().copied().fold(0.0, f64::max);
    let threads = usage.threads.unwrap_or_default();
    let mut cpu = ClientCpu {
        seconds: process_s,
        us_per_transaction: (client.transactions > 0
            && counters_cover(usage.seconds, client.seconds))
        .then(|| process_s * 1e6 / client.transactions as f64),
        share_of_client: busiest_s / client.seconds,
        worker_shares: client.workers_s.iter().map(|worker| worker / client.seconds).collect(),
        run_queue_share: threads.run_queue_share,
        connector_share: threads.connector_share.filter(|_| plan.reconnect_every.is_some()),
        throttled_share: usage.throttled_share,
        away_us: client.stalls.clone(),
        limits: Vec::new(),
        limited: false,
    };
    cpu.limits = limits(&cpu, usage, client, plan);
    cpu.limited = !cpu.limits.is_empty();
    Some(cpu)
}

fn limits(
    cpu: &ClientCpu,
    usage: &MachineUse,
    client: &ClientUse<'_>,
    plan: &Plan,
) -> Vec<ClientLimit> {
    let at_least = |share: Option<f64>, least: f64| share.is_some_and(|share| share >= least);
    let machine_is_full = at_least(usage.machine_busy_share, BUSY_SHARE);
    let waits_for_processor = client.seconds >= RUN_QUEUE_S_MIN && cpu.is_contended();
    // The server waits for the processors as well.
    let shares_wait = client.shares_processors && (machine_is_full || waits_for_processor);
    // The same quota, which the server exhausts as well.
    let of_server = usage.server_throttled_share;
    let shares_quota = of_server.is_some() && of_server >= cpu.throttled_share;
    let candidates = [
        (ClientLimit::Worker, cpu.share_of_client >= BUSY_SHARE),
        (ClientLimit::Machine, machine_is_full && !client.shares_processors),
        (ClientLimit::Quota, at_least(cpu.throttled_share, THROTTLED_SHARE) && !shares_quota),
        (ClientLimit::Connectors, at_least(cpu.connector_share, BUSY_SHARE)),
        (ClientLimit::RunQueue, !shares_wait && waits_for_processor),
        (ClientLimit::PollLoop, !shares_wait && has_waiting_replies(usage, client, plan)),
    ];
    candidates.into_iter().filter_map(|(limit, applies)| applies.then_some(limit)).collect()
}

/// Whether the stalls of the poll loop are most of the median latency. It says nothing if the sessions waited for the server
/// most of the time, as in a few transactions that took long.
fn has_waiting_replies(usage: &MachineUse, client: &ClientUse<'_>, plan: &Plan) -> bool {
    let sessions = u32::try_from(client.sessions).unwrap_or(u32::MAX);
    let latencies = client.stalls.as_ref().zip(client.latency.as_ref());
    let sampled = usage.sampled.as_ref();
    has_shared_loops(sessions, plan, client.workers_s.len())
        && sampled.is_none_or(|sampled| sampled.server_wait_share() < WAITING_SHARE)
        && latencies.is_some_and(|(stalls, latency)| stalls.p50 >= STALL_SHARE * latency.p50)
}

/// Whether the poll loop of a worker serves more than one transaction at a time. Only then, a reply waits while
/// the loop handles another one.
pub(in crate::run) fn has_shared_loops(sessions: u32, plan: &Plan, workers: usize) -> bool {
    u64::from(sessions) * u64::from(plan.pipeline) > workers as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::threads::ThreadsUse;
    use riops_model::record::{Sampled, WaitShare};

    fn latency(us: f64) -> LatencySummary {
        LatencySummary::for_test(us, us)
    }

    /// The limits of a client with one change.
    fn limits_with(
        change: impl FnOnce(&mut MachineUse, &mut ClientUse<'_>, &mut Plan),
    ) -> Vec<ClientLimit> {
        let mut usage = MachineUse {
            seconds: 10.0,
            client_cpu_s: Some(5.0),
            machine_busy_share: Some(0.5),
            throttled_share: Some(0.0),
            threads: Some(ThreadsUse { run_queue_share: Some(0.02), connector_share: Some(0.95) }),
            ..MachineUse::default()
        };
        let mut plan = Plan::default();
        let mut client = ClientUse {
            workers_s: &[2.0, 3.0],
            seconds: 10.0,
            transactions: 1_000,
            sessions: 8,
            stalls: Some(latency(20.0)),
            latency: Some(latency(500.0)),
            shares_processors: false,
        };
        change(&mut usage, &mut client, &mut plan);
        client_cpu(&usage, &client, &plan).unwrap().limits
    }

    #[test]
    fn each_resource_of_the_client_can_be_the_limit() {
        assert_eq!(limits_with(|_, _, _| {}), []);
        let worker = limits_with(|_, client, _| client.workers_s = &[2.0, 9.5]);
        assert_eq!(worker, [ClientLimit::Worker]);
        let machine = limits_with(|usage, _, _| usage.machine_busy_share = Some(0.95));
        assert_eq!(machine, [ClientLimit::Machine]);
        let quota = limits_with(|usage, _, _| usage.throttled_share = Some(0.4));
        assert_eq!(quota, [ClientLimit::Quota]);
        let quota = limits_with(|usage, _, _| {
            (usage.throttled_share, usage.server_throttled_share) = (Some(0.4), Some(0.4));
        });
        assert_eq!(quota, []);
        // Only sessions that reconnect on purpose depend on the connectors.
        let connectors = limits_with(|_, _, plan| plan.reconnect_every = Some(1));
        assert_eq!(connectors, [ClientLimit::Connectors]);
        let threads = ThreadsUse { run_queue_share: Some(0.2), connector_share: None };
        let run_queue = limits_with(|usage, _, _| usage.threads = Some(threads));
        assert_eq!(run_queue, [ClientLimit::RunQueue]);
        let poll_loop = limits_with(|_, client, _| client.stalls = Some(latency(300.0)));
        assert_eq!(poll_loop, [ClientLimit::PollLoop]);
        let waiting = limits_with(|usage, client, _| {
            client.stalls = Some(latency(300.0));
            let waits = [("Lock:relation", 0.59), ("idle", 0.41)];
            let waits = waits.map(|(event, share)| WaitShare { event: event.to_owned(), share });
            usage.sampled = Some(Sampled { waits: waits.to_vec(), ..Sampled::default() });
        });
        assert_eq!(waiting, []);
    }

    #[test]
    fn a_full_machine_that_the_server_shares_is_not_a_limit_of_the_client() {
        let threads = ThreadsUse { run_queue_share: Some(0.4), connector_share: None };
        let limits = limits_with(|usage, client, _| {
            (usage.machine_busy_share, usage.threads) = (Some(0.99), Some(threads));
            client.stalls = Some(latency(300.0));
            client.shares_processors = true;
        });
        assert_eq!(limits, []);
        // Not all processors need to be busy all the time.
        let limits = limits_with(|usage, client, _| {
            (usage.machine_busy_share, usage.threads) = (Some(0.8), Some(threads));
            client.stalls = Some(latency(300.0));
            client.shares_processors = true;
        });
        assert_eq!(limits, []);
    }

    #[test]
    fn stalls_do_not_delay_the_reply_to_the_only_session_of_a_worker() {
        let limits = limits_with(|_, client, _| {
            client.stalls = Some(latency(300.0));
            client.sessions = 2;
        });
        assert_eq!(limits, []);
    }
}
