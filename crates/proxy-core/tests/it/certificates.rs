//! Certificates and keys as users have them: made by OpenSSL, in each of its formats.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proxy_core::{Certificate, TlsFileError, TlsFileWarning};

use crate::outside::{has_echo, s_client};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, serve_echo};

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output();
    let output = output.expect("this test needs the Debian package openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A directory with keys and certificates made by OpenSSL.
struct OpenSslFiles(tempfile::TempDir);

impl OpenSslFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes `NAME.key` in PKCS#8 and a self-signed `NAME.pem`.
    fn make(&self, name: &str, key: &[&str]) -> (PathBuf, PathBuf) {
        let (cert, key_file) = (self.text(&format!("{name}.pem")), self.text(&format!("{name}.key")));
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
        arguments.extend(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"]);
        arguments.extend_from_slice(key);
        arguments.extend(["-out", &cert, "-keyout", &key_file]);
        openssl(&arguments);
        (cert.into(), key_file.into())
    }

    fn write(&self, name: &str, text: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

const P256: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
const P384: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"];
const RSA: &[&str] = &["-newkey", "rsa:2048"];

/// Serves with a certificate to a client that trusts exactly this one.
fn serves(certificate: Certificate) {
    let served = TestUpstream::unix(serve_echo);
    let leaf = certificate.leaf_der().to_vec();
    let mut proxy =
        TestProxy::start_with(&served.upstream, |config| config.tls.certificates = vec![certificate]);
    proxy.certificate = leaf;
    for version in [&TLS12, &TLS13] {
        echo(&mut proxy.connect(&proxy.client(version)), b"hello");
    }
}

#[test]
fn every_kind_of_key_serves_and_is_named() {
    let files = OpenSslFiles::new();
    let kinds = [
        ("p256", P256, "ECDSA P-256"),
        ("p384", P384, "ECDSA P-384"),
        ("rsa", RSA, "RSA-2048"),
        ("rsa4096", &["-newkey", "rsa:4096"], "RSA-4096"),
        ("ed25519", &["-newkey", "ed25519"], "Ed25519"),
    ];
    for (name, key, kind) in kinds {
        let (cert, key) = files.make(name, key);
        let certificate = Certificate::load(&cert, &key).unwrap();
        assert_eq!(certificate.kind(), kind);
        assert_eq!(certificate.warnings(), []);
        assert_eq!(certificate.chain_der().count(), 1);
        serves(certificate);
    }
}

#[test]
fn certificates_that_rustls_would_not_verify_are_served() {
    let files = OpenSslFiles::new();
    let (unknown, key) = files.make("unknown", &[P256, &["-addext", "1.2.3.4=critical,DER:0500"]].concat());
    let (request, first) = (files.text("request"), files.text("first.pem"));
    let key_text = key.to_str().unwrap();
    openssl(&["req", "-new", "-key", key_text, "-subj", "/CN=localhost", "-out", &request]);
    // Without extensions it is of the first version.
    openssl(&["x509", "-req", "-in", &request, "-signkey", key_text, "-out", &first]);
    let first = PathBuf::from(first);
    let old = TlsFileWarning::OldVersion { path: first.clone(), version: 1 };
    for (cert, warnings) in [(&unknown, vec![]), (&first, vec![old])] {
        let certificate = Certificate::load(cert, &key).unwrap();
        assert_eq!(certificate.warnings(), warnings);
        let served = TestUpstream::unix(serve_echo);
        let proxy =
            TestProxy::start_with(&served.upstream, |config| config.tls.certificates = vec![certificate]);
        for version in ["-tls1_2", "-tls1_3"] {
            let output = s_client(proxy.addr(), &[version]);
            assert!(has_echo(&output) && output.contains("CN = localhost"), "{output}");
        }
        let (_, other_key) = files.make("other", P256);
        let error = Certificate::load(cert, &other_key).unwrap_err();
        assert!(matches!(error, TlsFileError::Mismatched { .. }), "{error}");
    }
}

#[test]
fn keys_in_their_older_formats_are_read() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("rsa", RSA);
    let pkcs1 = files.text("pkcs1.key");
    openssl(&["pkey", "-in", key.to_str().unwrap(), "-traditional", "-out", &pkcs1]);
    assert!(std::fs::read_to_string(&pkcs1).unwrap().contains("BEGIN RSA PRIVATE KEY"));
    assert_eq!(Certificate::load(&cert, Path::new(&pkcs1)).unwrap().kind(), "RSA-2048");

    let (cert, key) = files.make("ec", P256);
    let sec1 = files.text("sec1.key");
    openssl(&["pkey", "-in", key.to_str().unwrap(), "-traditional", "-out", &sec1]);
    assert!(std::fs::read_to_string(&sec1).unwrap().contains("BEGIN EC PRIVATE KEY"));
    assert_eq!(Certificate::load(&cert, Path::new(&sec1)).unwrap().kind(), "ECDSA P-256");
    // With the parameters in front, as `openssl ecparam -genkey` writes it.
    let with_parameters = files.text("parameters.key");
    openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-out", &with_parameters]);
    let error = Certificate::load(&cert, Path::new(&with_parameters)).unwrap_err();
    assert!(matches!(error, TlsFileError::Mismatched { .. }), "it is read, and another key: {error}");
}

/// Certificate, key, the error they make, and the file that it must name.
type Case<'a> = (&'a Path, &'a Path, fn(&TlsFileError) -> bool, &'a Path);

#[test]
fn each_defect_has_its_own_error_that_names_the_file() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    let (_, other_key) = files.make("other", P256);
    let missing = files.path("missing.pem");
    let empty = files.write("empty.pem", b"");
    let garbage = files.write("garbage.pem", b"\0\x1b[2J not PEM at all");
    let text = std::fs::read_to_string(&cert).unwrap();
    let truncated = files.write("truncated.pem", &text.as_bytes()[..text.len() / 2]);
    let encrypted = files.text("encrypted.key");
    openssl(&["pkcs8", "-topk8", "-in", key.to_str().unwrap(), "-passout", "pass:x", "-out", &encrypted]);
    let traditional = files.text("traditional.key");
    let key_text = key.to_str().unwrap();
    openssl(&["ec", "-in", key_text, "-aes256", "-passout", "pass:x", "-out", &traditional]);
    let (encrypted, traditional) = (PathBuf::from(encrypted), PathBuf::from(traditional));
    let (cert_der, key_der) = (files.text("cert.der"), files.text("key.der"));
    openssl(&["x509", "-in", cert.to_str().unwrap(), "-outform", "DER", "-out", &cert_der]);
    openssl(&["pkey", "-in", key.to_str().unwrap(), "-outform", "DER", "-out", &key_der]);
    let (cert_der, key_der) = (PathBuf::from(cert_der), PathBuf::from(key_der));

    let cases: [Case<'_>; 13] = [
        (&missing, &key, |e| matches!(e, TlsFileError::Unreadable { .. }), &missing),
        (&cert, &missing, |e| matches!(e, TlsFileError::Unreadable { .. }), &missing),
        (&empty, &key, |e| matches!(e, TlsFileError::Empty(_)), &empty),
        (&cert, &empty, |e| matches!(e, TlsFileError::Empty(_)), &empty),
        (&cert, &garbage, |e| matches!(e, TlsFileError::NoKey(_)), &garbage),
        (&cert_der, &key, |e| matches!(e, TlsFileError::NotPem(_)), &cert_der),
        (&cert, &key_der, |e| matches!(e, TlsFileError::NotPem(_)), &key_der),
        (&garbage, &key, |e| matches!(e, TlsFileError::NoCertificate(_)), &garbage),
        (&truncated, &key, |e| matches!(e, TlsFileError::Malformed { .. }), &truncated),
        (&cert, &other_key, |e| matches!(e, TlsFileError::Mismatched { .. }), &other_key),
        (&cert, &encrypted, |e| matches!(e, TlsFileError::EncryptedKey(_)), &encrypted),
        (&cert, &traditional, |e| matches!(e, TlsFileError::EncryptedKey(_)), &traditional),
        (&cert, files.0.path(), |e| matches!(e, TlsFileError::Unreadable { .. }), files.0.path()),
    ];
    for (cert, key, is_expected, named) in cases {
        let error = Certificate::load(cert, key).unwrap_err();
        let text = error.to_string();
        assert!(is_expected(&error), "{error:?}");
        assert!(text.contains(named.to_str().unwrap()), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn a_file_that_is_cut_names_the_line_that_it_lacks() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    let half = |path: &Path, name: &str| {
        let text = std::fs::read(path).unwrap();
        files.write(name, &text[..text.len() / 2])
    };
    let (half_cert, half_key) = (half(&cert, "half.pem"), half(&key, "half.key"));
    let one_line = files.write("line.key", b"-----BEGIN PRIVATE KEY-----MIGH\n");
    for (cert, key, expected) in [
        (&half_cert, &key, "the file ends before -----END CERTIFICATE-----, and may be incomplete"),
        (&cert, &half_key, "the file ends before -----END PRIVATE KEY-----, and may be incomplete"),
        (&cert, &one_line, "a line that begins with -----BEGIN does not end with -----"),
    ] {
        let text = Certificate::load(cert, key).unwrap_err().to_string();
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn a_key_and_a_certificate_may_share_a_file() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    let both = [std::fs::read(key).unwrap(), std::fs::read(cert).unwrap()].concat();
    let both = files.write("both.pem", &both);
    Certificate::load(&both, &both).unwrap();
}

#[test]
fn a_key_that_others_may_read_is_warned_of() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let certificate = Certificate::load(&cert, &key).unwrap();
    assert_eq!(certificate.warnings(), [TlsFileWarning::Exposed { path: key.clone(), mode: 0o644 }]);
    let text = certificate.warnings()[0].to_string();
    assert!(text.contains(key.to_str().unwrap()) && text.contains("0644"), "{text}");
}

#[test]
fn a_generated_certificate_is_for_the_names_that_clients_use() {
    let certificate = Certificate::generate(&["example.test".into(), "10.1.2.3".into()]).unwrap();
    assert_eq!(certificate.kind(), "ECDSA P-256");
    let files = OpenSslFiles::new();
    let der = files.write("leaf.der", certificate.leaf_der());
    for (option, name) in [
        ("-checkhost", "localhost"),
        ("-checkhost", "example.test"),
        ("-checkip", "127.0.0.1"),
        ("-checkip", "::1"),
        ("-checkip", "10.1.2.3"),
    ] {
        let output = Command::new("openssl")
            .args(["x509", "-inform", "DER", "-noout", option, name, "-in", der.to_str().unwrap()])
            .output()
            .expect("this test needs the Debian package openssl");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("does match certificate"), "{text}");
    }
}

#[test]
fn a_name_that_is_none_is_refused() {
    let error = Certificate::generate(&["exämple".into()]).unwrap_err();
    assert!(error.to_string().contains("exämple"), "{error}");
}

#[test]
fn the_key_never_shows() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    let certificate = Certificate::load(&cert, &key).unwrap();
    assert_eq!(format!("{certificate:?}"), "Certificate { kind: \"ECDSA P-256\", .. }");
}

/// Has an authority of OpenSSL sign `NAME.pem` with these extensions and options.
fn signed(files: &OpenSslFiles, name: &str, extensions: &str, options: &[&str]) -> (PathBuf, PathBuf) {
    let (ca, ca_key) = files.make("ca", P256);
    let [key, request, cert] = [".key", ".csr", ".pem"].map(|end| files.text(&format!("{name}{end}")));
    let subject = format!("/CN={name}");
    let mut new = vec!["req", "-new", "-nodes", "-subj", &subject, "-keyout", &key, "-out", &request];
    new.extend_from_slice(P256);
    openssl(&new);
    let extensions = files.write("extensions", format!("subjectAltName=DNS:{name}\n{extensions}").as_bytes());
    let [ca, ca_key, extensions] = [&ca, &ca_key, &extensions].map(|path| path.to_str().unwrap());
    let mut sign = vec!["x509", "-req", "-in", &request, "-CA", ca, "-CAkey", ca_key, "-extfile", extensions];
    sign.extend(["-out", &cert]);
    sign.extend_from_slice(options);
    openssl(&sign);
    (cert.into(), key.into())
}

/// The warnings about a chain, without the paths.
fn faults(cert: &Path, key: &Path) -> Vec<String> {
    let certificate = Certificate::load(cert, key).unwrap();
    let faults = certificate.warnings().iter().filter_map(|warning| match warning {
        TlsFileWarning::Chain { fault, .. } => Some(fault.clone()),
        _ => None,
    });
    faults.collect()
}

#[test]
fn a_chain_that_clients_may_refuse_is_warned_of() {
    let files = OpenSslFiles::new();
    let (cert, key) = signed(&files, "direct", "", &[]);
    assert_eq!(faults(&cert, &key), [""; 0], "its authority may be a root");
    let aia = "authorityInfoAccess=caIssuers;URI:http://ca.test/ca.crt";
    let (cert, key) = signed(&files, "alone", aia, &[]);
    assert_eq!(faults(&cert, &key), ["the chain is incomplete: CN=localhost is missing"]);
    let whole = [std::fs::read(&cert).unwrap(), std::fs::read(files.path("ca.pem")).unwrap()].concat();
    let whole = files.write("whole.pem", &whole);
    assert_eq!(faults(&whole, &key), [""; 0]);
    let wrong = [std::fs::read(&cert).unwrap(), std::fs::read(&cert).unwrap()].concat();
    let wrong = files.write("wrong.pem", &wrong);
    assert_eq!(
        faults(&wrong, &key),
        ["the chain is out of order: CN=alone follows where CN=localhost is due"]
    );
    let (cert, key) = signed(&files, "weak", "", &["-sha1"]);
    assert_eq!(faults(&cert, &key), ["CN=weak is signed with SHA-1"]);
}

#[test]
fn text_before_the_pem_carriage_returns_and_a_byte_order_mark_are_read() {
    let files = OpenSslFiles::new();
    let (cert, key) = files.make("good", P256);
    let [cert_text, key_text] = [&cert, &key].map(|path| std::fs::read_to_string(path).unwrap());
    let before = format!("subject=CN = localhost\nissuer=CN = localhost\n{cert_text}");
    let returns = cert_text.replace('\n', "\r\n");
    let marked = format!("\u{feff}{cert_text}");
    for (name, text) in [("before.pem", before), ("returns.pem", returns), ("marked.pem", marked)] {
        let cert = files.write(name, text.as_bytes());
        Certificate::load(&cert, &key).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, text) in
        [("returns.key", key_text.replace('\n', "\r\n")), ("marked.key", format!("\u{feff}{key_text}"))]
    {
        let key = files.write(name, text.as_bytes());
        Certificate::load(&cert, &key).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
