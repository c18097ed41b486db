//! Certificates for tests: an authority, and what it signs, written as files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use proxy_core::{Authorities, Certificate};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    CrlDistributionPoint, CrlIssuingDistributionPoint, CrlScope, DistinguishedName, DnType, DnValue, IsCa,
    Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SanType, SignatureAlgorithm, date_time_ymd,
};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

pub(crate) use rcgen::PKCS_ECDSA_P256_SHA256 as P256;

/// Certificate and key.
pub(crate) type CertAndKey = (PathBuf, PathBuf);

/// A folder with an authority, whose certificate is `ca.pem` there.
pub(crate) struct Pki {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn issuer(&self) -> &CertifiedIssuer<'static, KeyPair> {
        &self.issuer
    }

    /// Writes `FILE.pem` and `FILE.key`, over former ones by renaming. The first of `names` is the common name too.
    pub(crate) fn issue(
        &self,
        file: &str,
        algorithm: &'static SignatureAlgorithm,
        names: &[&str],
    ) -> CertAndKey {
        self.issue_until(file, algorithm, names, 2100)
    }

    /// The same, valid from 2020 to the beginning of `year`.
    pub(crate) fn issue_until(
        &self,
        file: &str,
        algorithm: &'static SignatureAlgorithm,
        names: &[&str],
        year: i32,
    ) -> CertAndKey {
        let sans: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(sans).unwrap();
        params.distinguished_name.push(DnType::CommonName, names[0]);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        self.sign(file, algorithm, &params)
    }

    /// The same for a common name and no other.
    pub(crate) fn issue_named(&self, file: &str, common_name: &str) -> CertAndKey {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        self.sign(file, &P256, &params)
    }

    /// A certificate with this serial number.
    pub(crate) fn issue_serial(&self, serial: u64) -> CertAndKey {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, format!("number {serial}"));
        params.serial_number = Some(serial.into());
        self.sign(&format!("serial-{serial}"), &P256, &params)
    }

    /// A list of revoked serial numbers, in PEM.
    pub(crate) fn crl(&self, serials: &[u64], end: SystemTime) -> String {
        self.crl_of(serials, end, None)
    }

    /// The same for certificates of authorities or of others only, at a distribution point.
    pub(crate) fn crl_of(&self, serials: &[u64], end: SystemTime, scope: Option<CrlScope>) -> String {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(1970, 1, 1) + end.duration_since(UNIX_EPOCH).unwrap(),
            crl_number: 1.into(),
            issuing_distribution_point: scope.map(|scope| CrlIssuingDistributionPoint {
                distribution_point: CrlDistributionPoint { uris: vec!["http://ca.test/crl".to_owned()] },
                scope: Some(scope),
            }),
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// The same for a subject of so many attributes and these other names.
    pub(crate) fn issue_subject(
        &self,
        file: &str,
        subject: &[(DnType, DnValue)],
        names: Vec<SanType>,
    ) -> CertAndKey {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        params.subject_alt_names = names;
        self.sign(file, &P256, &params)
    }

    /// The same by an authority that was issued as `above`; the certificates of its chain follow in the file.
    pub(crate) fn sign_below(
        &self,
        (above, above_files): (&CertificateParams, &CertAndKey),
        file: &str,
        params: &CertificateParams,
    ) -> CertAndKey {
        let [chain, key] = [&above_files.0, &above_files.1].map(|file| fs::read_to_string(file).unwrap());
        let issuer = Issuer::from_params(above, KeyPair::from_pem(&key).unwrap());
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &issuer).unwrap();
        let files = (self.path(&format!("{file}.pem")), self.path(&format!("{file}.key")));
        replace(&files.0, format!("{}{chain}", made.pem()).as_bytes());
        replace(&files.1, key.serialize_pem().as_bytes());
        files
    }

    pub(crate) fn sign(
        &self,
        file: &str,
        algorithm: &'static SignatureAlgorithm,
        params: &CertificateParams,
    ) -> CertAndKey {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        let (cert, key_file) = (self.path(&format!("{file}.pem")), self.path(&format!("{file}.key")));
        replace(&cert, made.pem().as_bytes());
        replace(&key_file, key.serialize_pem().as_bytes());
        (cert, key_file)
    }

    /// The certificate that was issued as `file`.
    pub(crate) fn load(&self, file: &str) -> Certificate {
        Certificate::load(&self.path(&format!("{file}.pem")), &self.path(&format!("{file}.key"))).unwrap()
    }

    pub(crate) fn certificate(&self, algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Certificate {
        self.issue(names[0], algorithm, names);
        self.load(names[0])
    }

    pub(crate) fn client_ca(&self) -> Authorities {
        Authorities::load(&self.path("ca.pem")).unwrap()
    }

    /// A client that trusts the authority, with a certificate of its own or none.
    pub(crate) fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        own: Option<&CertAndKey>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let Some((cert, key)) = own else { return builder.with_no_client_auth() };
        let chain = CertificateDer::pem_file_iter(cert).unwrap().map(Result::unwrap).collect();
        let key = any_supported_type(&PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
        // Without the checks of `with_client_auth_cert`, which other clients do not make.
        let own = SingleCertAndKey::from(CertifiedKey::new(chain, key));
        builder.with_client_cert_resolver(Arc::new(own))
    }
}

/// Writes a file beside and renames it over, readable by its owner only.
pub(crate) fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    fs::write(&beside, bytes).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(beside, path).unwrap();
}
