//! The floor for a closed loop: the same reads over the same sockets with the same poller, and
//! nothing measured. No clock but to end, no decoding beyond the end of a reply, no counts but one.
//!
//! Usage: `bare_loop URL SESSIONS WORKERS SECONDS`

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use riops::target::{ConnInfo, Connection, Interrupt, Stream};
use riops_wire::frontend;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Requests that are encoded once and sent in turns.
const REQUESTS: usize = 4096;
const ROWS: i64 = 1_000_000;
/// The end of every reply: ReadyForQuery, idle.
const READY: &[u8] = b"Z\0\0\0\x05I";

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let [_, url, sessions, workers, seconds] = words.as_slice() else {
        return Err("usage: bare_loop URL SESSIONS WORKERS SECONDS".into());
    };
    let (sessions, workers): (usize, usize) = (sessions.parse()?, workers.parse()?);
    let length = Duration::from_secs_f64(seconds.parse()?);
    let info = ConnInfo::parse(url, |_| None)?;
    let threads: Vec<_> = (0..workers)
        .map(|worker| {
            let count = sessions / workers + usize::from(worker < sessions % workers);
            let info = info.clone();
            std::thread::spawn(move || work(&info, count, length))
        })
        .collect();
    let mut transactions = 0;
    for thread in threads {
        transactions += thread.join().map_err(|_| "a worker ended unexpectedly")??;
    }
    writeln!(std::io::stdout(), "{transactions}")?;
    Ok(())
}

fn open(info: &ConnInfo) -> Result<Stream, Error> {
    let mut connection = Connection::open(info, &Interrupt::new())?;
    connection.execute(
        "set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off;
         set plan_cache_mode = force_generic_plan; set jit = off",
    )?;
    let sql = "select count(*), max(scratch) from riops.rows_0001 where mykey between $1 and $2";
    connection.prepare("read_rows_0001", sql, &[20, 20])?;
    let (stream, _) = connection.into_parts();
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn work(info: &ConnInfo, sessions: usize, length: Duration) -> Result<u64, Error> {
    let mut streams = (0..sessions).map(|_| open(info)).collect::<Result<Vec<_>, _>>()?;
    let mut requests = Vec::new();
    for number in 0..REQUESTS {
        // Spread over the table, in an order that no cache foresees.
        let key = (i64::try_from(number)? * 7_919_317) % ROWS + 1;
        let mut bytes = Vec::new();
        frontend::bind_bigints(&mut bytes, "read_rows_0001", &[key, key])?;
        frontend::Message::Execute { portal: "", rows_max: 0 }.encode(&mut bytes)?;
        frontend::Message::Sync.encode(&mut bytes)?;
        requests.push(bytes);
    }
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    for (number, stream) in streams.iter().enumerate() {
        let descriptor = stream.as_raw_fd();
        poll.registry().register(&mut SourceFd(&descriptor), Token(number), Interest::READABLE)?;
    }
    let mut next = requests.iter().cycle();
    for stream in &mut streams {
        stream.write_all(next.next().ok_or("no request")?)?;
    }
    let end = Instant::now() + length;
    let mut buffer = [0; 8192];
    let mut transactions = 0;
    while Instant::now() < end {
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        for event in &events {
            let Some(stream) = streams.get_mut(event.token().0) else {
                continue;
            };
            let count = stream.read(&mut buffer)?;
            if !buffer.get(..count).unwrap_or_default().ends_with(READY) {
                return Err("a reply came in pieces".into());
            }
            transactions += 1;
            stream.write_all(next.next().ok_or("no request")?)?;
        }
    }
    Ok(transactions)
}
