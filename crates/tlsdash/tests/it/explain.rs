//! What `tlsdash explain` says of a recorded run.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{TlsdashProcess, journal, run, stderr, tlsdash, until};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

/// A run of three seconds, recorded.
fn recorded(folder: &Path, load: &str) -> String {
    recorded_with(folder, load, &[])
}

fn recorded_with(folder: &Path, load: &str, options: &[&str]) -> String {
    let at = journal(folder).display().to_string();
    let place = format!("file:{at}");
    let args = ["demo", "--headless", "--duration", "3s", "--journal", &place, "--load", load];
    let output = run(folder, &[&args, options].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    at
}

#[test]
fn a_recording_is_explained_as_text_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let source = recorded(folder.path(), "rate=100");
    let output = run(folder.path(), &["explain", &source]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for heading in ["\nFindings\n", "\nWhy handshakes were full\n", "\nWhat would resume more\n"] {
        assert!(text.contains(heading), "{text}");
    }
    let output = run(folder.path(), &["explain", &source, "--format", "json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let explained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(explained["schema"], 1);
    assert!(explained["findings"].is_array() && explained["advice"].is_array());
    assert!(explained["full_by_reason"].is_object());
}

#[test]
fn full_handshakes_that_the_load_asked_for_are_said_to_be_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let source = recorded(folder.path(), "rate=100,keep-alive=off,resume=0%");
    let output = run(folder.path(), &["explain", &source, "--format", "json"]);
    let explained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = explained["full_by_reason"].as_object().unwrap();
    let full: u64 = reasons.values().map(|n| n.as_u64().unwrap()).sum();
    assert!(full > 0 && explained["full_by_load"] == full, "{explained}");
    let text = run(folder.path(), &["explain", &source]).stdout;
    let said = format!("  {full} of these were asked for by the run's own load\n");
    assert!(String::from_utf8_lossy(&text).contains(&said));
}

#[test]
fn advice_names_the_experiment_that_checks_it_with_the_recorded_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        recorded_with(folder.path(), "rate=100,keep-alive=off,resume=100%", &["--resumption", "off"]);
    let text = |args: &[&str]| {
        let output = run(folder.path(), &[&["explain"], args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let command = "\n    check: tlsdash … --ab proxy.resumption=off..tickets,block=10s";
    let explained = text(&[&source]);
    assert!(explained.contains(&format!("{command} --load 'like={source}'\n")), "{explained}");
    // `--load` takes no time range apart from the source.
    let explained = text(&[&source, "--since", "-1h"]);
    assert!(explained.contains(&format!("{command}\n")), "{explained}");
    // The clients of such a load offer the sessions that the recorded proxy refused.
    let load = format!("like={source}");
    let args = ["demo", "--headless", "--duration", "4s", "--format", "json", "--load", &load];
    let output = run(folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [full, resumed] =
        ["full", "resumed"].map(|kind| summary["proxy"]["handshakes"][kind].as_u64().unwrap());
    assert!(resumed > 4 * full, "{full} full, {resumed} resumed");
    let load = format!("like={source},rate=5");
    let output = run(folder.path(), &["demo", "--headless", "--load", &load]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_running_service_is_explained_while_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let at = journal(folder.path()).display().to_string();
    let mut command = tlsdash(folder.path());
    command.args(["demo", "--headless", "--load", "rate=100", "--journal", &format!("file:{at}")]);
    let service = TlsdashProcess::start(command);
    let full = || {
        let output = run(folder.path(), &["explain", &at, "--format", "json"]);
        let explained = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()?;
        explained["full_by_reason"]["first_visit"].as_u64()
    };
    until("first visits are counted", || full().is_some_and(|n| n > 0));
    let (code, _) = service.end();
    assert_eq!(code, 0);
}

/// Writes a certificate that is years old and ends in five days.
pub(crate) fn write_old_certificate(certificate: &Path, key: &Path) {
    let mut params = CertificateParams::new(vec!["www.example.org".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    let ends_at = SystemTime::now() + Duration::from_secs(5 * 24 * 3600);
    params.not_after = ends_at.into();
    let pair = KeyPair::generate().unwrap();
    std::fs::write(certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(key, pair.serialize_pem()).unwrap();
}

#[test]
fn findings_as_severe_as_asked_for_end_with_99() {
    let folder = tempfile::tempdir().unwrap();
    let [at, key, certificate] = ["a.journal", "key.pem", "cert.pem"].map(|name| folder.path().join(name));
    write_old_certificate(&certificate, &key);
    let place = format!("file:{}", at.display());
    let args = ["--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--headless", "--duration", "2s"];
    let files =
        ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap(), "--journal", &place];
    let output = run(folder.path(), &[&args[..], &files[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let at = at.to_str().unwrap();
    let output = run(folder.path(), &["explain", at, "--fail-on", "warning"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{said}");
    assert!(said.contains("certificate-expires: A certificate expires in "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("critical A certificate expires in") && text.contains("- www.example.org until"),
        "{text}"
    );
}

#[test]
fn an_unknown_severity_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["explain", "/nowhere", "--fail-on", "loud"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
