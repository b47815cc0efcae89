//! TLS configuration: verification of the server certificate, and the data for channel binding.
//!
//! Created once per target and used by all its connections. Where rustls is stricter than libpq, the
//! rules are libpq's ("SSL Support" in PostgreSQL's manual): a certificate without a subject
//! alternative name is matched by its common name, and a self-signed certificate that is itself a
//! root certificate is trusted.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, KeyLog, RootCertStore,
    SignatureScheme, SupportedProtocolVersion, version,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::crl::CertificateList;
use x509_cert::der::asn1::{PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Validity;

use crate::host::files::read_limited;

/// `sslmode`, in increasing order of strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never use TLS.
    Disable,
    /// Use TLS if the server rejects an unencrypted session.
    Allow,
    /// Use TLS if the server supports it.
    Prefer,
    /// Always use TLS; with a root certificate the same as [`Self::VerifyCa`].
    Require,
    /// Always use TLS, and require a certificate signed by a trusted root certificate.
    VerifyCa,
    /// The same, and require that the certificate matches the host name.
    VerifyFull,
}

impl SslMode {
    /// All modes with their names.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// Source of the trusted root certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCertificates {
    /// The certificates of the operating system.
    System,
    /// The certificates in this file.
    File(PathBuf),
}

/// The user's TLS settings.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// `sslmode`.
    pub mode: SslMode,
    /// `sslnegotiation=direct`: whether TLS starts without a request, as of PostgreSQL 17.
    pub direct: bool,
    /// `sslrootcert`.
    pub roots: Option<RootCertificates>,
    /// `sslcert` and `sslkey`: certificate and private key of the client.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// `sslcrl`: file of a certificate revocation list.
    pub revocations: Option<PathBuf>,
    /// `sslcrldir`: directory of certificate revocation lists.
    pub revocations_folder: Option<PathBuf>,
    /// `sslsni`: whether the client sends the host name (Server Name Indication).
    pub sni: bool,
    /// Allowed protocol versions.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// `sslkeylogfile`: file to which the keys of each session are appended, for tools that decrypt its packets.
    pub key_log: Option<PathBuf>,
}

/// Why TLS cannot be used as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or has invalid contents.
    #[error("cannot use {what} \"{}\": {reason}", .path.display())]
    File {
        /// Kind of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The mode verifies certificates, but there is no root certificate.
    #[error(
        "sslmode={0} requires a root certificate; set sslrootcert to its file or to \"system\""
    )]
    NoRoot(&'static str),
    /// The TLS library rejects the settings.
    #[error("cannot set up TLS: {0}")]
    Setup(String),
}

/// Returns the supported versions in the given range, or the name of an unsupported version.
pub(super) fn versions(
    min: Option<String>,
    max: Option<String>,
) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    // As in libpq, the case of letters does not matter.
    let names = ["tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"];
    let index = |text: Option<String>, default: usize| match text {
        None => Ok(default),
        Some(text) => {
            let is_text = |name: &&str| name.eq_ignore_ascii_case(&text);
            names.iter().position(is_text).ok_or(text)
        }
    };
    let (min, max) = (index(min, 2)?, index(max, 3)?);
    if max < 2 {
        return Err("TLSv1.2 (above ssl_max_protocol_version)".to_owned());
    }
    let all = [(2, &version::TLS12), (3, &version::TLS13)];
    let chosen = all.into_iter().filter(|(index, _)| (min..=max).contains(index));
    let chosen: Vec<_> = chosen.map(|(_, version)| version).collect();
    if chosen.is_empty() {
        return Err("TLSv1.3 (above ssl_max_protocol_version)".to_owned());
    }
    Ok(chosen)
}

/// The TLS configuration of a target.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    /// Whether TLS starts without a request to the server.
    pub direct: bool,
}

impl Tls {
    /// Reads the certificate files and configures the TLS library.
    ///
    /// # Errors
    /// [`TlsError`] if a file cannot be used, a root certificate is missing or the library rejects the
    /// settings.
    pub fn new(settings: &TlsSettings) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(Verifier::new(settings, &provider)?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&settings.versions)
            .map_err(|error| TlsError::Setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some((path, key)) => builder
                .with_client_auth_cert(certificates(path, CLIENT_CERTIFICATE)?, private_key(key)?)
                .map_err(|error| file_error(CLIENT_CERTIFICATE, path, &error))?,
        };
        config.enable_sni = settings.sni;
        if let Some(path) = &settings.key_log {
            config.key_log = Arc::new(KeyLogFile::open(path)?);
        }
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        // PostgreSQL issues no session tickets, and the cost of a reconnect must be measured in full.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), direct: settings.direct })
    }

    /// Returns a client connection before the handshake.
    ///
    /// # Errors
    /// [`TlsError::Setup`] if `host` is not a valid host name.
    pub fn connect(&self, host: &str) -> Result<ClientConnection, TlsError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Setup(format!("invalid host name \"{host}\"")))?;
        ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| TlsError::Setup(error.to_string()))
    }
}

/// A file of keys, one line each, in the format of the TLS libraries of browsers.
#[derive(Debug)]
struct KeyLogFile(File);

impl KeyLogFile {
    /// Opens the file. A new one is readable only by its owner.
    fn open(path: &Path) -> Result<Self, TlsError> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(path);
        file.map(Self).map_err(|error| file_error("key log file", path, &error))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = label.as_bytes().to_vec();
        for bytes in [client_random, secret] {
            line.push(b' ');
            for byte in bytes {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push(b'\n');
        // One write a line, because sessions share the file. As in libpq, a full disk does not end them.
        let _ = (&self.0).write_all(&line);
    }
}

/// Maximum size of a file. The largest revocation lists of public authorities have some ten megabytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
const ROOT_CERTIFICATE: &str = "root certificate";
const CLIENT_CERTIFICATE: &str = "client certificate";
const CLIENT_KEY: &str = "private key";
const REVOCATIONS: &str = "certificate revocation list";

fn file_error(what: &'static str, path: &Path, reason: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { what, path: path.to_owned(), reason: reason.to_string() }
}

fn contents(path: &Path, what: &'static str) -> Result<Vec<u8>, TlsError> {
    read_limited(path, FILE_BYTES_MAX).map_err(|error| file_error(what, path, &error))
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = contents(path, what)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| file_error(what, path, &error))?;
    if certificates.is_empty() {
        return Err(file_error(what, path, &"it contains no certificate"));
    }
    Ok(certificates)
}

/// Reads the private key. As in libpq, other users must not have access to the file.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let metadata = path.metadata().map_err(|error| file_error(CLIENT_KEY, path, &error))?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & forbidden != 0 {
        return Err(file_error(CLIENT_KEY, path, &"other users can access it; run: chmod 600"));
    }
    PrivateKeyDer::from_pem_slice(&contents(path, CLIENT_KEY)?).map_err(|error| {
        let reason = format!("it contains no unencrypted private key ({error})");
        file_error(CLIENT_KEY, path, &reason)
    })
}

/// Reads the certificate revocation lists, the latest first: the library uses the first list of an issuer.
///
/// A missing file is an error. libpq ignores it (fe-secure-openssl.c, `initialize_SSL`; tested with libpq 15)
/// and accepts a certificate that the list would reject.
fn revocations(
    settings: &TlsSettings,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut all = Vec::new();
    if let Some(path) = &settings.revocations {
        all = revocation_lists(path)?;
        if all.is_empty() {
            return Err(file_error(REVOCATIONS, path, &"it contains no revocation list"));
        }
    }
    if let Some(folder) = &settings.revocations_folder {
        let before = all.len();
        let entries = folder.read_dir().map_err(|error| file_error(REVOCATIONS, folder, &error))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
            all.extend(revocation_lists(&path)?);
        }
        if all.len() == before {
            let reason = "no file in it contains a revocation list";
            return Err(file_error(REVOCATIONS, folder, &reason));
        }
    }
    let issued_at = |list: &CertificateRevocationListDer<'_>| {
        let list = CertificateList::from_der(list).ok()?;
        Some(list.tbs_cert_list.this_update.to_unix_duration())
    };
    all.sort_by_cached_key(|list| std::cmp::Reverse(issued_at(list)));
    Ok(all)
}

fn revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    CertificateRevocationListDer::pem_slice_iter(&contents(path, REVOCATIONS)?)
        .collect::<Result<_, _>>()
        .map_err(|error| file_error(REVOCATIONS, path, &error))
}

/// Verifies a server's certificate to the extent required by `sslmode`.
#[derive(Debug)]
struct Verifier {
    /// `None` accepts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    /// Whether certificate revocation lists were given.
    check_revocation: bool,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(settings: &TlsSettings, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let roots = match &settings.roots {
            None => Vec::new(),
            Some(RootCertificates::File(path)) => certificates(path, ROOT_CERTIFICATE)?,
            Some(RootCertificates::System) => {
                let native = rustls_native_certs::load_native_certs();
                if native.certs.is_empty() {
                    let reason = native.errors.first().map(ToString::to_string);
                    return Err(TlsError::Setup(format!(
                        "no root certificates found on this system{}",
                        reason.map_or_else(String::new, |reason| format!(": {reason}"))
                    )));
                }
                native.certs
            }
        };
        let provider = Arc::clone(provider);
        if roots.is_empty() {
            if settings.mode >= SslMode::VerifyCa {
                return Err(TlsError::NoRoot(settings.mode.name()));
            }
            let (check_revocation, check_name) = (false, false);
            return Ok(Self { chain: None, roots, check_revocation, check_name, provider });
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let revocations = revocations(settings)?;
        let check_revocation = !revocations.is_empty();
        // As in libpq, which sets X509_V_FLAG_CRL_CHECK_ALL: with any list, each certificate of the chain
        // needs one of its issuer that has not expired.
        let chain =
            WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(&provider))
                .with_crls(revocations)
                .enforce_revocation_expiration()
                .build()
                .map_err(|error| TlsError::Setup(error.to_string()))?;
        let check_name = settings.mode == SslMode::VerifyFull;
        Ok(Self { chain: Some(chain), roots, check_revocation, check_name, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let wrong_name = |error: &CertificateError| {
            matches!(
                error,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        };
        let root = self.roots.iter().find(|root| *root == end_entity);
        let root = root.and_then(|root| Certificate::from_der(root).ok());
        let root = root.map(|root| root.tbs_certificate);
        // The certificate is its own issuer, and the user configured it as a root certificate.
        if let Some(root) = root.filter(|root| root.issuer == root.subject) {
            check_validity(&root.validity, now)?;
            if self.check_revocation {
                // The library cannot verify a list that the certificate itself has signed.
                return Err(CertificateError::UnknownRevocationStatus.into());
            }
            if self.check_name {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                if let Err(error) = verify_server_name(&parsed, server_name)
                    && !common_name_matches(end_entity, server_name)
                {
                    return Err(error);
                }
            }
            return Ok(ServerCertVerified::assertion());
        }
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The library verifies the chain before the name, so the chain is valid here.
            Err(rustls::Error::InvalidCertificate(error))
                if wrong_name(&error)
                    && (!self.check_name || common_name_matches(end_entity, server_name)) =>
            {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Describes why a handshake failed, followed by the library's error in parentheses.
pub(super) fn describe_error(error: &std::io::Error) -> String {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return error.to_string();
    };
    let text = tls.to_string();
    let rustls::Error::InvalidCertificate(reason) = tls else {
        return text;
    };
    let meaning = match reason {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not signed by a trusted root certificate (sslrootcert)"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet"
        }
        CertificateError::Revoked => "the server's certificate has been revoked",
        CertificateError::UnknownRevocationStatus => {
            "no certificate revocation list (sslcrl, sslcrldir) is from the issuer of the server's certificate"
        }
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "the certificate revocation list (sslcrl, sslcrldir) has expired"
        }
        _ if text.contains("CaUsedAsEndEntity") => {
            "the server's certificate is a CA certificate and not among the trusted root certificates; if it is self-signed, set sslrootcert to it"
        }
        _ if text.contains("UnsupportedCertVersion") => {
            "the server's certificate uses X.509 version 1, which is not supported; create a version 3 certificate"
        }
        _ => return text,
    };
    format!("{meaning} ({text})")
}

fn check_validity(validity: &Validity, now: UnixTime) -> Result<(), rustls::Error> {
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// Returns whether a certificate without subject alternative names matches the host by its common
/// name.
fn common_name_matches(certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> bool {
    let Ok(parsed) = Certificate::from_der(certificate) else {
        return false;
    };
    let names = parsed.tbs_certificate.get::<SubjectAltName>().ok().flatten();
    let is_host =
        |name: &GeneralName| matches!(name, GeneralName::DnsName(_) | GeneralName::IpAddress(_));
    if names.is_some_and(|(_, names)| names.0.iter().any(is_host)) {
        return false;
    }
    let host = match host {
        ServerName::DnsName(name) => name.as_ref().to_ascii_lowercase(),
        ServerName::IpAddress(address) => IpAddr::from(*address).to_string(),
        _ => return false,
    };
    common_name(&parsed).is_some_and(|name| name_matches(&name.to_ascii_lowercase(), &host))
}

/// Returns the first common name of the subject, as libpq does.
fn common_name(certificate: &Certificate) -> Option<String> {
    const COMMON_NAME: &str = "2.5.4.3";
    let mut attributes =
        certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let value = &attributes.find(|attribute| attribute.oid.to_string() == COMMON_NAME)?.value;
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.to_string()),
        Tag::PrintableString => {
            value.decode_as::<PrintableStringRef<'_>>().ok().map(|text| text.to_string())
        }
        Tag::TeletexString => {
            value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

/// Compares a host name with a name, or with a pattern whose first label is a wildcard.
fn name_matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        None => pattern == host,
        Some(rest) => host
            .split_once('.')
            .is_some_and(|(label, tail)| !label.is_empty() && tail == rest && rest.contains('.')),
    }
}

/// Returns the hash of a server's certificate for SCRAM channel binding (`tls-server-end-point`,
/// RFC 5929, 4.1). It uses the hash function of the certificate's signature, with SHA-256 in place of
/// MD5 and SHA-1. `None` for signatures without a separate hash function (Ed25519).
pub fn server_end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    match parsed.signature_algorithm.oid.to_string().as_str() {
        // RSA with MD5, SHA-1, SHA-256; ECDSA with SHA-1, SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Some(Sha256::digest(certificate).to_vec()),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => {
            Some(Sha384::digest(certificate).to_vec())
        }
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => {
            Some(Sha512::digest(certificate).to_vec())
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "revocation_tests.rs"]
mod revocation_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_common_names_counts() {
        // Made with: openssl req -x509 -outform der -subj /CN=first.example/CN=last.example
        let certificate = Certificate::from_der(include_bytes!("two_common_names.der")).unwrap();
        assert_eq!(common_name(&certificate).as_deref(), Some("first.example"));
    }

    #[test]
    fn a_wildcard_matches_exactly_one_label() {
        assert!(name_matches("db.example", "db.example"));
        assert!(name_matches("*.example.com", "db.example.com"));
        for (pattern, host) in [
            ("*.example.com", "a.b.example.com"),
            ("*.example.com", "example.com"),
            ("*.com", "example.com"),
            ("*", "x"),
            ("db.example", "db.example.evil"),
        ] {
            assert!(!name_matches(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn supports_only_tls_1_2_and_1_3() {
        let count = |min: Option<&str>, max: Option<&str>| {
            versions(min.map(str::to_owned), max.map(str::to_owned))
                .map(|supported| supported.len())
        };
        assert_eq!(count(None, None), Ok(2));
        assert_eq!(count(Some("TLSv1.3"), None), Ok(1));
        assert_eq!(count(None, Some("TLSv1.2")), Ok(1));
        // An earlier minimum changes nothing.
        assert_eq!((count(Some("TLSv1"), None), count(Some("tlsv1.1"), None)), (Ok(2), Ok(2)));
        assert_eq!(count(Some("TLSv2"), None), Err("TLSv2".to_owned()));
        assert!(count(None, Some("TLSv1.1")).is_err());
        assert!(count(Some("TLSv1.3"), Some("TLSv1.2")).is_err());
    }
}
