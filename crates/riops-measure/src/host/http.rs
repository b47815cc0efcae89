//! HTTP requests to servers that the user names: metrics of nodes, queries of Prometheus, receivers of metrics.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Runtime};

/// Maximum size of an answer, in bytes.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns a runtime for this thread.
///
/// # Errors
/// If the system has no resources for it.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A client. It does not follow redirects or use the proxies of the environment: requests go to the address that the
/// user gave.
#[derive(Debug, Clone)]
pub struct Http {
    roots: Arc<RootCertStore>,
    timeout: Duration,
}

impl Http {
    /// Creates a client whose requests take at most `timeout`. It trusts the root certificates of the system.
    pub fn new(timeout: Duration) -> Self {
        Self::with_roots(timeout, rustls_native_certs::load_native_certs().certs)
    }

    fn with_roots(timeout: Duration, roots: Vec<CertificateDer<'static>>) -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots);
        Self { roots: Arc::new(store), timeout }
    }

    /// Returns the time at which the response arrived, and its text.
    ///
    /// # Errors
    /// The text of the error.
    pub fn get(&self, url: &str) -> Result<(Instant, String), String> {
        let (at, status, body) = self.request(async |client| {
            let mut answer = client.get(url).send().await?;
            let (at, status) = (Instant::now(), answer.status());
            let mut body = Vec::new();
            while body.len() <= BYTES_MAX
                && let Some(more) = answer.chunk().await?
            {
                body.extend_from_slice(&more);
            }
            Ok((at, status, body))
        })?;
        if !status.is_success() {
            return Err(format!("answered {status}"));
        }
        if body.len() > BYTES_MAX {
            return Err(format!("the answer is longer than {BYTES_MAX} bytes"));
        }
        Ok((at, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Sends a body. Returns the status of the answer.
    ///
    /// # Errors
    /// The text of the error.
    pub fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<StatusCode, String> {
        self.request(async |client| {
            let request = headers
                .iter()
                .fold(client.post(url), |request, (name, value)| request.header(*name, *value));
            Ok(request.body(body).send().await?.status())
        })
    }

    /// Executes a request on a new connection: there is one for each interval, and a connection that was kept
    /// may have been closed since.
    fn request<T>(
        &self,
        send: impl AsyncFnOnce(Client) -> Result<T, reqwest::Error>,
    ) -> Result<T, String> {
        let client = self.client()?;
        let runtime = runtime().map_err(|error| error.to_string())?;
        let done = runtime.block_on(send(client));
        // The system may still be resolving a name.
        runtime.shutdown_background();
        done.map_err(|error| self.text(&error))
    }

    fn client(&self) -> Result<Client, String> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        let client = Client::builder()
            .timeout(self.timeout)
            .redirect(Policy::none())
            .no_proxy()
            .user_agent(concat!("riops/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls);
        client.build().map_err(|error| error.to_string())
    }

    /// The innermost cause: the others only say that a request failed.
    fn text(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("no answer within {} s", self.timeout.as_secs());
        }
        let mut cause: &dyn Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        cause.to_string()
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
        let trusting = Http::with_roots(timeout, vec![certificate]);
        assert_eq!(trusting.get(&url).unwrap().1, "ok");
        assert_eq!(trusting.post(&url, &[], Vec::new()).unwrap(), StatusCode::OK);
        let error = Http::new(timeout).get(&url).unwrap_err();
        assert!(error.contains("certificate"), "{error}");
    }
}
