//! Interactive transactions: scripts against a fake server.

use std::sync::Mutex;

use riops_testkit::{Fault, Proxy};
use riops_wire::backend::{self, Message};

use super::virtual_time::{Setting, StepClock, worker};
use super::*;
use crate::workload::{Build as _, BuildFor};
use riops_model::plan::{ScriptRun, ScriptSource};

/// The commands on which the next statement depends.
const COMMANDS: &str = "\\set n random(1, 5)
begin;
select :n as m \\gset
\\if :m > 0
update t set a = :m;
\\else
select 2;
\\endif
end;
select :m as m \\aset
";
/// A pipeline, which the simple protocol does not support.
const PIPELINE: &str = "\\startpipeline
insert into t values (:m);
\\syncpipeline
select 3;
\\endpipeline
";

fn script(text: &str, plan: &Plan) -> Stage {
    let source = ScriptSource { name: "a.sql".into(), weight: 1, text: Some(text.into()) };
    let run = ScriptRun { scripts: vec![source], allow_shell: true, ..ScriptRun::default() };
    let (dialect, protocol) = (Dialect::default(), plan.protocol);
    let target = BuildFor { dataset: None, used: None, dialect, protocol };
    run.build(target).unwrap().stage(plan)
}

/// Returns the reply of a row with one column, and its description.
fn row() -> Reply {
    let mut bytes = Vec::new();
    backend::row_description(&mut bytes, &["m"]).unwrap();
    backend::data_row(&mut bytes, &[Some(b"1")]).unwrap();
    Message::CommandComplete("SELECT 1").encode(&mut bytes).unwrap();
    Reply::Raw(bytes)
}

fn reply(request: &Request<'_>) -> Reply {
    match request {
        Request::Parse(_) => Reply::Done,
        Request::Query(_) | Request::Execute { .. } => row(),
    }
}

fn run_script(
    text: &str,
    plan: &Plan,
    folder: &std::path::Path,
) -> Result<StageResult, EngineError> {
    let nodes = Nodes::single(&ConnInfo::unix(folder, PORT, "riops", "test"));
    let (stage, interrupt) = (script(text, plan), Interrupt::new());
    run_stage(
        stage,
        Vec::new(),
        plan,
        &nodes,
        &interrupt,
        &mut Probe::without_processes(),
        &mut Hooks::default(),
    )
}

/// Runs the script through a proxy that injects `fault` into the first connection only.
fn run_through(fault: Fault, plan: &Plan) -> (Result<StageResult, EngineError>, (u64, u64)) {
    let server = FakeServer::start(|_, request| reply(request)).unwrap();
    let only_first = move |session| if session == 0 { fault } else { Fault::None };
    let proxy = Proxy::start(server.folder(), only_first).unwrap();
    let pipeline = if plan.protocol == Protocol::Simple { "" } else { PIPELINE };
    (run_script(&format!("{COMMANDS}{pipeline}"), plan, proxy.folder()), proxy.forwarded())
}

fn assert_accounted(result: Result<StageResult, EngineError>, transactions: u64, fault: Fault) {
    let result = match result {
        Ok(result) => result,
        Err(EngineError::Connect { session: 1, .. }) => return,
        Err(other) => panic!("{fault:?}: {other}"),
    };
    let count = |counter| counted(&result, counter);
    let (succeeded, failed) = (count(Counter::Transactions), count(Counter::Failed));
    let unknown = count(Counter::Unknown);
    assert_eq!(succeeded + failed + unknown, transactions, "{fault:?}");
    assert!(result.workers.failure.is_none(), "{fault:?}: {:?}", result.workers.failure);
    assert!(failed + unknown <= 1, "{fault:?}");
    assert_eq!(result.workers.acknowledged[0].transactions, succeeded, "{fault:?}");
    assert_eq!(result.workers.acknowledged[0].transactions_unknown, unknown, "{fault:?}");
}

#[test]
fn each_transaction_of_a_script_has_one_outcome_after_a_cut_at_any_byte() {
    for (protocol, least) in [(Protocol::Prepared, 400), (Protocol::Simple, 300)] {
        let plan = Plan { protocol, ..plan(Stop::Transactions(2), 1, 1) };
        let (result, (to_server, to_client)) = run_through(Fault::None, &plan);
        assert_accounted(result, 2, Fault::None);
        assert!(to_server > least && to_client > 500, "{protocol:?}: {to_server} {to_client}");
        let to_client = (0..=to_client).map(Fault::CutToClient);
        let to_server = (0..=to_server).map(Fault::CutToServer);
        for fault in to_client.chain(to_server).chain([Fault::Drip]) {
            assert_accounted(run_through(fault, &plan).0, 2, fault);
        }
    }
}

/// Returns the queries that a script sends with the simple protocol, with the result. `fails` decides by the number of
/// the query.
fn queries(
    text: &str,
    plan: &Plan,
    fails: fn(usize) -> bool,
) -> (Vec<String>, Result<StageResult, EngineError>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&seen);
    let server = FakeServer::start(move |_, request| {
        let Request::Query(sql) = request else {
            return Reply::Done;
        };
        if sql.starts_with("explain") {
            return row();
        }
        let mut seen = seen.lock().unwrap();
        seen.push((*sql).to_owned());
        if fails(seen.len()) {
            return Reply::Error { sqlstate: "40001", message: "serialization failure" };
        }
        row()
    });
    let server = server.unwrap();
    let plan = Plan { protocol: Protocol::Simple, ..plan.clone() };
    let result = run_script(text, &plan, server.folder());
    let sent = sent.lock().unwrap().clone();
    (sent, result)
}

#[test]
fn a_retry_has_the_variables_and_random_numbers_of_the_first_attempt() {
    let text = "\\set n :client_id + random(1, 1000000)\nselect :n;\n\\set n :n + 1\nselect :n;\n";
    let plan = plan(Stop::Transactions(2), 1, 1);
    // The second query of the first attempt, and the first one of its retry.
    let (sent, result) = queries(text, &plan, |position| position == 2 || position == 3);
    let result = result.unwrap();
    assert_eq!((counted(&result, Counter::Retries), transactions(&result)), (2, 2));
    let parsed = |at: usize| sent[at].trim_matches(|c: char| !c.is_ascii_digit()).parse::<i64>();
    let numbers: Vec<i64> = (0..sent.len()).map(|at| parsed(at).unwrap()).collect();
    let first = numbers[0];
    assert_eq!(numbers[..5], [first, first + 1, first, first, first + 1]);
    assert_eq!((numbers.len(), numbers[6]), (7, numbers[5] + 1));
    assert_ne!(numbers[5], first);
    let commands: Vec<_> = result
        .workers
        .recorder
        .commands
        .totals
        .iter()
        .map(|command| (command.failures, command.retries))
        .collect();
    assert_eq!(commands, [(0, 0), (1, 1), (0, 0), (1, 1)]);
}

#[test]
fn transactions_without_a_statement_end_and_let_others_go_on() {
    let plan = plan(Stop::Transactions(500), 3, 1);
    let (sent, result) = queries("\\set n 1\n", &plan, |_| false);
    let result = result.unwrap();
    assert_eq!((transactions(&result), sent.len()), (500, 0));
    assert!(result.workers.sessions.iter().all(|session| session.transactions() > 150));
    let (_, result) = queries("\\sleep 1 us\n\\setshell x echo 7\nselect :x;\n", &plan, |_| false);
    assert_eq!(transactions(&result.unwrap()), 500);
}

#[test]
fn errors_of_the_script_are_errors_of_its_transactions() {
    let stopping = plan(Stop::Transactions(20), 2, 1);
    let errors = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let continuing = Plan { errors, ..stopping.clone() };
    for (text, sqlstate) in [
        ("\\set x 1 / (1 - 1)\n", "22012"),
        ("select 1;\n\\set x 1 / (1 - 1)\n", "22012"),
        ("\\setshell x echo a\n", "22P02"),
        ("\\shell exit 3\n", "38000"),
    ] {
        let (_, result) = queries(text, &continuing, |_| false);
        let result = result.unwrap();
        assert_eq!(counted(&result, Counter::Failed), 20, "{text}");
        assert_eq!(result.workers.recorder.errors.entries[0].sqlstate, sqlstate, "{text}");
        let (_, result) = queries(text, &stopping, |_| false);
        let failure = result.unwrap().workers.failure.unwrap().to_string();
        assert!(failure.contains("a.sql:"), "{failure}");
    }
}

#[test]
fn errors_belong_to_their_command() {
    let errors = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = Plan { errors, ..plan(Stop::Transactions(4), 1, 1) };
    for (text, failures) in [
        ("select 1;\n\\set x 1 / 0\nselect 2;\n", vec![0, 4, 0]),
        ("\\set x 1 / 0\nselect 2;\n", vec![4, 0]),
        ("select 1;\n\\if 1 / 0 = 1\nselect 2;\n\\endif\n", vec![0, 4, 0, 0]),
        ("select 2;\n\\shell exit 3\n", vec![0, 4]),
        ("select 1 as a \\gset\n\\sleep :b us\n", vec![0, 4]),
        ("select 1 as m \\gset\nselect 1;\n\\shell :other\n", vec![0, 0, 4]),
    ] {
        let (_, result) = queries(text, &plan, |_| false);
        let result = result.unwrap();
        let by_command: Vec<_> = result
            .workers
            .recorder
            .commands
            .totals
            .iter()
            .map(|command| command.failures)
            .collect();
        assert_eq!((by_command, counted(&result, Counter::Failed)), (failures, 4), "{text}");
    }
}

#[test]
fn a_parameter_without_a_value_is_an_error() {
    let errors = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = Plan { errors, ..plan(Stop::Transactions(4), 1, 1) };
    let server = FakeServer::start(|_, request| reply(request)).unwrap();
    // The reply has another column.
    let text = "select 1 as m \\gset\nselect :other;\n";
    let result = run_script(text, &plan, server.folder()).unwrap();
    let entry = &result.workers.recorder.errors.entries[0];
    assert_eq!((entry.sqlstate.as_str(), entry.count), ("42704", 4));
    assert!(entry.sample.contains("undefined variable \"other\""), "{}", entry.sample);
}

#[test]
fn after_the_end_of_the_measurement_no_transaction_is_repeated() {
    let errors = ErrorPolicy { max_retries: u32::MAX, ..ErrorPolicy::default() };
    let plan = Plan { errors, ..plan(Stop::DurationS(0.3), 2, 1) };
    let (_, result) = queries("select 1;\n", &plan, |_| true);
    let result = result.unwrap();
    assert!(result.workers.failure.is_none(), "{:?}", result.workers.failure);
    assert_eq!((transactions(&result), counted(&result, Counter::Failed)), (0, 0));
    assert!(counted(&result, Counter::Retries) > 0);
}

#[test]
fn in_steady_state_a_script_allocates_nothing() {
    for protocol in [Protocol::Prepared, Protocol::Simple, Protocol::Extended] {
        let allocations = |count| {
            let setting =
                Setting { stop: Stop::Transactions(count), protocol, ..Setting::default() };
            let server = FakeServer::start(|_, request| reply(request)).unwrap();
            let nodes = Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test"));
            let plan = Plan { protocol, ..plan(setting.stop, 1, 1) };
            let mut text = "\\set n random_zipfian(1, 100, 1.1)\n\\set d :n * 0.37\n\\if :n > 50\nselect :n;\n\\else\nupdate t set a = :n, b = :d;\n\\endif\nselect :n + 0.5, true;\nselect :n as m \\gset\nselect :m as m \\aset\n\\sleep 1 us\n".to_owned();
            if protocol != Protocol::Simple {
                text += "\\startpipeline\nselect :m;\nselect :d;\n\\endpipeline\n";
            }
            let session = script(&text, &plan).sessions.remove(0);
            let Work::Client(client) = session.work else { panic!("the loop runs in the server") };
            let (worker, _events) =
                worker(&nodes, StepClock(Arc::default()), &setting, vec![client]);
            let mut report = None;
            let measured = allocation_counter::measure(|| report = Some(worker.run()));
            assert_eq!(report.unwrap().acknowledged[0].transactions, count);
            measured.count_total
        };
        assert_eq!(allocations(500), allocations(5_500), "{protocol:?}");
    }
}
