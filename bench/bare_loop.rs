//! The floor of a client: a closed loop that does nothing but send the statements of a transaction and find the end of
//! each reply. No clock, no counter but one, no error handling. A bound to measure against, not a design. It shares no
//! code with the loop of riops; only its connections are opened by riops.
//!
//! Usage: `bare_loop epoll|io-uring|blocking URL SESSIONS WORKERS SECONDS rows|select-only|tpcb-like`, `blocking` with one
//! session for each worker. `rows` has the reads of `riops run rows --batch 1`, the others are scripts of pgbench on
//! tables of scale 50. Prints the number of transactions and the CPU time of the workers per transaction in microseconds.

#![expect(unsafe_code, reason = "the requests of io_uring contain addresses")]
#![expect(clippy::indexing_slicing, reason = "nothing that costs time")]

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use riops_measure::host::Interrupt;
use riops_measure::server::{ConnInfo, Connection, Stream};
use rustix::event::epoll;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{ClockId, clock_gettime};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A number of a transaction: its position, and its length in bytes.
type Parameter = (usize, usize);

/// What the sessions repeat.
struct Workload {
    settings: &'static [&'static str],
    /// Whether parameters and results have the binary format, as in `riops run rows`, or are text, as in scripts.
    is_binary: bool,
    /// The numbers of a transaction are drawn from 1 to these.
    maxima: &'static [u64],
    /// The statements of a transaction with their parameters.
    statements: &'static [(&'static str, &'static [Parameter])],
}

const ROWS: Workload = Workload {
    settings: &[
        "enable_seqscan = off",
        "enable_bitmapscan = off",
        "enable_indexonlyscan = off",
        "max_parallel_workers_per_gather = 0",
        "jit = off",
        "plan_cache_mode = force_generic_plan",
    ],
    is_binary: true,
    maxima: &[1_000_000],
    statements: &[(
        "select count(*), max(scratch) from riops.rows_0001 where mykey between $1 and $2",
        &[KEY, KEY],
    )],
};
const KEY: Parameter = (0, 8);

const SELECT_ONLY: Workload = Workload {
    settings: &[],
    is_binary: false,
    maxima: &[5_000_000],
    statements: &[("SELECT abalance FROM pgbench_accounts WHERE aid = $1", &[ID])],
};

const TPCB_LIKE: Workload = Workload {
    settings: &[],
    is_binary: false,
    maxima: &[5_000_000, 500, 50, 5_000],
    statements: &[
        ("BEGIN", &[]),
        ("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2", &[DELTA, ID]),
        ("SELECT abalance FROM pgbench_accounts WHERE aid = $1", &[ID]),
        ("UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2", &[DELTA, TELLER]),
        ("UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2", &[DELTA, BRANCH]),
        (
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
            VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
            &[TELLER, BRANCH, ID, DELTA],
        ),
        ("END", &[]),
    ],
};
const ID: Parameter = (0, 7);
const TELLER: Parameter = (1, 3);
const BRANCH: Parameter = (2, 2);
const DELTA: Parameter = (3, 4);

const BUFFERS: u16 = 256;
const BUFFER_BYTES: usize = 2048;

static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let [_, driver, url, sessions, workers, seconds, workload] = words.as_slice() else {
        return Err("the arguments are in the first lines of bench/bare_loop.rs".into());
    };
    let workload: &'static Workload = match workload.as_str() {
        "rows" => &ROWS,
        "select-only" => &SELECT_ONLY,
        "tpcb-like" => &TPCB_LIKE,
        _ => return Err("no such workload".into()),
    };
    let info = ConnInfo::parse(url, |_| None)?;
    let (sessions, workers): (usize, usize) = (sessions.parse()?, workers.parse()?);
    let run = match driver.as_str() {
        "epoll" => on_epoll,
        "io-uring" => on_ring,
        "blocking" => one_blocking,
        _ => return Err("no such driver".into()),
    };
    let mut threads = Vec::new();
    for worker in 0..workers {
        let connections = (worker..sessions)
            .step_by(workers)
            .map(|_| connect(&info, workload))
            .collect::<Result<Vec<_>, Error>>()?;
        threads.push(std::thread::spawn(move || -> Result<(u64, f64), Error> {
            let session = |(seed, stream)| Session::new(workload, seed, stream);
            let mut all =
                (1..).zip(&connections).map(session).collect::<Result<Vec<Session>, Error>>()?;
            let start = cpu_s();
            let count = run(&mut all)?;
            Ok((count, cpu_s() - start))
        }));
    }
    std::thread::sleep(Duration::try_from_secs_f64(seconds.parse()?)?);
    STOP.store(true, Ordering::Relaxed);
    let (mut transactions, mut cpu) = (0, 0.0);
    for thread in threads {
        let (count, seconds) = thread.join().map_err(|_| "a worker panicked")??;
        transactions += count;
        cpu += seconds;
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of transactions")]
    let each_us = cpu * 1e6 / transactions as f64;
    writeln!(std::io::stdout(), "{transactions} {each_us}")?;
    Ok(())
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a thread")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

fn connect(info: &ConnInfo, workload: &Workload) -> Result<Stream, Error> {
    let mut connection = Connection::open(info, &Interrupt::new())?;
    for setting in workload.settings {
        connection.execute(&format!("set {setting}"))?;
    }
    for (name, (statement, _)) in workload.statements.iter().enumerate() {
        connection.prepare(&name.to_string(), statement, &[])?;
    }
    let (stream, _) = connection.into_parts();
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Bind of a prepared statement, Execute and Sync. Returns where the parameters are.
fn message(
    statement: usize,
    parameters: &[Parameter],
    is_binary: bool,
) -> Result<(Vec<u8>, Vec<usize>), Error> {
    let formats: &[u8] = if is_binary { b"\0\x01\0\x01" } else { b"\0\0" };
    let mut bind = format!("\0{statement}\0").into_bytes();
    bind.extend(formats);
    bind.extend(u16::try_from(parameters.len())?.to_be_bytes());
    let mut positions = Vec::new();
    for &(_, length) in parameters {
        bind.extend(u32::try_from(length)?.to_be_bytes());
        positions.push(5 + bind.len());
        bind.resize(bind.len() + length, b'0');
    }
    bind.extend(formats);
    let mut message = vec![b'B'];
    message.extend(u32::try_from(4 + bind.len())?.to_be_bytes());
    message.append(&mut bind);
    message.extend(*b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
    Ok((message, positions))
}

struct Session {
    socket: RawFd,
    random: u64,
    workload: &'static Workload,
    /// The messages of the statements, with the positions of their parameters.
    messages: Vec<(Vec<u8>, Vec<usize>)>,
    /// The statement that is being executed.
    current: usize,
    numbers: [u64; 4],
    /// Bytes of the current message that are still to come, and its beginning.
    left: u32,
    header: [u8; 5],
    in_header: usize,
}

impl Session {
    fn new(workload: &'static Workload, seed: u64, stream: &Stream) -> Result<Self, Error> {
        let messages = (0..)
            .zip(workload.statements)
            .map(|(name, (_, parameters))| message(name, parameters, workload.is_binary))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            socket: stream.as_raw_fd(),
            random: seed,
            workload,
            messages,
            current: workload.statements.len() - 1,
            numbers: [0; 4],
            left: 0,
            header: [0; 5],
            in_header: 0,
        })
    }

    /// Returns the message of the next statement, and whether it is the first one of a transaction.
    fn next(&mut self) -> (&[u8], bool) {
        self.current = (self.current + 1) % self.messages.len();
        if self.current == 0 {
            for (argument, maximum) in self.numbers.iter_mut().zip(self.workload.maxima) {
                // Xorshift (Marsaglia, 2003).
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                *argument = self.random % maximum + 1;
            }
        }
        let (message, positions) = &mut self.messages[self.current];
        let (_, parameters) = self.workload.statements[self.current];
        for (&position, &(argument, length)) in positions.iter().zip(parameters) {
            let mut rest = self.numbers[argument];
            let value = &mut message[position..position + length];
            if self.workload.is_binary {
                value.copy_from_slice(&rest.to_be_bytes());
                continue;
            }
            for digit in value.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        (message, self.current == 0)
    }

    /// Returns whether a ReadyForQuery ends within these bytes.
    fn feed(&mut self, mut data: &[u8]) -> Result<bool, Error> {
        let mut is_ready = false;
        while !data.is_empty() {
            if self.left > 0 {
                let part = (self.left as usize).min(data.len());
                data = &data[part..];
                self.left -= u32::try_from(part)?;
            } else {
                let part = (5 - self.in_header).min(data.len());
                self.header[self.in_header..][..part].copy_from_slice(&data[..part]);
                self.in_header += part;
                data = &data[part..];
                if self.in_header < 5 {
                    break;
                }
                let [_, length @ ..] = self.header;
                self.left = u32::from_be_bytes(length) - 4;
            }
            if self.left == 0 {
                self.in_header = 0;
                is_ready |= self.header[0] == b'Z';
                if self.header[0] == b'E' {
                    return Err("the server sent an error".into());
                }
            }
        }
        Ok(is_ready)
    }
}

fn borrowed(socket: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the connections outlive the loop.
    unsafe { BorrowedFd::borrow_raw(socket) }
}

fn on_epoll(all: &mut [Session]) -> Result<u64, Error> {
    let mut done = 0;
    let mut buffer = [0; 16_384];
    let mut events = [MaybeUninit::uninit(); 256];
    let poller = epoll::create(epoll::CreateFlags::empty())?;
    let timeout = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
    for (slot, session) in (0..).zip(&mut *all) {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(slot);
        epoll::add(&poller, borrowed(session.socket), data, flags)?;
        let socket = borrowed(session.socket);
        send(socket, session.next().0, SendFlags::empty())?;
    }
    while !STOP.load(Ordering::Relaxed) {
        let (ready, _) = epoll::wait(&poller, &mut events, Some(&timeout))?;
        for event in ready {
            let session = &mut all[usize::try_from(event.data.u64())?];
            let socket = borrowed(session.socket);
            let Ok((count, _)) = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) else {
                continue;
            };
            if session.feed(&buffer[..count])? {
                let (message, is_first) = session.next();
                done += u64::from(is_first);
                send(socket, message, SendFlags::empty())?;
            }
        }
    }
    Ok(done)
}

/// One session whose receive waits.
fn one_blocking(all: &mut [Session]) -> Result<u64, Error> {
    let mut done = 0;
    let mut buffer = [0; 16_384];
    let [session] = all else {
        return Err("one session for each worker is required".into());
    };
    let socket = borrowed(session.socket);
    rustix::io::ioctl_fionbio(socket, false)?;
    while !STOP.load(Ordering::Relaxed) {
        let (message, is_first) = session.next();
        done += u64::from(is_first);
        send(socket, message, SendFlags::empty())?;
        loop {
            let (count, _) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
            if session.feed(&buffer[..count])? {
                break;
            }
        }
    }
    Ok(done)
}

const SENT: u64 = 1 << 40;

fn push(ring: &mut IoUring, request: &squeue::Entry) -> Result<(), Error> {
    // SAFETY: the sessions and the buffers outlive the ring.
    Ok(unsafe { ring.submission().push(request) }?)
}

/// Returns whether this begins a transaction.
fn send_next(ring: &mut IoUring, all: &mut [Session], slot: u32) -> Result<bool, Error> {
    let (message, is_first) = all[slot as usize].next();
    let (address, length) = (message.as_ptr(), u32::try_from(message.len())?);
    let send = opcode::Send::new(Fixed(slot), address, length).build();
    push(ring, &send.flags(squeue::Flags::SKIP_SUCCESS).user_data(SENT))?;
    Ok(is_first)
}

fn receive(ring: &mut IoUring, slot: u32) -> Result<(), Error> {
    let receive = opcode::RecvMulti::new(Fixed(slot), 0).build();
    push(ring, &receive.user_data(u64::from(slot)))
}

/// The list of free buffers, aligned to a page.
#[repr(C, align(4096))]
struct FreeBuffers([[u64; 2]; BUFFERS as usize]);

fn on_ring(all: &mut [Session]) -> Result<u64, Error> {
    let mut done = 0;
    let mut list = Box::new(FreeBuffers([[0; 2]; BUFFERS as usize]));
    let mut memory = vec![0u8; usize::from(BUFFERS) * BUFFER_BYTES];
    let (base, start) = (list.0.as_mut_ptr().cast::<BufRingEntry>(), memory.as_mut_ptr());
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .build(1024)?;
    // SAFETY: the list and the memory outlive the ring.
    unsafe { ring.submitter().register_buf_ring_with_flags(base as u64, BUFFERS, 0, 0) }?;
    let mut tail: u16 = 0;
    let mut give = |buffer: u16| {
        // SAFETY: both are within their memory, and the kernel does not read entries after the tail.
        unsafe {
            let entry = &mut *base.add(usize::from(tail % BUFFERS));
            entry.set_addr(start.add(usize::from(buffer) * BUFFER_BYTES) as u64);
            entry.set_len(2048);
            entry.set_bid(buffer);
            tail = tail.wrapping_add(1);
            let shared = &*BufRingEntry::tail(base).cast::<std::sync::atomic::AtomicU16>();
            shared.store(tail, Ordering::Release);
        }
    };
    (0..BUFFERS).for_each(&mut give);
    let sockets: Vec<RawFd> = all.iter().map(|session| session.socket).collect();
    ring.submitter().register_files(&sockets)?;
    for slot in 0..u32::try_from(all.len())? {
        receive(&mut ring, slot)?;
        send_next(&mut ring, all, slot)?;
    }
    let mut completed: Vec<cqueue::Entry> = Vec::with_capacity(1024);
    while !STOP.load(Ordering::Relaxed) {
        ring.submit_and_wait(1)?;
        completed.extend(ring.completion());
        for completion in completed.drain(..) {
            if completion.user_data() == SENT {
                continue;
            }
            let slot = u32::try_from(completion.user_data())?;
            if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
                let length = usize::try_from(completion.result())?;
                // SAFETY: the kernel has filled these bytes and does not use the buffer before it gets it back.
                let data = unsafe {
                    std::slice::from_raw_parts(
                        start.add(usize::from(buffer) * BUFFER_BYTES),
                        length,
                    )
                };
                let is_ready = all[slot as usize].feed(data)?;
                give(buffer);
                if is_ready {
                    done += u64::from(send_next(&mut ring, all, slot)?);
                }
            }
            if !cqueue::more(completion.flags()) {
                receive(&mut ring, slot)?;
            }
        }
    }
    Ok(done)
}
