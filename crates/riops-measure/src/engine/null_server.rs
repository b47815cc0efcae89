//! The null server: returns the same row for every statement immediately. A run against it measures the
//! maximum throughput of the client on this machine.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use riops_wire::backend::{Authentication, Message, TransactionStatus, data_row};
use riops_wire::frame::{FRAME_BYTES_MAX, FrameBuffer};
use riops_wire::frontend::EncodeError;

/// A listening null server with one thread per session. Each thread exits when its client disconnects.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
}

impl NullServer {
    /// Listens on a free port of the loopback address and accepts `sessions` connections.
    ///
    /// # Errors
    /// Returns the error of the operating system if the port or the thread cannot be created.
    pub fn start(sessions: usize) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        std::thread::Builder::new().name("riops-null-server".to_owned()).spawn(move || {
            for stream in listener.incoming().take(sessions).flatten() {
                // If a session fails, its client's run fails too and reports the reason.
                let _ = std::thread::Builder::new()
                    .name("riops-null-session".to_owned())
                    .spawn(move || serve(stream));
            }
        })?;
        Ok(Self { address })
    }

    /// Returns the connection string of the null server.
    pub fn conninfo(&self) -> String {
        format!(
            "host={} port={} user=riops dbname=riops sslmode=disable",
            self.address.ip(),
            self.address.port()
        )
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; (u32::from_be_bytes(length) as usize).clamp(4, 10_000) - 4];
    stream.read_exact(&mut startup)?;
    let mut out = Vec::with_capacity(4096);
    for message in [
        Message::Authentication(Authentication::Ok),
        Message::ParameterStatus { name: "server_version", value: "18.0" },
        Message::BackendKeyData { process: 1, secret: &[0; 4] },
        Message::ReadyForQuery(TransactionStatus::Idle),
    ] {
        message.encode(&mut out).map_err(io::Error::other)?;
    }
    let mut received = FrameBuffer::new(FRAME_BYTES_MAX);
    loop {
        stream.write_all(&out)?;
        out.clear();
        let space = received.space().map_err(io::Error::other)?;
        match stream.read(space)? {
            0 => return Ok(()),
            count => received.filled(count),
        }
        while let Some(frame) = received.next_frame().map_err(io::Error::other)? {
            if frame.tag == b'X' {
                return Ok(());
            }
            reply(frame.tag, &mut out).map_err(io::Error::other)?;
        }
    }
}

fn reply(tag: u8, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match tag {
        b'P' => Message::ParseComplete.encode(out),
        b'B' => Message::BindComplete.encode(out),
        b'E' => {
            data_row(out, &[Some(&1i64.to_be_bytes()), Some(&1i64.to_be_bytes())])?;
            Message::CommandComplete("SELECT 1").encode(out)
        }
        b'Q' => {
            data_row(out, &[Some(b"1"), Some(b"1")])?;
            Message::CommandComplete("SELECT 1").encode(out)?;
            Message::ReadyForQuery(TransactionStatus::Idle).encode(out)
        }
        b'S' => Message::ReadyForQuery(TransactionStatus::Idle).encode(out),
        _ => Ok(()),
    }
}
