//! Transactions whose statements commit separately: a statement counts when its commit is acknowledged.

use riops_wire::backend::{Message, error_response};

use super::*;
use crate::workload::effects::TransactionEffects;
use riops_model::record::Effects;

const ONE_ROW: Effects = Effects { inserted: 1, reinserted: 0, deleted: 0, added: 0 };

/// Generates transactions of two inserts that commit separately.
struct Inserts;

impl Generator for Inserts {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(1, 2);
        for _ in 0..2 {
            tx.execute(1, &[1, 10]);
            tx.changes(TransactionEffects::on_table(1, ONE_ROW));
            tx.end_step();
        }
        tx.autocommit();
        true
    }

    fn reply(&mut self, _: &Transaction, _: &RowReply<'_>, _: &mut TransactionOutcome) {}

    fn complete(&mut self, _: &Transaction, tag: &str, outcome: &mut TransactionOutcome) {
        outcome.wrong |= tag != "INSERT 0 1" || outcome.complete >= 2;
        outcome.rows += 1;
        outcome.effects.add(1, ONE_ROW);
        outcome.complete += 1;
    }
}

/// Returns the completion of an insert.
fn inserted() -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::CommandComplete("INSERT 0 1").encode(&mut bytes).unwrap();
    bytes
}

/// Returns the completion of an insert, and the error of its commit at the Sync.
fn failed_at_commit(sqlstate: &str) -> Reply {
    let mut bytes = inserted();
    let fields = [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', sqlstate), (b'M', "deferred trigger")];
    error_response(&mut bytes, &fields).unwrap();
    Reply::Raw(bytes)
}

/// Runs five transactions; `reply` is the reply to the second insert of the second one.
fn run_inserts(reply: Reply, on_error: OnError, retried: Vec<SqlState>) -> StageResult {
    let executed = AtomicU64::new(0);
    let server = FakeServer::start(move |_, request| match request {
        Request::Execute { .. } if executed.fetch_add(1, Ordering::Relaxed) == 3 => reply.clone(),
        Request::Execute { .. } => Reply::Raw(inserted()),
        other => normal_reply(other),
    })
    .unwrap();
    let errors = ErrorPolicy { on_error, ..ErrorPolicy::default() };
    let plan = Plan { errors, ..plan(Stop::Transactions(5), 1, 1) };
    let mut stage = Stage { retried, ..stage(1, true) };
    stage.sessions[0].work = Work::Client(Box::new(Inserts));
    run_stage(
        stage,
        Vec::new(),
        &plan,
        &Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test")),
        &Interrupt::new(),
        &mut Probe::without_processes(),
        &mut Hooks::default(),
    )
    .unwrap()
}

/// Returns the acknowledged transactions, rows and effects, and the effects with an unknown outcome.
fn acknowledged(result: &StageResult) -> (u64, u64, u64, u64) {
    let inserts = &result.workers.acknowledged[1];
    let (done, unknown) = (inserts.effects.on_table(1), inserts.effects_unknown.on_table(1));
    (inserts.transactions, inserts.rows, done.inserted, unknown.inserted)
}

#[test]
fn a_statement_that_fails_at_its_commit_and_is_retried_counts_once() {
    let result = run_inserts(failed_at_commit("40001"), OnError::Stop, Vec::new());
    assert_eq!(counted(&result, Counter::Retries), 1);
    assert_eq!(acknowledged(&result), (5, 10, 10, 0));
    assert_eq!((result.workers.wrong_replies, result.workers.failure), (0, None));
}

#[test]
fn a_statement_that_fails_at_its_commit_does_not_count() {
    // The first statement of the failed transaction was committed.
    let result = run_inserts(failed_at_commit("23514"), OnError::Continue, Vec::new());
    assert_eq!(counted(&result, Counter::Failed), 1);
    assert_eq!(acknowledged(&result), (4, 8, 9, 0));
    // A skipped statement: the transaction continues without it.
    let duplicate = SqlState::parse("23505");
    let result = run_inserts(failed_at_commit("23505"), OnError::Stop, vec![duplicate]);
    assert_eq!(acknowledged(&result), (5, 9, 9, 0));
    assert_eq!(result.workers.wrong_replies, 0);
}

#[test]
fn a_statement_without_an_acknowledged_commit_is_unknown() {
    let result = run_inserts(Reply::RawThenClose(inserted()), OnError::Stop, Vec::new());
    assert_eq!(counted(&result, Counter::Unknown), 1);
    assert_eq!(acknowledged(&result), (4, 8, 9, 1));
}
