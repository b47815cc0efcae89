//! Valid and invalid certificates for one test, in files that a server can read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};

/// A folder with two certificate authorities and the certificates that they signed.
pub(crate) struct Certificates {
    folder: PathBuf,
}

/// Host names and addresses in a certificate (subject alternative names).
type Names<'a> = &'a [&'a str];

fn parameters(common_name: &str, names: Names<'_>) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters
}

fn authority(name: &str) -> (CertificateParams, KeyPair) {
    let mut parameters = parameters(name, &[]);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (parameters, KeyPair::generate().unwrap())
}

impl Certificates {
    /// Creates the server certificates `good`, `expired`, `revoked`, `other-name`, `common-name`, `foreign`
    /// (signed by another authority) and `self-signed`, and the client certificates `client` and
    /// `foreign-client` of the user `u_cert`.
    pub(crate) fn create(folder: PathBuf) -> Self {
        let created = Self { folder };
        let (ca, ca_key) = authority("riops test authority");
        created.write("ca", &ca.self_signed(&ca_key).unwrap().pem(), None);
        let (other, other_key) = authority("another authority");
        created.write("other-ca", &other.self_signed(&other_key).unwrap().pem(), None);
        let ca = Issuer::new(ca, ca_key);
        let other = Issuer::new(other, other_key);
        let local: Names<'_> = &["localhost", "127.0.0.1"];
        created.write_signed("good", &parameters("riops", local), &ca);
        created.write_signed("foreign", &parameters("riops", local), &other);
        created.write_signed("other-name", &parameters("riops", &["db.example"]), &ca);
        created.write_signed("common-name", &parameters("localhost", &[]), &ca);
        let mut expired = parameters("riops", local);
        expired.not_before = date_time_ymd(2020, 1, 1);
        expired.not_after = date_time_ymd(2021, 1, 1);
        created.write_signed("expired", &expired, &ca);
        let mut revoked = parameters("riops", local);
        revoked.serial_number = Some(SerialNumber::from(4711));
        created.write_signed("revoked", &revoked, &ca);
        created.write_signed("client", &parameters("u_cert", &[]), &ca);
        created.write_signed("foreign-client", &parameters("u_cert", &[]), &other);
        let (itself, key) = authority("localhost");
        created.write("self-signed", &itself.self_signed(&key).unwrap().pem(), Some(&key));
        created.revocation_list("revocations", &ca, 2100);
        created.revocation_list("expired-revocations", &ca, 2026);
        created.revocation_list("foreign-revocations", &other, 2100);
        created
    }

    /// Uses the certificates in an existing folder.
    pub(crate) fn from_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Writes a list that expires at the end of January of this year.
    fn revocation_list(&self, name: &str, ca: &Issuer<'_, KeyPair>, expires: i32) {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(expires, 1, 31),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(4711),
                revocation_time: date_time_ymd(2026, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = list.signed_by(ca).unwrap().pem().unwrap();
        self.write(name, &pem, None);
    }

    fn write_signed(
        &self,
        name: &str,
        parameters: &CertificateParams,
        issuer: &Issuer<'_, KeyPair>,
    ) {
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, issuer).unwrap();
        self.write(name, &certificate.pem(), Some(&key));
    }

    fn write(&self, name: &str, pem: &str, key: Option<&KeyPair>) {
        std::fs::write(self.certificate(name), pem).unwrap();
        if let Some(key) = key {
            std::fs::write(self.key(name), key.serialize_pem()).unwrap();
            let secret = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(self.key(name), secret).unwrap();
        }
    }

    /// Returns the file of a certificate.
    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    /// Returns the file of a certificate's private key.
    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// Changes the owner of all files to the owner of `like`, who must be able to read the keys.
    pub(crate) fn chown_like(&self, like: &Path) {
        use std::os::unix::fs::MetadataExt;
        let owner = std::fs::metadata(like).unwrap();
        for entry in self.folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}
