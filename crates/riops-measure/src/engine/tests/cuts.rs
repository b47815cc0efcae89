//! Connection loss after every byte of a short run, in both directions: the engine must not panic or hang,
//! and every transaction must have exactly one outcome.

use riops_testkit::{Fault, Proxy};

use super::*;

const TRANSACTIONS: u64 = 6;

/// Runs `plan` through a proxy that injects `fault` into the first connection only.
fn run_through(fault: Fault, plan: &Plan) -> (Result<StageResult, EngineError>, (u64, u64)) {
    let server = FakeServer::start(|_, request| normal_reply(request)).unwrap();
    let only_first = move |session| if session == 0 { fault } else { Fault::None };
    let proxy = Proxy::start(server.folder(), only_first).unwrap();
    let result = run_on(proxy.folder(), plan, true);
    (result, proxy.forwarded())
}

/// Asserts that either the first session failed to connect, or every transaction has exactly one outcome.
fn assert_accounted(result: Result<StageResult, EngineError>, depth: u32, fault: Fault) {
    let result = match result {
        Ok(result) => result,
        Err(EngineError::Connect { session: 1, .. }) => return,
        Err(other) => panic!("{fault:?}: {other}"),
    };
    let count = |counter| counted(&result, counter);
    let (succeeded, failed) = (count(Counter::Transactions), count(Counter::Failed));
    let unknown = count(Counter::Unknown);
    assert_eq!(succeeded + failed + unknown, TRANSACTIONS, "{fault:?}");
    assert!(result.workers.failure.is_none(), "{fault:?}: {:?}", result.workers.failure);
    assert!(counted(&result, Counter::Reconnects) <= 1, "{fault:?}");
    // Only the transactions in flight are lost with the connection.
    assert!(failed + unknown <= depth.into(), "{fault:?}: {failed} {unknown}");
    assert_eq!(result.workers.acknowledged[1].transactions_unknown, unknown, "{fault:?}");
    let broke = counted(&result, Counter::Errors);
    assert!(broke <= 1 && broke >= (failed + unknown).min(1), "{fault:?}: {broke}");
    let acknowledged: u64 =
        result.workers.acknowledged.iter().map(|operation| operation.transactions).sum();
    assert_eq!(acknowledged, succeeded, "{fault:?}");
}

fn short(pipeline: u32) -> Plan {
    Plan { pipeline, ..plan(Stop::Transactions(TRANSACTIONS), 1, 1) }
}

/// Repeats the run with the fault after each byte.
fn at_every_byte(depth: u32, bytes: u64, fault: fn(u64) -> Fault) {
    for byte in 0..=bytes {
        let fault = fault(byte);
        assert_accounted(run_through(fault, &short(depth)).0, depth, fault);
    }
}

#[test]
fn accounts_for_all_transactions_after_a_cut_at_any_byte_to_the_client() {
    let (result, (_, to_client)) = run_through(Fault::None, &short(1));
    assert_accounted(result, 1, Fault::None);
    assert!(to_client > 500, "{to_client}");
    at_every_byte(1, to_client, Fault::CutToClient);
    at_every_byte(4, to_client, Fault::CutToClient);
}

#[test]
fn accounts_for_all_transactions_after_a_cut_at_any_byte_to_the_server() {
    let (_, (to_server, _)) = run_through(Fault::None, &short(1));
    assert!(to_server > 400, "{to_server}");
    at_every_byte(1, to_server, Fault::CutToServer);
    at_every_byte(4, to_server, Fault::CutToServer);
}

#[test]
fn decodes_replies_that_arrive_byte_by_byte() {
    for depth in [1, 4] {
        let (result, _) = run_through(Fault::Drip, &short(depth));
        assert_accounted(result, depth, Fault::Drip);
    }
}
