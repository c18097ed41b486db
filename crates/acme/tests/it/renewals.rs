//! Renewals at given moments.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use acme::{AcmeClient, AcmeStore, ChallengeAnswers, Renewal, RenewalOutcome, Responder};

use crate::answering::serve_http;
use crate::authority::serve_rate_limit;
use crate::orders::{config, run};
use crate::pebble::{Pebble, free_ports};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn renewal(directory: &str, ca: &Path, folder: &Path, answers: &ChallengeAnswers) -> Renewal {
    let config = config(directory, ca, &["a.test"]);
    let store = AcmeStore::open(folder).unwrap();
    let responder = Responder::Http01(answers.clone());
    let client = AcmeClient::new(config.clone(), responder, store.clone()).unwrap();
    Renewal::new(client, config, store, 0.5)
}

#[test]
fn two_processes_with_one_folder_order_one_certificate() {
    let Some(pebble) = Pebble::start("two_processes_with_one_folder_order_one_certificate", 0) else {
        return;
    };
    let answers = ChallengeAnswers::default();
    serve_http(pebble.http_port, answers.clone());
    let folder = pebble.folder.path().join("acme");
    let [mut one, mut other] = [(); 2].map(|()| renewal(&pebble.directory, &pebble.ca(), &folder, &answers));
    let now = SystemTime::now();
    let (one_at, other_at) = run(async { tokio::join!(one.advance(now), other.advance(now)) });
    assert_eq!(one_at.outcome, RenewalOutcome::Renewed { remark: None });
    assert_eq!(other_at.outcome, RenewalOutcome::Locked);
    let first = fs::read(folder.join("certificate.pem")).unwrap();
    let later = run(other.advance(other_at.next));
    assert_eq!(later.outcome, RenewalOutcome::Waiting);
    assert_eq!(fs::read(folder.join("certificate.pem")).unwrap(), first);
    // Six days of validity: it is due after four, by either's reckoning.
    let wait = later.next.duration_since(now).unwrap();
    assert!(wait > DAY * 3 && wait < DAY * 5, "{wait:?}");
    let renewed = run(other.advance(later.next + DAY / 2));
    assert_eq!(renewed.outcome, RenewalOutcome::Failed { error: DUE.to_owned(), failures: 1 });
    assert_ne!(fs::read(folder.join("certificate.pem")).unwrap(), first);
}

/// Pebble has no simulated time: a certificate that it issues today is old on the day of the renewal.
const DUE: &str = "the authority's certificate is due for renewal already";

#[test]
fn an_account_that_the_authority_has_forgotten_is_made_anew() {
    let test = "an_account_that_the_authority_has_forgotten_is_made_anew";
    let Some([former, pebble]) = Pebble::start(test, 0).zip(Pebble::start(test, 0)).map(<[Pebble; 2]>::from)
    else {
        return;
    };
    let folder = pebble.folder.path().join("acme");
    for pebble in [&former, &pebble] {
        let answers = ChallengeAnswers::default();
        serve_http(pebble.http_port, answers.clone());
        let _ = fs::remove_file(folder.join("certificate.pem"));
        // The account of the former one, as if this authority had lost its memory.
        let account = folder.join("account.json");
        if let Ok(text) = fs::read_to_string(&account) {
            fs::write(&account, text.replace(&port(&former), &port(pebble))).unwrap();
        }
        let mut renewal = renewal(&pebble.directory, &pebble.ca(), &folder, &answers);
        let report = run(renewal.advance(SystemTime::now()));
        assert_eq!(report.outcome, RenewalOutcome::Renewed { remark: None });
    }
}

fn port(pebble: &Pebble) -> String {
    pebble.directory.split('/').nth(2).unwrap().to_owned()
}

#[test]
fn a_day_without_the_authority_costs_a_few_attempts_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ca) = serve_rate_limit(folder.path(), 0);
    let [port] = free_ports();
    let directory = format!("https://127.0.0.1:{port}/dir");
    let mut renewal = renewal(&directory, &ca, &folder.path().join("acme"), &ChallengeAnswers::default());
    let begun = SystemTime::now();
    let (mut now, mut attempts) = (begun, 0);
    while now < begun + DAY {
        let report = run(renewal.advance(now));
        attempts += 1;
        let RenewalOutcome::Failed { error, failures } = report.outcome else { panic!("{report:?}") };
        assert!(error.contains(&directory) && failures == attempts, "{error}");
        // Nothing is tried before it is time.
        assert_eq!(run(renewal.advance(now)).outcome, RenewalOutcome::Waiting);
        now = report.next;
    }
    assert!((8..=13).contains(&attempts), "{attempts}");
    // A service that is restarted again and again asks no more often.
    let restart =
        || self::renewal(&directory, &ca, &folder.path().join("acme"), &ChallengeAnswers::default());
    let started = SystemTime::now();
    let report = run(restart().advance(started));
    assert_eq!(report.outcome, RenewalOutcome::Waiting);
    let report = run(restart().advance(report.next));
    assert!(matches!(report.outcome, RenewalOutcome::Failed { failures: 1, .. }), "{report:?}");
}
