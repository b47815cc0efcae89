//! Servers for the tests of riops. No release contains them.
//!
//! The fake server speaks the protocol and sends the replies that a test gives it; it knows no SQL. The
//! proxy cuts connections at any byte. The gateway makes a PostgreSQL server behave like YugabyteDB. Programs
//! that a test executes are written by another process.

mod fake_server;
mod fake_yugabytedb;
mod listener;
mod program;
mod proxy;
mod yugabytedb_gateway;
mod yugabytedb_rules;

pub use fake_server::{FakeServer, Reply, Request};
pub use fake_yugabytedb::{Answer, FakeYugabyteDb, SentStatement, VERSION};
pub use listener::PORT;
pub use program::{copy_program, write_program};
pub use proxy::{Fault, Proxy};
pub use yugabytedb_gateway::YugabyteDbGateway;
pub use yugabytedb_rules::{
    Behavior, ErrorFields, Failure, LOST_REQUEST, MISMATCH_IN_CONTEXT, MISMATCH_IN_DETAIL, Release,
    Which, functions_sql,
};

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use crate::listener::socket_file;
    use crate::{Answer, FakeServer, FakeYugabyteDb, Fault, Proxy, Reply};

    /// The smallest startup message: its length and protocol version 3.0.
    const STARTUP: [u8; 9] = [0, 0, 0, 9, 0, 3, 0, 0, 0];

    #[test]
    fn dropping_a_server_or_a_proxy_joins_its_threads_and_closes_its_sockets() {
        let owned_by_threads = Arc::new(());
        let (of_server, of_proxy) = (Arc::clone(&owned_by_threads), Arc::clone(&owned_by_threads));
        let server = FakeServer::start(move |_, _| {
            let _ = &of_server;
            Reply::Done
        })
        .unwrap();
        let proxy = Proxy::start(server.folder(), move |_| {
            let _ = &of_proxy;
            Fault::None
        })
        .unwrap();
        let mut client = UnixStream::connect(socket_file(proxy.folder())).unwrap();
        client.write_all(&STARTUP).unwrap();
        client.read_exact(&mut [0; 9]).unwrap();

        drop(proxy);
        drop(server);

        assert_eq!(Arc::strong_count(&owned_by_threads), 1);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
    }

    #[test]
    fn dropping_a_fake_yugabytedb_joins_its_thread() {
        let owned_by_thread = Arc::new(());
        let of_server = Arc::clone(&owned_by_thread);
        let server = FakeYugabyteDb::start(move |_| {
            let _ = &of_server;
            Answer::nothing()
        })
        .unwrap();
        let mut client = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        client.write_all(&STARTUP).unwrap();
        client.read_exact(&mut [0; 9]).unwrap();

        drop(server);

        assert_eq!(Arc::strong_count(&owned_by_thread), 1);
    }
}
