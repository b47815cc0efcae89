//! A closed loop without measurements, as the peer of `riops run rows --batch 1` in `bench.py`. It executes
//! the same transactions, with the same code for encoding and decoding, over the same sockets with the same
//! poller. It has no histogram, no time series, no schedule and no error handling. It reads the clock only to
//! stop, and has a single counter.
//!
//! Usage: `bare_loop URL SESSIONS WORKERS SECONDS`. Prints the number of transactions and the CPU time per
//! transaction in microseconds.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use riops::host::Interrupt;
use riops::plan::{Plan, Protocol, RowsDataset, RowsRun, WorkPlan};
use riops::probe::cpu;
use riops::server::{ConnInfo, Connection, Stream};
use riops::workload::rows::Rows;
use riops::workload::transaction::{Outcome, Statements, Transaction};
use riops::workload::{Generator, SessionPlan, Work, Workload};
use riops_wire::backend::Message;
use riops_wire::frame::FrameBuffer;
use riops_wire::pipeline::{Event, Pipeline};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let [_, url, sessions, workers, seconds] = words.as_slice() else {
        return Err("usage: bare_loop URL SESSIONS WORKERS SECONDS".into());
    };
    let run = RowsRun { batch: 1, ..RowsRun::default() };
    let plan =
        Plan { work: WorkPlan::Rows(run.clone()), sessions: sessions.parse()?, ..Plan::default() };
    let workers: usize = workers.parse()?;
    let length = Duration::from_secs_f64(seconds.parse()?);
    let info = ConnInfo::parse(url, |_| None)?;
    let workload = Rows::new(RowsDataset::default(), run);
    let mut stage = workload.stages(&plan).pop().ok_or("no stage")?;
    let mut threads = Vec::new();
    for worker in (1..=workers).rev() {
        let own = stage.sessions.split_off(stage.sessions.len() - stage.sessions.len() / worker);
        let info = info.clone();
        threads.push(std::thread::spawn(move || work(&info, own, length)));
    }
    let (mut transactions, mut cpu_s) = (0, 0.0);
    for thread in threads {
        let (count, seconds) = thread.join().map_err(|_| "a worker thread panicked")??;
        transactions += count;
        cpu_s += seconds;
    }
    let each_us = cpu_s * 1e6 / f64::from(transactions);
    writeln!(std::io::stdout(), "{transactions} {each_us}")?;
    Ok(())
}

struct Session {
    stream: Stream,
    received: FrameBuffer,
    pipeline: Pipeline,
    generator: Box<dyn Generator>,
    tx: Transaction,
    outcome: Outcome,
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
        stream.set_nonblocking(true)?;
        let statements = Arc::new(Statements::new(Protocol::Prepared, plan.statements));
        Ok(Self {
            stream,
            received,
            pipeline: Pipeline::new(),
            generator,
            tx: Transaction::new(statements),
            outcome: Outcome::default(),
        })
    }

    fn send(&mut self) -> Result<(), Error> {
        self.generator.next(&mut self.tx);
        self.pipeline.sent(self.tx.statements())?;
        Ok(self.stream.write_all(self.tx.bytes())?)
    }

    /// Reads once. Returns whether the transaction has ended.
    fn receive(&mut self) -> Result<bool, Error> {
        let count = self.stream.read(self.received.space()?)?;
        if count == 0 {
            return Err("the server closed the connection".into());
        }
        self.received.filled(count);
        while let Some(frame) = self.received.next_frame()? {
            match self.pipeline.receive(&Message::decode(frame)?)? {
                Event::Row { row, .. } => {
                    let reply = self.tx.reply(row);
                    self.generator.reply(&self.tx, &reply, &mut self.outcome);
                }
                Event::Failed { .. } => return Err("a statement failed".into()),
                Event::Ready(_) => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }
}

fn work(info: &ConnInfo, plans: Vec<SessionPlan>, length: Duration) -> Result<(u32, f64), Error> {
    let mut sessions =
        plans.into_iter().map(|plan| Session::open(info, plan)).collect::<Result<Vec<_>, _>>()?;
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    for (number, session) in sessions.iter().enumerate() {
        let descriptor = session.stream.as_raw_fd();
        poll.registry().register(&mut SourceFd(&descriptor), Token(number), Interest::READABLE)?;
    }
    let cpu_before_s = cpu::thread_seconds();
    for session in &mut sessions {
        session.send()?;
    }
    let end = Instant::now() + length;
    let mut transactions = 0;
    while Instant::now() < end {
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        for event in &events {
            if let Some(session) = sessions.get_mut(event.token().0)
                && session.receive()?
            {
                transactions += 1;
                session.send()?;
            }
        }
    }
    Ok((transactions, cpu::thread_seconds() - cpu_before_s))
}
