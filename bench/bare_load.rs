//! A load without data generation and measurements, as the peer of `riops run load` in `bench.py`. It sends
//! the same bytes, which are encoded before the clock starts. Each session is a thread that waits for each
//! batch.
//!
//! Usage: `bare_load URL ROWS BATCH SESSIONS`. Truncates the table `riops.test_table`, loads it, and prints
//! the rows per second and the CPU time per row in microseconds.

use std::io::{Read, Write};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use riops_measure::host::Interrupt;
use riops_measure::probe::cpu;
use riops_measure::server::{ConnInfo, Connection, Stream};
use riops_measure::workload::load::Load;
use riops_measure::workload::transaction::{Statements, Transaction};
use riops_measure::workload::{Generator, SessionPlan, Work, Workload};
use riops_model::plan::{LoadDataset, LoadRun, Plan, Protocol, WorkPlan};
use riops_wire::backend::Message;
use riops_wire::frame::FrameBuffer;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let [_, url, rows, batch, sessions] = words.as_slice() else {
        return Err("usage: bare_load URL ROWS BATCH SESSIONS".into());
    };
    let dataset = LoadDataset { rows: rows.parse()?, ..LoadDataset::default() };
    let total = dataset.rows;
    let run = LoadRun { batch_size: batch.parse()?, ..LoadRun::default() };
    let work = WorkPlan::Load(run.clone());
    let plan = Plan { work, sessions: sessions.parse()?, ..Plan::default() };
    let stage = Load::new(dataset, run).stage(&plan);
    let info = ConnInfo::parse(url, |_| None)?;
    Connection::open(&info, &Interrupt::new())?.execute("truncate riops.test_table; checkpoint")?;
    let mut sessions = stage
        .sessions
        .into_iter()
        .map(|plan| Session::open(&info, plan))
        .collect::<Result<Vec<_>, _>>()?;
    // Round-robin, as the sessions would take the batches.
    while sessions.iter_mut().map(Session::build).fold(false, |any, built| any | built) {}
    let barrier = Arc::new(Barrier::new(sessions.len() + 1));
    let threads: Vec<_> = sessions
        .into_iter()
        .map(|session| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                session.load()
            })
        })
        .collect();
    barrier.wait();
    let start = Instant::now();
    let mut cpu_s = 0.0;
    for thread in threads {
        cpu_s += thread.join().map_err(|_| "a session thread panicked")??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (rate, each_us) = (total as f64 / seconds, cpu_s * 1e6 / total as f64);
    writeln!(std::io::stdout(), "{rate} {each_us}")?;
    Ok(())
}

struct Session {
    stream: Stream,
    received: FrameBuffer,
    generator: Box<dyn Generator>,
    tx: Transaction,
    batches: Vec<Vec<u8>>,
}

impl Session {
    fn open(info: &ConnInfo, plan: SessionPlan) -> Result<Self, Error> {
        let Work::Client(generator) = plan.work else {
            return Err("the transaction loop runs in the server".into());
        };
        let mut connection = Connection::open(info, &Interrupt::new())?;
        connection.execute(&plan.settings.join("; "))?;
        for statement in &plan.statements {
            connection.prepare(&statement.name, &statement.sql, &statement.parameter_types)?;
        }
        let (stream, received) = connection.into_parts();
        let statements = Arc::new(Statements::new(Protocol::Prepared, plan.statements));
        let tx = Transaction::new(statements);
        Ok(Self { stream, received, generator, tx, batches: Vec::new() })
    }

    /// Encodes the next batch. Returns false if there is none.
    fn build(&mut self) -> bool {
        let built = self.generator.next(&mut self.tx);
        if built {
            self.batches.push(self.tx.bytes().to_vec());
        }
        built
    }

    /// Sends all batches. Returns the CPU time in seconds.
    fn load(mut self) -> Result<f64, Error> {
        let before_s = cpu::thread_seconds();
        for batch in &self.batches {
            self.stream.write_all(batch)?;
            loop {
                let count = self.stream.read(self.received.space()?)?;
                if count == 0 {
                    return Err("the server closed the connection".into());
                }
                self.received.filled(count);
                let mut ready = false;
                while let Some(frame) = self.received.next_frame()? {
                    match Message::decode(frame)? {
                        Message::ErrorResponse(_) => return Err("a batch failed".into()),
                        Message::ReadyForQuery(_) => ready = true,
                        _ => {}
                    }
                }
                if ready {
                    break;
                }
            }
        }
        Ok(cpu::thread_seconds() - before_s)
    }
}
