//! Orders from beginning to end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use acme::{AcmeClient, AcmeConfig, AcmeError, AcmeStore, ChallengeAnswers, DnsHook, Responder};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tls_client::Trust;

use crate::answering::{serve_http, serve_tls_alpn};
use crate::authority::serve_rate_limit;
use crate::pebble::{Pebble, free_ports};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn config(directory: &str, ca: &Path, domains: &[&str]) -> AcmeConfig {
    AcmeConfig {
        domains: domains.iter().map(|&domain| domain.to_owned()).collect(),
        contacts: vec!["admin@example.test".to_owned()],
        directory: directory.to_owned(),
        trust: Trust::CaFile(ca.to_owned()),
        profile: Some("shortlived".to_owned()),
    }
}

fn client(pebble: &Pebble, responder: Responder, domains: &[&str]) -> (AcmeClient, AcmeStore) {
    let store = AcmeStore::open(&pebble.folder.path().join("acme")).unwrap();
    let config = config(&pebble.directory, &pebble.ca(), domains);
    (AcmeClient::new(config, responder, store.clone()).unwrap(), store)
}

/// The leaf in DER, of a file that must have a whole chain and a key.
fn leaf(store: &AcmeStore) -> Vec<u8> {
    let text = fs::read(store.certificate()).unwrap();
    PrivateKeyDer::from_pem_slice(&text).unwrap();
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text).map(Result::unwrap).collect();
    assert!(chain.len() > 1, "it has no chain");
    chain[0].to_vec()
}

#[test]
fn tls_alpn_01_gets_a_certificate_and_renews_it_with_the_same_account() {
    let Some(pebble) = Pebble::start("tls_alpn_01_gets_a_certificate_and_renews_it_with_the_same_account", 0)
    else {
        return;
    };
    let answers = ChallengeAnswers::default();
    serve_tls_alpn(pebble.tls_port, answers.clone());
    let (client, store) = client(&pebble, Responder::TlsAlpn01(answers.clone()), &["a.test", "b.test"]);
    run(client.order(None)).unwrap();
    let first = leaf(&store);
    let account = pebble.folder.path().join("acme/account.json");
    assert_eq!(fs::metadata(&account).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&account).unwrap();
    assert!(answers.find("a.test").is_none(), "no answer is left");
    let ((start, end), ask_after) = run(client.renewal_window(&first)).unwrap();
    assert!(start < end && ask_after > Duration::ZERO);
    run(client.order(Some(&first))).unwrap();
    assert!(leaf(&store) != first && fs::read(&account).unwrap() == before);
    // The authority does not replace it twice: the order is a plain one.
    run(client.order(Some(&first))).unwrap();
}

#[test]
fn http_01_gets_a_certificate_although_nonces_are_refused() {
    let Some(pebble) = Pebble::start("http_01_gets_a_certificate_although_nonces_are_refused", 30) else {
        return;
    };
    let answers = ChallengeAnswers::default();
    serve_http(pebble.http_port, answers.clone());
    let (client, store) = client(&pebble, Responder::Http01(answers), &["a.test"]);
    // A request is sent three times at most, so some orders fail, as after any failure to be repeated.
    let is_done = (0..50).any(|_| match run(client.order(None)) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.to_string().contains("badNonce"), "{error}");
            false
        }
    });
    assert!(is_done);
    leaf(&store);
}

#[test]
fn dns_01_gets_a_wildcard_and_removes_its_records() {
    let Some(pebble) = Pebble::start("dns_01_gets_a_wildcard_and_removes_its_records", 0) else { return };
    let (hook, log) = (pebble.folder.path().join("hook"), pebble.folder.path().join("log"));
    let script = format!(
        "#!/bin/sh\nset -e\necho \"$1 $2\" >>'{}'\n[ $1 = present ] && call=set-txt || call=clear-txt\n\
         curl --silent --fail -d \"{{\\\"host\\\": \\\"$2.\\\", \\\"value\\\": \\\"$3\\\"}}\" \"http://127.0.0.1:{}/$call\"\n",
        log.display(),
        pebble.dns_management
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    let (client, store) = client(&pebble, Responder::Dns01(DnsHook::new(&hook)), &["*.a.test"]);
    run(client.order(None)).unwrap();
    leaf(&store);
    assert_eq!(
        fs::read_to_string(&log).unwrap(),
        "present _acme-challenge.a.test\ncleanup _acme-challenge.a.test\n"
    );
    fs::write(&hook, "#!/bin/sh\necho no such zone >&2\nexit 3\n").unwrap();
    let (client, _) = self::client(&pebble, Responder::Dns01(DnsHook::new(&hook)), &["b.test"]);
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(
        refused.contains("hook present _acme-challenge.b.test failed with exit status: 3: no such zone"),
        "{refused}"
    );
}

#[test]
fn a_failed_validation_names_the_domain_and_leaves_the_certificate() {
    let Some(pebble) = Pebble::start("a_failed_validation_names_the_domain_and_leaves_the_certificate", 0)
    else {
        return;
    };
    serve_http(pebble.http_port, ChallengeAnswers::default());
    let answers = ChallengeAnswers::default();
    let (client, store) = client(&pebble, Responder::Http01(answers), &["a.test"]);
    store.write_certificate("key\n", "chain\n").unwrap();
    let refused = run(client.order(None)).unwrap_err();
    assert!(matches!(&refused, AcmeError::Invalid { domain, .. } if domain == "a.test"), "{refused}");
    assert_eq!(fs::read_to_string(store.certificate()).unwrap(), "key\nchain\n");
}

#[test]
fn a_rate_limit_says_when_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, ca) = serve_rate_limit(folder.path(), 3_600);
    let store = AcmeStore::open(&folder.path().join("acme")).unwrap();
    let config = config(&directory, &ca, &["a.test"]);
    let client = AcmeClient::new(config, Responder::Http01(ChallengeAnswers::default()), store).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains("too many certificates"), "{refused}");
    let wait = client.take_retry_at().unwrap().duration_since(SystemTime::now()).unwrap();
    assert!((3_590..=3_600).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(client.take_retry_at(), None);
}

#[test]
fn an_authority_that_is_down_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ca) = serve_rate_limit(folder.path(), 0);
    let [port] = free_ports();
    let directory = format!("https://127.0.0.1:{port}/dir");
    let store = AcmeStore::open(&folder.path().join("acme")).unwrap();
    let config = config(&directory, &ca, &["a.test"]);
    let client = AcmeClient::new(config, Responder::Http01(ChallengeAnswers::default()), store).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains(&directory) && refused.contains("refused"), "{refused}");
}
