//! Renewals at given moments.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use acme::{AcmeClient, ChallengeAnswers, Renewal, RenewalOutcome, Responder};

use crate::answering::serve_http;
use crate::authority::{Refusal, serve_refusals};
use crate::orders::{account_file, config, open, run};
use crate::pebble::{Pebble, free_ports};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn renewal(directory: &str, ca: &Path, folder: &Path, answers: &ChallengeAnswers) -> Renewal {
    let config = config(directory, ca, &["a.test"]);
    let (store, responder) = (open(&config, folder), Responder::Http01(answers.clone()));
    let client = AcmeClient::new(config, responder, store.clone()).unwrap();
    Renewal::new(client, store, 0.5)
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
    let file = open(&config(&pebble.directory, &pebble.ca(), &["a.test"]), &folder).certificate();
    let first = fs::read(&file).unwrap();
    let later = run(other.advance(other_at.next));
    assert_eq!(later.outcome, RenewalOutcome::Waiting);
    assert_eq!(fs::read(&file).unwrap(), first);
    // Six days of validity: it is due after four, by either's reckoning.
    let wait = later.next.duration_since(now).unwrap();
    assert!(wait > DAY * 3 && wait < DAY * 5, "{wait:?}");
    let renewed = run(other.advance(later.next + DAY / 2));
    assert_eq!(renewed.outcome, RenewalOutcome::Failed { failures: 1 });
    assert_eq!(renewed.failure.as_deref(), Some(DUE));
    assert_ne!(fs::read(&file).unwrap(), first);
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
    let order = |pebble: &Pebble, answers: &ChallengeAnswers| {
        let folder = pebble.folder.path().join("acme");
        let mut renewal = renewal(&pebble.directory, &pebble.ca(), &folder, answers);
        let report = run(renewal.advance(SystemTime::now()));
        assert_eq!(report.outcome, RenewalOutcome::Renewed { remark: None });
        fs::remove_file(open(&config(&pebble.directory, &pebble.ca(), &["a.test"]), &folder).certificate())
            .unwrap();
        account_file(&folder)
    };
    let [former_answers, answers] = [&former, &pebble].map(|pebble| {
        let answers = ChallengeAnswers::default();
        serve_http(pebble.http_port, answers.clone());
        answers
    });
    let foreign = fs::read_to_string(order(&former, &former_answers)).unwrap();
    let account = order(&pebble, &answers);
    // The account of the former one, as if this authority had lost its memory.
    let foreign = foreign.replace(&port(&former), &port(&pebble));
    fs::write(&account, &foreign).unwrap();
    let order_folder =
        open(&config(&pebble.directory, &pebble.ca(), &["a.test"]), &pebble.folder.path().join("acme"));
    let pending = format!("{{\"url\": \"https://{}/my-order/1\", \"key\": \"\"}}", port(&pebble));
    fs::write(order_folder.certificate().with_file_name("pending.json"), pending).unwrap();
    order(&pebble, &answers);
    assert_ne!(fs::read_to_string(&account).unwrap(), foreign);
}

fn port(pebble: &Pebble) -> String {
    pebble.directory.split('/').nth(2).unwrap().to_owned()
}

#[test]
fn a_day_without_the_authority_costs_a_few_attempts_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ca) = serve_refusals(folder.path(), Refusal::RATE_LIMIT);
    let [port] = free_ports();
    let directory = format!("https://127.0.0.1:{port}/dir");
    let mut renewal = renewal(&directory, &ca, &folder.path().join("acme"), &ChallengeAnswers::default());
    let begun = SystemTime::now();
    let (mut now, mut attempts) = (begun, 0);
    while now < begun + DAY {
        let report = run(renewal.advance(now));
        attempts += 1;
        assert_eq!(report.outcome, RenewalOutcome::Failed { failures: attempts });
        let error = report.failure.unwrap();
        assert!(error.contains(&directory) && !report.has_certificate, "{error}");
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
    assert!(report.failure.unwrap().contains("refused"), "it is not forgotten");
    let report = run(restart().advance(report.next));
    assert!(matches!(report.outcome, RenewalOutcome::Failed { failures: 1, .. }), "{report:?}");
}
