//! A TLS stream against a TLS server on the same thread, so that each read sees exactly what was sent.

use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::super::tls::{RootCertificates, SslMode, Tls, TlsSettings, versions};
use super::*;

/// A client and a server after the handshake, connected by a socket pair.
struct Pair {
    client: Stream,
    server: ServerConnection,
    socket: UnixStream,
}

impl Pair {
    fn new(version: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root.crt");
        std::fs::write(&root, made.cert.pem()).unwrap();
        let settings = TlsSettings {
            mode: SslMode::VerifyFull,
            direct: false,
            roots: Some(RootCertificates::File(root)),
            certificate: None,
            revocations: None,
            revocations_folder: None,
            sni: true,
            versions: versions(Some(version.to_owned()), Some(version.to_owned())).unwrap(),
            key_log: None,
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        // As in PostgreSQL.
        config.send_tls13_tickets = 0;
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let tls = Tls::new(&settings).unwrap().connect("localhost").unwrap();
        let socket = Socket(ours.into());
        let mut client = Stream { socket, tls: None };
        client.encrypt(tls);
        let server = ServerConnection::new(Arc::new(config)).unwrap();
        let mut pair = Self { client, server, socket: theirs };
        while pair.server.is_handshaking() || pair.client.handshake().is_err() {
            let _ = pair.client.handshake();
            let _ = pair.server.read_tls(&mut pair.socket);
            pair.server.process_new_packets().unwrap();
            pair.send();
        }
        pair
    }

    fn send(&mut self) {
        while self.server.wants_write() {
            self.server.write_tls(&mut self.socket).unwrap();
        }
    }

    /// Sends `bytes` in one or more TLS records.
    fn reply(&mut self, bytes: &[u8]) {
        self.server.writer().write_all(bytes).unwrap();
        self.send();
    }

    /// Reads until the stream says that nothing is left. Returns the bytes and the number of reads.
    fn read_all(&mut self, space: usize) -> (Vec<u8>, usize) {
        let (mut all, mut buffer, mut reads) = (Vec::new(), vec![0; space], 0);
        loop {
            let count = self.client.read(&mut buffer).unwrap();
            all.extend_from_slice(&buffer[..count]);
            reads += 1;
            if !self.client.may_have_more(count, space) {
                return (all, reads);
            }
        }
    }
}

#[test]
fn a_short_read_of_a_tls_stream_needs_no_second_read() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let mut pair = Pair::new(version);
        for _ in 0..3 {
            pair.reply(b"reply");
            assert_eq!(pair.read_all(8_192), (b"reply".to_vec(), 1), "{version}");
        }
    }
}

#[test]
fn reads_all_bytes_of_a_tls_stream_before_it_reports_an_empty_socket() {
    // Around the sizes of the buffers of the TLS library (4 KiB and 16 KiB) and of the reader.
    let sizes = (4_050..4_100).chain(8_150..8_200).chain(16_300..16_500).chain([60_000]);
    let mut pair = Pair::new("TLSv1.3");
    for size in sizes {
        let sent: Vec<u8> = (0..=250).cycle().take(size).collect();
        pair.reply(&sent);
        // A read fails if the stream expects more bytes in vain, unless the last one was full.
        let (mut received, mut buffer) = (Vec::new(), vec![0; 8_192]);
        loop {
            match pair.client.read(&mut buffer) {
                Ok(count) => {
                    received.extend_from_slice(&buffer[..count]);
                    if !pair.client.may_have_more(count, buffer.len()) {
                        break;
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert!(received == sent, "{size}: {}", received.len());
    }
}

#[test]
fn reads_a_large_reply_over_tls_in_pieces_of_64_kib() {
    const RECORDS: usize = 11;
    const BYTES: usize = 8_192;
    let mut pair = Pair::new("TLSv1.3");
    sockopt::set_socket_send_buffer_size(&pair.socket, 1 << 20).unwrap();
    for _ in 0..RECORDS {
        pair.reply(&[7; BYTES]);
    }
    let (mut received, mut sizes) = (0, Vec::new());
    let mut buffer = vec![0; READ_BYTES_MAX];
    while received < RECORDS * BYTES {
        received += pair.client.read(&mut buffer).unwrap();
        sizes.push(pair.client.tls.as_ref().unwrap().encrypted.end);
    }
    sizes.dedup();
    // The first size occurs twice. Each record has 22 bytes of overhead.
    let rest = RECORDS * (BYTES + 22) - 2 * BYTES - READ_BYTES_MAX;
    assert_eq!(sizes, [BYTES, READ_BYTES_MAX, rest]);
}

#[test]
fn the_end_of_a_tls_stream_is_read_without_another_event() {
    let mut pair = Pair::new("TLSv1.3");
    pair.server.writer().write_all(b"last").unwrap();
    pair.server.send_close_notify();
    pair.send();
    let mut buffer = [0; 100];
    assert_eq!(pair.client.read(&mut buffer).unwrap(), 4);
    assert!(pair.client.may_have_more(4, 100));
    assert_eq!(pair.client.read(&mut buffer).unwrap(), 0);
}

#[test]
fn bytes_reported_meanwhile_are_read_after_bytes_received_before() {
    // One record that is decrypted at once, and two records of which the second is kept encrypted.
    for replies in [&[5_000][..], &[3_000, 2_000]] {
        let mut pair = Pair::new("TLSv1.3");
        for &reply in replies {
            pair.reply(&vec![1; reply]);
        }
        let mut buffer = [0; 3_000];
        assert_eq!(pair.client.read(&mut buffer).unwrap(), 3_000);
        // The reader has read its share. Meanwhile, the poller reports more bytes, once.
        pair.reply(&[2; 100]);
        pair.client.note_readable();
        let count = pair.client.read(&mut buffer).unwrap();
        assert_eq!(count, 2_000);
        assert!(pair.client.may_have_more(count, buffer.len()), "{replies:?}");
        assert_eq!(pair.client.read(&mut buffer).unwrap(), 100);
    }
}

#[test]
fn the_server_of_a_unix_socket_must_be_run_by_the_required_user() {
    use riops_testkit::{FakeServer, PORT, Reply};
    let server = FakeServer::start(|_, _| Reply::Done).unwrap();
    let connect = |user: &str| {
        let folder = server.folder().display();
        let text = format!("host={folder},{folder} port={PORT} requirepeer='{user}'");
        let info = ConnInfo::parse(&text, |_| None).unwrap();
        super::super::Connection::open(&info, &crate::host::Interrupt::new())
    };
    let user = ConnInfo::default_user(|_| None);
    assert!(connect(&user).is_ok());
    let error = connect("another user").unwrap_err();
    assert!(error.is_final(), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("requirepeer=another user, but /"), "{text}");
    assert!(text.ends_with(&format!("is run by the user \"{user}\"")), "{text}");
}
