//! What a plan builds without a server: the tables, and some transactions of the first session of each stage.

use std::sync::Arc;

use riops::plan::{DatasetPlan, LoadDataset, Plan, PlanError, Protocol, WorkPlan};
use riops::server::Dialect;
use riops::workload::check::Ledger;
use riops::workload::load::Load;
use riops::workload::tables::{Dataset, Job};
use riops::workload::transaction::{Statements, Transaction, TransactionOutcome};
use riops::workload::turn::Turn;
use riops::workload::{
    Answers, Build, BuildFor, Call, Generator, ServerLoop, SessionPlan, Work, Workload,
};
use riops_wire::backend::{self, Message};
use riops_wire::frame;

/// Each session has the same kind of work.
const SESSIONS_MAX: u32 = 3;
const TRANSACTIONS: usize = 3;
/// More than the commands of a script of 4 kB.
const TURNS_MAX: usize = 5_000;
const PIECES_MAX: usize = 1;
/// The checks of larger tables generate their rows again.
const CHECKED_ROWS_MAX: u64 = 10_000;

/// Builds everything that does not need a server. Returns an error if the plan does not fit the dataset.
pub fn build_all(plan: &Plan, dialect: Dialect, reply: &str) -> Result<(), PlanError> {
    let dataset = plan.prepared()?;
    let used = dataset.as_ref().map(|dataset| dataset.part(&plan.part)).transpose()?;
    let few = Plan { sessions: plan.sessions.min(SESSIONS_MAX), workers: 1, ..plan.clone() };
    let inputs =
        BuildFor { dataset: dataset.as_ref(), used: used.as_ref(), dialect, protocol: plan.protocol };
    for work in plan.work.stages() {
        if let Some(mut workload) = build(&work, inputs)? {
            use_workload(workload.as_mut(), &few, dialect, reply);
        }
    }
    if let Some(Ok(workload)) = dataset.as_ref().map(riops::workload::on) {
        fill(&workload.dataset(dialect));
    }
    Ok(())
}

fn build(work: &WorkPlan, inputs: BuildFor<'_>) -> Result<Option<Box<dyn Workload>>, PlanError> {
    match work {
        WorkPlan::Rows(run) => run.build(inputs).map(Some),
        WorkPlan::Load(run) => {
            let dataset = inputs.dataset.and_then(DatasetPlan::get::<LoadDataset>).cloned();
            let load = |dataset| Box::new(Load::new(dataset, run.clone()).on(inputs.dialect));
            Ok(dataset.map(|dataset| load(dataset) as Box<dyn Workload>))
        }
        WorkPlan::Point(run) => run.build(inputs).map(Some),
        WorkPlan::Oltp(run) => run.build(inputs).map(Some),
        WorkPlan::Ping(run) => run.build(inputs).map(Some),
        WorkPlan::Script(run) => run.build(inputs).map(Some),
        WorkPlan::Cbc(_) | WorkPlan::Imported(_) | WorkPlan::Observe(_) => Ok(None),
    }
}

fn use_workload(workload: &mut dyn Workload, plan: &Plan, dialect: Dialect, reply: &str) {
    let questions = workload.questions();
    workload.set_answers(&Answers {
        integers: vec![1_000; questions.integers.len()],
        can_be_prepared: questions.statements.iter().map(|_| reply.is_empty()).collect(),
    });
    let _ = (workload.maintenance(), workload.accesses(), workload.routines());
    fill(&workload.dataset(dialect));
    let ledger = Ledger::default();
    let _ = workload.ledger_sql(&ledger);
    let tables = workload.dataset(dialect).tables;
    if tables.iter().all(|table| table.rows <= CHECKED_ROWS_MAX) {
        let row = |_: &_| vec![1, 0, i128::from(u64::MAX), 7];
        let contents: Vec<Vec<i128>> = workload.contents_sql().iter().map(row).collect();
        let _ = workload.checks(&contents, &contents, &ledger);
    }
    let stage = workload.stage(plan);
    let _ = stage.statement_texts();
    if let Some(session) = stage.sessions.into_iter().next() {
        run(session, plan.protocol, reply);
    }
}

fn fill(dataset: &Dataset) {
    for table in &dataset.tables {
        let numbers = [0, table.jobs.saturating_sub(1)];
        for job in numbers.into_iter().filter(|&job| job < table.jobs) {
            if let Job::Copy { mut source, .. } = (table.job)(job) {
                let mut out = Vec::new();
                let _ = (0..PIECES_MAX).all(|_| source(&mut out));
            }
        }
    }
}

fn run(session: SessionPlan, protocol: Protocol, reply: &str) {
    let statements = Arc::new(Statements::new(protocol, session.statements));
    match session.work {
        Work::Client(mut generator) => {
            let mut tx = Transaction::new(statements);
            generator.connected();
            for _ in 0..TRANSACTIONS {
                if !generator.has_next() || !generator.next(&mut tx) {
                    break;
                }
                transaction(generator.as_mut(), &mut tx, reply);
            }
        }
        Work::Server(server_loop) => call(server_loop.as_ref(), reply),
    }
}

fn transaction(generator: &mut dyn Generator, tx: &mut Transaction, reply: &str) {
    if !tx.is_interactive() {
        for _ in 0..PIECES_MAX {
            if tx.next_row().is_some() {
                generator.piece(tx, &mut Vec::new());
            }
        }
        return answer(generator, tx, reply);
    }
    let output = Ok(reply.lines().next().unwrap_or_default().to_owned());
    let mut after_shell = false;
    for _ in 0..TURNS_MAX {
        let turn = generator.proceed(tx, false, after_shell.then_some(&output));
        after_shell = matches!(turn, Turn::Shell(_));
        match turn {
            Turn::Send => answer(generator, tx, reply),
            Turn::Sleep(_) | Turn::Shell(_) => {}
            Turn::End => return,
            Turn::Fail(error) => {
                let _ = error.to_string();
                return generator.restart(tx);
            }
        }
    }
    panic!("a transaction without an end");
}

/// Answers all statements of the transaction with the lines of the reply, each with tabs between its columns. The first
/// line has the names of the columns.
fn answer(generator: &mut dyn Generator, tx: &Transaction, reply: &str) {
    let mut bytes = Vec::new();
    let names: Vec<&str> = reply.lines().next().unwrap_or_default().split('\t').collect();
    if backend::row_description(&mut bytes, &names).is_err() {
        return;
    }
    for line in reply.lines().skip(1) {
        let values: Vec<Option<&[u8]>> =
            line.split('\t').map(|value| (value != "\\N").then_some(value.as_bytes())).collect();
        if backend::data_row(&mut bytes, &values).is_err() {
            return;
        }
    }
    if Message::CommandComplete("UPDATE 1").encode(&mut bytes).is_err() {
        return;
    }
    let mut outcome = TransactionOutcome::default();
    let mut rest = bytes.as_slice();
    while let Ok(Some((frame, later))) = frame::split(rest, frame::FRAME_BYTES_MAX) {
        match Message::decode(frame) {
            Ok(Message::RowDescription(columns)) => generator.columns(tx, &columns),
            Ok(Message::DataRow(row)) => generator.reply(tx, &tx.reply(row), &mut outcome),
            Ok(Message::CommandComplete(tag)) => generator.complete(tx, tag, &mut outcome),
            _ => {}
        }
        rest = later;
    }
}

fn call(server_loop: &dyn ServerLoop, reply: &str) {
    let _ = server_loop.call_sql(&Call {
        id: "a".to_owned(),
        start_s: 1.0,
        measure_s: 2.0,
        until_s: Some(3.0),
        transactions: None,
        rows: None,
        report_s: 1.0,
        explain_statements: &[],
    });
    let _ = (server_loop.before_first_report(), server_loop.read(reply));
}
