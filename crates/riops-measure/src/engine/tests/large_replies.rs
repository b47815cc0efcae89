//! A session with a large reply must not delay the other sessions of its worker.
//!
//! The order of the events is fixed: the worker's clock waits until the replies are in the sockets.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Barrier, Mutex};

use riops_wire::backend::{self, Authentication, Message, TransactionStatus};
use riops_wire::frame::READ_BYTES_MAX;

use super::super::worker::TURN_BYTES;
use super::*;

/// Rows of the large reply, and bytes of the value of each: 8 MB.
const ROWS: usize = 8_000;
const ROW_BYTES: usize = 1_000;

/// Rows in the order in which the worker decoded them: number of the session, length of the value.
type Log = Arc<Mutex<Vec<(usize, usize)>>>;

/// Sends one transaction and notes the rows of its reply.
struct OneTransaction {
    session: usize,
    begun: Arc<AtomicU64>,
    log: Log,
}

impl Generator for OneTransaction {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed);
        tx.begin(0, 1);
        tx.execute(0, &[1, 1]);
        tx.end_step();
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &RowReply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
        self.log.lock().unwrap().push((self.session, reply.first_length().unwrap()));
    }
}

/// A clock whose first read after both transactions were begun waits until both replies were sent.
#[derive(Clone)]
struct GateClock {
    begun: Arc<AtomicU64>,
    waited: Arc<AtomicU64>,
    replied: Arc<Barrier>,
}

impl Clock for GateClock {
    fn now(&self) -> Nanos {
        if self.begun.load(Ordering::Relaxed) == 2
            && self.waited.fetch_add(1, Ordering::Relaxed) == 0
        {
            self.replied.wait();
        }
        Nanos(0)
    }
}

/// Accepts a session without authentication.
fn accept(listener: &UnixListener) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup).unwrap();
    let mut out = Vec::new();
    Message::Authentication(Authentication::Ok).encode(&mut out).unwrap();
    Message::ReadyForQuery(TransactionStatus::Idle).encode(&mut out).unwrap();
    stream.write_all(&out).unwrap();
    // The first query pins the search path.
    await_query(&mut stream);
    stream.write_all(&reply_of(1, 1)).unwrap();
    stream
}

fn reply_of(rows: usize, row_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..rows {
        backend::data_row(&mut out, &[Some(&vec![b'1'; row_bytes])]).unwrap();
    }
    Message::CommandComplete("SELECT 1").encode(&mut out).unwrap();
    Message::ReadyForQuery(TransactionStatus::Idle).encode(&mut out).unwrap();
    out
}

fn await_query(stream: &mut UnixStream) {
    assert!(stream.read(&mut [0; 1_000]).unwrap() > 0);
}

/// Fills the socket of the first session with its large reply, then sends the second session its small one.
/// Returns how many bytes of the large reply were available at once.
fn serve(listener: &UnixListener, replied: &Barrier) -> usize {
    let (mut large, mut small) = (accept(listener), accept(listener));
    await_query(&mut large);
    let reply = reply_of(ROWS, ROW_BYTES);
    // The kernel limits this to net.core.wmem_max, which is 208 KiB, and doubles it.
    rustix::net::sockopt::set_socket_send_buffer_size(&large, 1 << 20).unwrap();
    large.set_nonblocking(true).unwrap();
    let mut available = 0;
    loop {
        match large.write(&reply[available..]) {
            Ok(count) => available += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    await_query(&mut small);
    small.write_all(&reply_of(1, 1)).unwrap();
    replied.wait();
    large.set_nonblocking(false).unwrap();
    large.write_all(&reply[available..]).unwrap();
    for mut stream in [large, small] {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    available
}

#[test]
fn a_large_reply_does_not_starve_the_other_sessions_of_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(format!(".s.PGSQL.{PORT}"))).unwrap();
    let replied = Arc::new(Barrier::new(2));
    let gate = Arc::clone(&replied);
    let server = std::thread::spawn(move || serve(&listener, &gate));
    let target = Nodes::single(&ConnInfo::unix(folder.path(), PORT, "riops", "test"));
    let (begun, log) = (Arc::new(AtomicU64::new(0)), Log::default());
    let generators = (0..2)
        .map(|session| {
            let (begun, log) = (Arc::clone(&begun), Arc::clone(&log));
            Box::new(OneTransaction { session, begun, log }) as Box<dyn Generator>
        })
        .collect();
    let clock = GateClock { begun, waited: Arc::default(), replied };
    let stop = Stop::Transactions(2);
    let setting = virtual_time::Setting { stop, protocol: Protocol::Simple, ..Default::default() };
    let (worker, _events) = virtual_time::worker(&target, clock, &setting, generators);
    let report = worker.run();
    let available = server.join().unwrap();
    let log = log.lock().unwrap();
    let small = log.iter().position(|(session, _)| *session == 1).unwrap();
    let read_before: usize = log[..small].iter().map(|(_, bytes)| bytes).sum();
    // The large reply is first and is read only up to its share, although more of it is available.
    assert!(read_before > 0 && read_before <= TURN_BYTES + READ_BYTES_MAX, "{read_before}");
    assert!(available > TURN_BYTES + 2 * READ_BYTES_MAX, "{available}");
    // The poller does not report the rest again, and yet all of it is read.
    assert_eq!(log.len(), ROWS + 1);
    assert_eq!(report.acknowledged[0].transactions, 2);
    assert!(report.failure.is_none());
}
