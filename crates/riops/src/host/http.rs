//! HTTP requests to servers that the user names: metrics of nodes, queries of Prometheus, receivers of metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Maximum size of an answer, in bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A client. Redirects and proxies of the environment are not used: the address is that of the user.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    agent: Agent,
    timeout: Duration,
}

impl Http {
    /// Creates a client whose requests take at most `timeout`. Certificates are checked with those of the system.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self::with_roots(timeout, &rustls_native_certs::load_native_certs().certs)
    }

    fn with_roots(timeout: Duration, roots: &[CertificateDer<'static>]) -> Self {
        let roots: Vec<_> =
            roots.iter().map(|each| Certificate::from_der(each).to_owned()).collect();
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots));
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            // One request for each interval: a connection that was kept may have been closed since.
            .max_idle_connections(0)
            .user_agent(concat!("riops/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        Self { agent: config.build().new_agent(), timeout }
    }

    /// Returns the moment at which the answer came, and its text.
    pub(crate) fn get(&self, url: &str) -> Result<(Instant, String), String> {
        let mut answer = self.agent.get(url).call().map_err(|error| self.text(&error))?;
        let at = Instant::now();
        if !answer.status().is_success() {
            return Err(format!("answered {}", answer.status()));
        }
        let body = answer.body_mut().with_config().limit(BYTES_MAX).lossy_utf8(true);
        Ok((at, body.read_to_string().map_err(|error| self.text(&error))?))
    }

    /// Sends a body. Returns the status of the answer.
    pub(crate) fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<StatusCode, String> {
        let request = headers
            .iter()
            .fold(self.agent.post(url), |request, (name, value)| request.header(*name, *value));
        let answer: Response<Body> = request.send(body).map_err(|error| self.text(&error))?;
        Ok(answer.status())
    }

    fn text(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Timeout(_) => format!("no answer within {} s", self.timeout.as_secs()),
            error => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    /// Answers requests over TLS. Returns its certificate and its port.
    fn server() -> (CertificateDer<'static>, u16) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = BufReader::new(StreamOwned::new(connection, socket.unwrap()));
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|read| read > 0) && line != "\r\n" {
                    line.clear();
                }
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                // A client that does not trust the certificate has left.
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        (cert.der().clone(), port)
    }

    #[test]
    fn a_certificate_is_checked() {
        let (certificate, port) = server();
        let url = format!("https://localhost:{port}/x");
        let timeout = Duration::from_secs(20);
        let trusting = Http::with_roots(timeout, &[certificate]);
        assert_eq!(trusting.get(&url).unwrap().1, "ok");
        assert_eq!(trusting.post(&url, &[], b"").unwrap(), StatusCode::OK);
        let error = Http::new(timeout).get(&url).unwrap_err();
        assert!(error.contains("certificate"), "{error}");
    }
}
