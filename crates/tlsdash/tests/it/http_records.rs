//! What is left of a run in HTTP mode in its journal: for a check, a report, a part of it, and plain `journalctl`.

use crate::common::{journal, journalctl, number, run, stderr};
use serde_json::Value;

#[test]
fn a_recording_of_http_mode_is_checked_reported_cut_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(folder.path()).display().to_string();
    let place = format!("file:{path}");
    let run = |args: &[&str]| {
        let output = run(folder.path(), args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let demo = ["demo", "--mode", "http", "--headless", "--duration", "4s", "--interval", "500ms"];
    run(&[&demo[..], &["--journal", &place, "--load", "rate=200,streams=8"]].concat());

    let summary = |source: &str| -> Value {
        serde_json::from_str(&run(&["watch", source, "--headless", "--format", "json"])).unwrap()
    };
    let whole = summary(&path);
    let http = &whole["proxy"]["http"];
    let requests = |http: &Value| http["requests"]["total"].as_u64().unwrap();
    assert!(requests(http) > 500, "{http}");

    // The last record of each route has its totals, and each interval its own requests.
    let routes = journalctl(&journal(folder.path()), &["TLSDASH_KIND=route"]);
    let last = routes.iter().filter(|entry| entry["TLSDASH_ROUTE_LAST"] == "1");
    assert_eq!(last.map(|entry| number(entry, "TLSDASH_ROUTE_REQUESTS_TOTAL")).sum::<u64>(), requests(http));
    let sampled = journalctl(&journal(folder.path()), &["TLSDASH_KIND=request"]);
    assert!(!sampled.is_empty() && sampled.iter().all(|entry| entry["TLSDASH_REQUEST_METHOD"].is_string()));
    let has_query =
        |entry: &Value| entry["TLSDASH_REQUEST_PATH"].as_str().is_some_and(|path| path.contains('?'));
    assert!(!sampled.iter().any(has_query), "{sampled:?}");

    let holds =
        ["http.requests > 500", "proxy.http.request.p90 < 10s", "http.failed == 0", "status.2xx > 500"];
    run(&[&["check", &path][..], &holds.map(|text| ["--assert", text]).concat()].concat());
    let markdown = run(&["report", &path, "--md", "-"]);
    assert!(markdown.contains("## Routes") && markdown.contains("| /api |"), "{markdown}");
    assert!(markdown.contains("| proxy.handshakes-max | no bound |"), "{markdown}");

    let compacted = folder.path().join("compacted.journal").display().to_string();
    run(&["compact", &path, &compacted]);
    assert_eq!(&summary(&compacted)["proxy"]["http"], http);
    let parts = [summary(&format!("{path}@..2s")), summary(&format!("{path}@2s.."))];
    let of_parts = parts.each_ref().map(|part| &part["proxy"]["http"]);
    assert_eq!(of_parts.iter().map(|http| requests(http)).sum::<u64>(), requests(http));
    assert_eq!(of_parts.map(|http| http["routes"].as_array().unwrap().len()), [2, 2]);
}
