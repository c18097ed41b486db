//! OCSP responses beside certificates: stapled, renewed, refused and dropped while the proxy serves.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use proxy_core::{Certificate, TlsFileWarning};
use rcgen::{
    CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, KeyPair, SigningKey as _, date_time_ymd,
};
use records::kinds::CertificateRecord;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::outside::{has_echo, s_client};
use crate::pki::{P256, Pki, replace};
use crate::support::{TestProxy, TestUpstream, eventually, serve_echo};

const HOUR: i64 = 3_600;
/// The hash algorithms of certificate identifiers, in DER.
const SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const GOOD: &[u8] = &[0x80, 0];
const REVOKED: &[u8] = b"\xa1\x11\x18\x0f20200101000000Z";
const UNKNOWN: &[u8] = &[0x82, 0];

/// Issues `FILE.pem`, followed by the certificate of the authority.
fn issue(pki: &Pki, file: &str, change: impl FnOnce(&mut CertificateParams)) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    change(&mut params);
    let (cert, _) = pki.sign(file, &P256, &params);
    let chain = [fs::read(&cert).unwrap(), fs::read(pki.path("ca.pem")).unwrap()].concat();
    replace(&cert, &chain);
}

fn start(pki: &Pki, served: &TestUpstream) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| config.tls.certificates = vec![pki.load("one")])
}

fn record(proxy: &TestProxy) -> CertificateRecord {
    proxy.proxy.certificates().into_iter().next().unwrap()
}

/// Why the response beside a certificate is not stapled.
fn refusal(certificate: &Certificate) -> Option<String> {
    certificate.warnings().iter().find_map(|warning| match warning {
        TlsFileWarning::NotStapled { problem, .. } => Some(problem.clone()),
        _ => None,
    })
}

/// What `openssl s_client` says of the stapled response, in both versions.
fn asked(proxy: &TestProxy) -> String {
    let [old, new] = ["-tls1_2", "-tls1_3"].map(|version| {
        let output = s_client(proxy.addr(), &[version, "-status"]);
        assert!(has_echo(&output), "{output}");
        let line = |line: &&str| line.contains("Cert Status:") || line.contains("no response sent");
        output.lines().find(line).unwrap_or("neither").trim().to_owned()
    });
    assert_eq!(old, new);
    new
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Has OpenSSL answer for `FILE.pem` into a file: `state` is `V` or `R`, as in an index of its.
fn openssl_response(pki: &Pki, file: &str, state: &str, days: &str, into: &str) {
    let chain = pki.load(file);
    let serial = X509Certificate::from_der(chain.leaf_der()).unwrap().1.raw_serial_as_string();
    let revoked = if state == "R" { "200101000000Z" } else { "" };
    let line = format!("{state}\t491231000000Z\t{revoked}\t{}\tunknown\t/CN=x\n", serial.replace(':', ""));
    fs::write(pki.path("index"), line.to_uppercase().replace("UNKNOWN", "unknown")).unwrap();
    fs::write(pki.path("ca.key"), pki.issuer().key().serialize_pem()).unwrap();
    let [index, ca, key] = ["index", "ca.pem", "ca.key"].map(|name| pki.text(name));
    let (cert, into) = (pki.text(&format!("{file}.pem")), pki.text(into));
    let answer = ["ocsp", "-index", &index, "-CA", &ca, "-rsigner", &ca, "-rkey", &key, "-issuer", &ca];
    let output = Command::new("openssl")
        .args(answer)
        .args(["-cert", &cert, "-ndays", days, "-respout", &into])
        .output()
        .expect("this test needs the Debian package openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len().to_be_bytes();
    let len = if content.len() < 128 { vec![len[7]] } else { vec![0x82, len[6], len[7]] };
    [&[tag][..], &len, &content].concat()
}

fn time(unix: i64) -> Vec<u8> {
    let time = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix.unsigned_abs());
    let (date, time) = ((time.year(), time.month() as u8, time.day()), time.to_hms());
    let text = format!("{:04}{:02}{:02}{:02}{:02}{:02}Z", date.0, date.1, date.2, time.0, time.1, time.2);
    der(0x18, &[text.as_bytes()])
}

/// A response, made by hand because OpenSSL makes none that is wrong. Times are in seconds from now.
struct Response<'a> {
    hash: (&'a [u8], &'static digest::Algorithm),
    status: &'a [u8],
    this_update: i64,
    next_update: Option<i64>,
    /// Who has signed it, and with what certificate if not the issuer.
    signer: &'a KeyPair,
    responder: Option<&'a [u8]>,
}

impl<'a> Response<'a> {
    fn good(pki: &'a Pki) -> Self {
        Response {
            hash: (SHA1, &digest::SHA1_FOR_LEGACY_USE_ONLY),
            status: GOOD,
            this_update: -HOUR,
            next_update: Some(HOUR),
            signer: pki.issuer().key(),
            responder: None,
        }
    }

    /// Writes it beside `one.pem`.
    fn write(&self, pki: &Pki) {
        replace(&pki.path("one.pem.ocsp"), &self.der(pki));
    }

    fn der(&self, pki: &Pki) -> Vec<u8> {
        let one = pki.load("one");
        let (leaf, issuer) = (one.leaf_der(), pki.issuer().der());
        let [leaf, issuer] = [leaf, issuer].map(|der| X509Certificate::from_der(der).unwrap().1);
        let hash = |of: &[u8]| der(4, &[digest::digest(self.hash.1, of).as_ref()]);
        let id = [
            der(0x30, &[&der(6, &[self.hash.0]), &[5, 0]]),
            hash(leaf.issuer().as_raw()),
            hash(&issuer.public_key().subject_public_key.data),
            der(2, &[leaf.raw_serial()]),
        ];
        let next = self.next_update.map(|next| der(0xa0, &[&time(now() + next)])).unwrap_or_default();
        let id = der(0x30, &[&id.concat()]);
        let single = der(0x30, &[&id, self.status, &time(now() + self.this_update), &next]);
        let responder_id = der(0xa1, &[leaf.issuer().as_raw()]);
        let data = der(0x30, &[&responder_id, &time(now()), &der(0x30, &[&single])]);
        let signature = self.signer.sign(&data).unwrap();
        let algorithm = der(0x30, &[&der(6, &[ECDSA_WITH_SHA256])]);
        let certs = self.responder.map(|cert| der(0xa0, &[&der(0x30, &[cert])])).unwrap_or_default();
        let basic = der(0x30, &[&data, &algorithm, &der(3, &[&[0], &signature]), &certs]);
        let kind = der(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
        der(0x30, &[&[10, 1, 0], &der(0xa0, &[&der(0x30, &[&kind, &der(4, &[&basic])])])])
    }
}

#[test]
fn openssl_gets_the_response_its_renewal_and_none_once_it_is_removed() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    issue(&pki, "one", |_| ());
    openssl_response(&pki, "one", "V", "1", "one.pem.ocsp");
    assert_eq!(pki.load("one").warnings(), []);
    let mut proxy = start(&pki, &served);
    assert_eq!(asked(&proxy), "Cert Status: good");
    let ends = |proxy: &TestProxy| record(proxy).stapled_until as i64 - now();
    let first = ends(&proxy);
    assert!((24 * HOUR - 60..=24 * HOUR).contains(&first), "{first}");
    let look = |proxy: &mut TestProxy| {
        let refreshed = [proxy.proxy.refresh(), proxy.proxy.refresh()];
        assert!(refreshed.iter().all(|one| one.refusals.is_empty() && one.warnings.is_empty()));
        proxy.collect();
    };
    openssl_response(&pki, "one", "V", "2", "new");
    fs::rename(pki.path("new"), pki.path("one.pem.ocsp")).unwrap();
    look(&mut proxy);
    assert!(ends(&proxy) > first + 23 * HOUR);
    assert_eq!(asked(&proxy), "Cert Status: good");
    fs::remove_file(pki.path("one.pem.ocsp")).unwrap();
    look(&mut proxy);
    assert_eq!(asked(&proxy), "OCSP response: no response sent");
    assert_eq!((record(&proxy).stapled_until, record(&proxy).refusal), (0, String::new()));
}

#[test]
fn an_unusable_response_is_told_and_the_former_one_stays_until_revoked() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    issue(&pki, "one", |_| ());
    issue(&pki, "two", |_| ());
    let (good, other) = (Response::good(&pki), KeyPair::generate().unwrap());
    let whole = good.der(&pki);
    openssl_response(&pki, "two", "V", "1", "of-two");
    let cases = [
        (b"no DER".to_vec(), "it is not a basic OCSP response in DER"),
        (whole[..whole.len() - 1].to_vec(), "it is not a basic OCSP response in DER"),
        ([&whole[..], &[0]].concat(), "it is not a basic OCSP response in DER"),
        (vec![0; (64 << 10) + 1], "it has 65537 bytes, more than 65536"),
        (Vec::new(), "one.pem.ocsp is empty"),
        (vec![0x30, 3, 10, 1, 3], "the responder has refused the request (status 3)"),
        (fs::read(pki.path("of-two")).unwrap(), "it is for another certificate"),
        (Response { signer: &other, ..Response::good(&pki) }.der(&pki), "neither the issuer"),
        (Response { status: UNKNOWN, ..Response::good(&pki) }.der(&pki), "does not know the certificate"),
        (Response { this_update: HOUR, ..Response::good(&pki) }.der(&pki), "it is not valid yet"),
        (Response { next_update: None, ..Response::good(&pki) }.der(&pki), "(nextUpdate)"),
        (Response { next_update: Some(-5), ..Response::good(&pki) }.der(&pki), "it has ended"),
    ];
    good.write(&pki);
    let mut proxy = start(&pki, &served);
    let until = record(&proxy).stapled_until;
    assert!(until > 0 && record(&proxy).refusal.is_empty());
    for (bytes, problem) in cases {
        replace(&pki.path("one.pem.ocsp"), &bytes);
        let at_start = refusal(&pki.load("one")).unwrap();
        assert!(at_start.contains(problem), "{at_start}");
        let warnings = proxy.proxy.reload().warnings;
        let [TlsFileWarning::NotStapled { path, problem }] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!((path, problem), (&pki.path("one.pem.ocsp"), &at_start));
        assert_eq!((record(&proxy).stapled_until, record(&proxy).refusal), (until, warnings[0].to_string()));
    }
    proxy.collect();
    assert_eq!(asked(&proxy), "Cert Status: good");
    openssl_response(&pki, "one", "R", "1", "one.pem.ocsp");
    assert_eq!(refusal(&pki.load("one")).unwrap(), "the certificate has been revoked; replace it");
    proxy.proxy.reload();
    proxy.collect();
    assert_eq!(asked(&proxy), "OCSP response: no response sent");
    assert_eq!(record(&proxy).stapled_until, 0);
    Response { status: REVOKED, ..Response::good(&pki) }.write(&pki);
    assert!(refusal(&pki.load("one")).unwrap().contains("revoked"));
}

#[test]
fn an_ended_response_is_dropped_although_no_file_changes() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    issue(&pki, "one", |params| {
        let must_staple =
            CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 24], vec![48, 3, 2, 1, 5]);
        params.custom_extensions.push(must_staple);
    });
    Response { next_update: Some(6), ..Response::good(&pki) }.write(&pki);
    let mut proxy = start(&pki, &served);
    let lacks_staple = |proxy: &TestProxy| record(proxy).lacks_staple(now().unsigned_abs());
    assert!(record(&proxy).must_staple && !lacks_staple(&proxy));
    let mut warnings = Vec::new();
    eventually("the response has ended", || {
        warnings.extend(proxy.proxy.refresh().warnings);
        !warnings.is_empty()
    });
    assert!(proxy.proxy.refresh().warnings.is_empty(), "told once");
    let path = pki.path("one.pem.ocsp");
    let ended = TlsFileWarning::NotStapled { path, problem: "it has ended; ask for a new one".to_owned() };
    assert_eq!(warnings, std::slice::from_ref(&ended));
    assert_eq!((record(&proxy).stapled_until, record(&proxy).refusal), (0, ended.to_string()));
    assert!(lacks_staple(&proxy));
    proxy.collect();
    assert_eq!(asked(&proxy), "OCSP response: no response sent");
    // The former response has ended too, so it does not stay.
    fs::write(pki.path("one.pem.ocsp"), "damaged").unwrap();
    proxy.proxy.reload();
    assert_eq!(record(&proxy).stapled_until, 0);
}

#[test]
fn a_renewed_certificate_does_not_wait_for_its_response() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    issue(&pki, "one", |_| ());
    Response::good(&pki).write(&pki);
    let proxy = start(&pki, &served);
    let before = record(&proxy);
    issue(&pki, "one", |_| ());
    proxy.proxy.refresh();
    assert_eq!(proxy.proxy.refresh().changes.len(), 1);
    let after = record(&proxy);
    assert!(after.fingerprint != before.fingerprint && after.stapled_until == 0);
    assert!(after.refusal.contains("it is for another certificate"), "{}", after.refusal);
    Response::good(&pki).write(&pki);
    proxy.proxy.refresh();
    proxy.proxy.refresh();
    assert!(record(&proxy).stapled_until > 0 && record(&proxy).refusal.is_empty());
}

#[test]
fn a_responder_needs_a_certificate_for_that_from_the_issuer() {
    let pki = Pki::new();
    issue(&pki, "one", |_| ());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let without = params.signed_by(&key, pki.issuer()).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::OcspSigning];
    let of_other = params.signed_by(&key, Pki::new().issuer()).unwrap();
    let with = params.signed_by(&key, pki.issuer()).unwrap();
    params.not_after = date_time_ymd(2021, 1, 1);
    let expired = params.signed_by(&key, pki.issuer()).unwrap();
    let refused = Some("neither the issuer nor a responder that it appointed has signed it".to_owned());
    for (responder, expected) in
        [(without, &refused), (of_other, &refused), (expired, &refused), (with, &None)]
    {
        let signed = Response { signer: &key, responder: Some(responder.der()), ..Response::good(&pki) };
        signed.write(&pki);
        assert_eq!(refusal(&pki.load("one")), *expected);
    }
}

#[test]
fn certificates_are_named_by_sha256_too_and_the_issuer_must_be_in_the_chain() {
    let pki = Pki::new();
    issue(&pki, "one", |_| ());
    Response { hash: (SHA256, &digest::SHA256), ..Response::good(&pki) }.write(&pki);
    assert_eq!(refusal(&pki.load("one")), None);
    let chain = fs::read_to_string(pki.path("one.pem")).unwrap();
    let leaf = chain.split_inclusive("-----END CERTIFICATE-----").next().unwrap();
    fs::write(pki.path("one.pem"), leaf).unwrap();
    assert!(refusal(&pki.load("one")).unwrap().contains("of the issuer is not in the chain"));
}

#[test]
fn a_damaged_response_is_never_stapled() {
    let pki = Pki::new();
    issue(&pki, "one", |_| ());
    let whole = Response::good(&pki).der(&pki);
    let is_stapled = |bytes: &[u8]| {
        fs::write(pki.path("one.pem.ocsp"), bytes).unwrap();
        refusal(&pki.load("one")).is_none()
    };
    assert!(is_stapled(&whole));
    let find = |part: &[u8]| whole.windows(part.len()).position(|window| window == part).unwrap();
    let name = X509Certificate::from_der(pki.issuer().der()).unwrap().1.subject().as_raw().to_vec();
    // The algorithm, which follows it, is not looked at: the key alone decides.
    let signed = find(&name)..find(ECDSA_WITH_SHA256) - 4;
    for at in 0..whole.len() {
        assert!(!is_stapled(&whole[..at]), "cut at {at}");
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        assert!(!is_stapled(&damaged) || !signed.contains(&at), "byte {at}");
    }
}
