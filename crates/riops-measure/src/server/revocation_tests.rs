//! Certificate revocation lists: which ones are read, and which server certificates they reject.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

use super::*;

/// Serial number of the server's certificate.
const SERIAL: u64 = 4711;

/// An authority in `ca.crt` and a server certificate that it signed.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    server: CertificateDer<'static>,
}

fn issuer(name: &str) -> (CertificateParams, KeyPair) {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (parameters, KeyPair::generate().unwrap())
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (parameters, key) = issuer("authority");
        let root = parameters.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.crt"), root.pem()).unwrap();
        let issuer = Issuer::new(parameters, key);
        let mut server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        server.serial_number = Some(SerialNumber::from(SERIAL));
        let server = server.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        Self { folder, issuer, server: server.der().clone() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a list that is valid from January 1 of one year to January 1 of another year.
    fn write_list(
        &self,
        name: &str,
        issuer: &Issuer<'_, KeyPair>,
        (from, to): (i32, i32),
        revoked: Option<u64>,
    ) -> PathBuf {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(from, 1, 1),
            next_update: date_time_ymd(to, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .map(|serial| RevokedCertParams {
                    serial_number: SerialNumber::from(serial),
                    revocation_time: date_time_ymd(from, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                })
                .into_iter()
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, list.signed_by(issuer).unwrap().pem().unwrap()).unwrap();
        path
    }

    fn verifier(&self, file: Option<PathBuf>, folder: Option<PathBuf>) -> Result<Verifier, String> {
        let settings = TlsSettings {
            mode: SslMode::VerifyFull,
            direct: false,
            roots: Some(RootCertificates::File(self.path("ca.crt"))),
            certificate: None,
            revocations: file,
            revocations_folder: folder,
            sni: true,
            versions: versions(None, None).unwrap(),
            key_log: None,
        };
        Verifier::new(&settings, &Arc::new(ring::default_provider()))
            .map_err(|error| error.to_string())
    }

    /// Verifies the server's certificate with the lists in this file and folder. Returns the error.
    fn verify(&self, file: Option<PathBuf>, folder: Option<PathBuf>) -> Option<String> {
        let verifier = match self.verifier(file, folder) {
            Ok(verifier) => verifier,
            Err(error) => return Some(error),
        };
        let name = ServerName::try_from("localhost").unwrap();
        let result = verifier.verify_server_cert(&self.server, &[], &name, &[], UnixTime::now());
        result.err().map(|error| describe_error(&std::io::Error::other(error)))
    }
}

fn assert_error(error: Option<String>, text: &str) {
    let error = error.unwrap_or_default();
    assert!(error.contains(text), "{text}: {error}");
}

#[test]
fn a_list_must_be_valid_and_from_the_issuer_of_the_certificate() {
    let ca = Authority::new();
    assert_eq!(ca.verify(None, None), None);
    let list = |name: &str, issuer: &Issuer<'_, KeyPair>, years, revoked| {
        ca.verify(Some(ca.write_list(name, issuer, years, revoked)), None)
    };
    assert_eq!(list("good", &ca.issuer, (2020, 2200), Some(SERIAL + 1)), None);
    assert_error(list("revoked", &ca.issuer, (2020, 2200), Some(SERIAL)), "has been revoked");
    assert_error(list("expired", &ca.issuer, (2020, 2021), None), "list (sslcrl, sslcrldir) has");
    // An expired list that names the certificate is not used either.
    assert_error(list("old", &ca.issuer, (2020, 2021), Some(SERIAL)), "has expired");
    let (parameters, key) = issuer("another authority");
    let other = Issuer::new(parameters, key);
    assert_error(list("other", &other, (2020, 2200), None), "is from the issuer");
}

#[test]
fn missing_files_and_files_without_a_list_are_refused() {
    let ca = Authority::new();
    assert_error(ca.verify(Some(ca.path("missing")), None), "cannot use certificate revocation");
    assert_error(ca.verify(None, Some(ca.path("missing"))), "cannot use certificate revocation");
    assert_error(ca.verify(Some(ca.path("ca.crt")), None), "it contains no revocation list");
    let empty = ca.path("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_error(ca.verify(None, Some(empty)), "no file in it contains a revocation list");
}

#[test]
fn the_latest_list_of_an_issuer_in_a_folder_counts() {
    let ca = Authority::new();
    for (name, years) in [("a", (2019, 2020)), ("b", (2022, 2200)), ("c", (2020, 2021))] {
        ca.write_list(&format!("lists/{name}"), &ca.issuer, years, None);
    }
    assert_eq!(ca.verify(None, Some(ca.path("lists"))), None);
    ca.write_list("lists/d", &ca.issuer, (2023, 2200), Some(SERIAL));
    assert_error(ca.verify(None, Some(ca.path("lists"))), "has been revoked");
}

#[test]
fn a_self_signed_root_certificate_is_not_covered_by_a_list_of_another_issuer() {
    let ca = Authority::new();
    let list = ca.write_list("list", &ca.issuer, (2020, 2200), None);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let itself = Authority { server: made.cert.der().clone(), ..Authority::new() };
    std::fs::write(itself.path("ca.crt"), made.cert.pem()).unwrap();
    assert_eq!(itself.verify(None, None), None);
    assert_error(itself.verify(Some(list), None), "is from the issuer");
}
