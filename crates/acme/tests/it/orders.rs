//! Orders from beginning to end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use acme::{AcmeClient, AcmeConfig, AcmeError, AcmeStore, ChallengeAnswers, DnsHook, Responder};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tls_client::Trust;

use crate::answering::{serve_http, serve_tls_alpn};
use crate::authority::{Refusal, serve_refusals};
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

/// The store of an order, made if it is missing.
pub(crate) fn open(config: &AcmeConfig, folder: &Path) -> AcmeStore {
    let store = AcmeStore::new(folder, &config.directory, &config.domains);
    store.open().unwrap();
    store
}

/// The file of the only account below a folder.
pub(crate) fn account_file(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut accounts = files.filter(|path| path.extension().is_some_and(|name| name == "json"));
    let account = accounts.next().unwrap();
    assert_eq!(accounts.next(), None);
    account
}

fn client(pebble: &Pebble, responder: Responder, domains: &[&str]) -> (AcmeClient, AcmeStore) {
    let config = config(&pebble.directory, &pebble.ca(), domains);
    let store = open(&config, &pebble.folder.path().join("acme"));
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
    let account = account_file(&pebble.folder.path().join("acme"));
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
    let script = format!(
        "#!/bin/sh\necho \"$1$NOTIFY_SOCKET\" >>'{}'\necho no such zone >&2\nexit 3\n",
        log.display()
    );
    fs::write(&hook, script).unwrap();
    let (client, _) = self::client(&pebble, Responder::Dns01(DnsHook::new(&hook)), &["b.test"]);
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(
        refused.contains("hook present _acme-challenge.b.test failed with exit status: 3: no such zone"),
        "{refused}"
    );
    // What it may have published nevertheless is removed.
    assert!(fs::read_to_string(&log).unwrap().ends_with("\npresent\ncleanup\n"));
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
    store.write_certificate("key and chain\n").unwrap();
    let refused = run(client.order(None)).unwrap_err();
    assert!(matches!(&refused, AcmeError::Invalid { domain, .. } if domain == "a.test"), "{refused}");
    assert_eq!(fs::read_to_string(store.certificate()).unwrap(), "key and chain\n");
}

/// A client of an authority that refuses each order.
fn refused_client(folder: &Path, refusal: Refusal) -> AcmeClient {
    let (directory, ca) = serve_refusals(folder, refusal);
    let config = config(&directory, &ca, &["a.test"]);
    let store = open(&config, &folder.join("acme"));
    AcmeClient::new(config, Responder::Http01(ChallengeAnswers::default()), store).unwrap()
}

#[test]
fn a_rate_limit_says_when_to_come_back() {
    const WEEK_S: u64 = 7 * 24 * 3600;
    for (refusal, wait_s) in [(Refusal::RATE_LIMIT, 3_600), (Refusal::MAD_RATE_LIMIT, WEEK_S)] {
        let folder = tempfile::tempdir().unwrap();
        let client = refused_client(folder.path(), refusal);
        let refused = run(client.order(None)).unwrap_err().to_string();
        assert!(refused.contains("too many certificates"), "{refused}");
        let wait = client.take_retry_at().unwrap().duration_since(SystemTime::now()).unwrap();
        assert!((wait_s - 10..=wait_s).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(client.take_retry_at(), None);
    }
}

#[test]
fn a_refused_account_is_named_and_what_is_in_front_of_an_authority_too() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let said =
        |folder: &Path, refusal| run(refused_client(folder, refusal).order(None)).unwrap_err().to_string();
    let deactivated = said(folder.path(), Refusal::DEACTIVATED);
    assert!(deactivated.contains("the account is deactivated"), "{deactivated}");
    let account = account_file(&folder.path().join("acme"));
    assert!(deactivated.contains(&format!("{}: ", account.display())), "{deactivated}");
    assert!(account.exists(), "nobody asked for a new one");
    let away = said(other.path(), Refusal::AWAY);
    assert!(away.ends_with("/newOrder: 503 Service Unavailable"), "{away}");
    let down = said(tempfile::tempdir().unwrap().path(), Refusal::DOWN);
    assert!(down.ends_with("/dir: 503 Service Unavailable"), "{down}");
}

#[test]
fn an_authority_that_is_down_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ca) = serve_refusals(folder.path(), Refusal::AWAY);
    let [port] = free_ports();
    let directory = format!("https://127.0.0.1:{port}/dir");
    let config = config(&directory, &ca, &["a.test"]);
    let store = open(&config, &folder.path().join("acme"));
    let client = AcmeClient::new(config, Responder::Http01(ChallengeAnswers::default()), store).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains(&directory) && refused.contains("refused"), "{refused}");
}

#[test]
fn a_certificate_that_could_not_be_written_is_not_ordered_again() {
    let test = "a_certificate_that_could_not_be_written_is_not_ordered_again";
    let Some(pebble) = Pebble::start(test, 0) else { return };
    let answers = ChallengeAnswers::default();
    serve_http(pebble.http_port, answers.clone());
    let (client, store) = client(&pebble, Responder::Http01(answers), &["a.test"]);
    let beside = |name: &str| store.certificate().with_file_name(name);
    // As on a full disk: it is told before the authority makes anything.
    fs::create_dir(beside("space")).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains("/space: "), "{refused}");
    assert_eq!(fs::read_dir(pebble.folder.path().join("acme")).unwrap().count(), 1, "no account");
    fs::remove_dir(beside("space")).unwrap();
    // The disk is full only when the certificate comes.
    fs::create_dir(store.certificate()).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains("/certificate.pem: "), "{refused}");
    let kept = fs::read_to_string(beside("pending.json")).unwrap();
    fs::remove_dir(store.certificate()).unwrap();
    run(client.order(None)).unwrap();
    leaf(&store);
    let written = fs::read_to_string(store.certificate()).unwrap();
    let (key, _) = written.split_once("-----BEGIN CERTIFICATE").unwrap();
    assert!(kept.replace("\\n", "\n").contains(key), "it has the key of the first order");
    assert!(!beside("pending.json").exists());
    // One that is of no use is forgotten after a day.
    fs::write(beside("pending.json"), kept.replace("my-order/", "my-order/0")).unwrap();
    let refused = run(client.order(None)).unwrap_err().to_string();
    assert!(refused.contains("404 Not Found"), "{refused}");
    let yesterday = SystemTime::now() - Duration::from_secs(24 * 3600);
    fs::File::options().write(true).open(beside("pending.json")).unwrap().set_modified(yesterday).unwrap();
    run(client.order(None)).unwrap();
    assert!(!fs::read_to_string(store.certificate()).unwrap().contains(key));
}

#[test]
fn a_hook_that_is_not_awaited_leaves_no_process() {
    let test = "a_hook_that_is_not_awaited_leaves_no_process";
    let Some(pebble) = Pebble::start(test, 0) else { return };
    let (hook, id) = (pebble.folder.path().join("hook"), pebble.folder.path().join("id"));
    let script =
        format!("#!/bin/sh\nsleep 1000 &\necho $! >'{0}.new'\nmv '{0}.new' '{0}'\nwait\n", id.display());
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    let (client, _) = client(&pebble, Responder::Dns01(DnsHook::new(&hook)), &["a.test"]);
    let begun = async {
        while !id.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    run(async {
        tokio::select! { _ = client.order(None) => panic!("it waits"), () = begun => {} }
    });
    let process = Path::new("/proc").join(fs::read_to_string(&id).unwrap().trim());
    let state = || fs::read_to_string(process.join("stat")).unwrap_or_default();
    let deadline = SystemTime::now() + Duration::from_secs(10);
    // Whoever adopts it may not have awaited it yet.
    while process.exists() && !state().contains(") Z ") {
        assert!(SystemTime::now() < deadline, "{}", state());
        std::thread::sleep(Duration::from_millis(20));
    }
}
