//! The demo's figures, against everything that can contradict them.

use std::path::Path;
use std::time::Duration;

use crate::common::{
    TlsdashProcess, journal, journalctl, last_of_each_client, number, run, stderr, tlsdash, until,
};
use journal::{Start, Tail};
use model::runs::Model;
use records::kinds::Record;
use records::metrics::{ClientCounter, LoadCounter, ProxyCounter};
use rustix::process::Signal;
use serde_json::Value;

fn demo(folder: &Path, extra: &[&str]) -> Value {
    let at = format!("file:{}", journal(folder).display());
    let mut args = vec!["demo", "--headless", "--duration", "4s", "--format", "json", "--journal", &at];
    args.extend(extra);
    let output = run(folder, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("the summary is JSON")
}

fn records(file: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    let mut tail = Tail::open(file, Start::Oldest).unwrap();
    loop {
        let progress = tail.poll(|entry| records.extend(records::codec::decode(entry).unwrap())).unwrap();
        if !progress.more {
            return records;
        }
    }
}

#[test]
fn load_and_proxy_and_clients_and_journal_agree_to_the_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    let summary = demo(folder.path(), &[]);
    let (proxy, load) = (&summary["proxy"], &summary["load"]);
    assert_eq!(summary["schema"], 1);
    for kind in ["full", "resumed"] {
        assert!(proxy["handshakes"][kind].as_u64().unwrap() > 0, "{kind}: {summary}");
        assert_eq!(proxy["handshakes"][kind], load["handshakes"][kind], "{kind}");
    }
    assert_eq!(proxy["handshakes"]["failed"], 0);
    assert_eq!(proxy["bytes"], load["bytes"]);
    assert!(proxy["bytes"]["out"].as_u64().unwrap() > 1_000_000);
    let requests = &load["requests"];
    assert_eq!(requests["scheduled"], requests["ok"], "{requests}");
    assert!(requests["ok"].as_u64().unwrap() > 3_000, "{requests}");
    let clients = summary["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 16);
    for (column, total) in [
        ("bytes_in", &proxy["bytes"]["in"]),
        ("bytes_out", &proxy["bytes"]["out"]),
        ("connections", &proxy["connections"]["accepted"]),
        ("handshakes_full", &proxy["handshakes"]["full"]),
        ("handshakes_resumed", &proxy["handshakes"]["resumed"]),
    ] {
        let sum: u64 = clients.iter().map(|client| client[column].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), total.as_u64(), "{column}");
    }
    let read = &summary["journal"];
    assert_eq!((&read["made"], &read["lost"]), (&read["read"], &Value::from(0)));
    assert_eq!(read["made"].as_u64(), Some(journalctl(&journal(folder.path()), &[]).len() as u64));
    for (class, n) in [
        ("handshake_full", &proxy["handshakes"]["full"]),
        ("handshake_resumed", &proxy["handshakes"]["resumed"]),
        ("lifetime", &proxy["connections"]["accepted"]),
    ] {
        assert_eq!(&proxy["latency_us"][class]["n"], n, "{class}");
    }
    for class in ["response", "service", "lag"] {
        assert_eq!(load["latency_us"][class]["n"], requests["ok"], "{class}");
    }
}

#[test]
fn a_load_that_hardly_resumes_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for (keep_alive, is_noted) in [("on", true), ("10", false)] {
        let plan = format!("rate=500,connections=2,resume=80%,duration=2,keep-alive={keep_alive}");
        let load = &demo(folder.path(), &["--load", &plan])["load"];
        let handshakes = load["connections"].as_u64().unwrap();
        let note = format!("few handshakes: {handshakes} handshakes for 1,000 requests");
        assert_eq!(load["notes"].to_string().contains(&note), is_noted, "{load}");
    }
}

#[test]
fn journalctl_gives_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let summary = demo(folder.path(), &["--load", "rate=300,connections=8,source-addresses=5"]);
    let last = last_of_each_client(&journal(folder.path()));
    assert_eq!(last.len(), 5);
    let sum = |field: &str| last.iter().map(|entry| number(entry, field)).sum::<u64>();
    assert_eq!(Some(sum("TLSDASH_CLIENT_BYTES_IN_TOTAL")), summary["proxy"]["bytes"]["in"].as_u64());
    assert_eq!(Some(sum("TLSDASH_CLIENT_BYTES_OUT_TOTAL")), summary["load"]["bytes"]["out"].as_u64());
    assert_eq!(
        Some(sum("TLSDASH_CLIENT_HANDSHAKES_RESUMED_TOTAL")),
        summary["load"]["handshakes"]["resumed"].as_u64()
    );
    let stop = journalctl(&journal(folder.path()), &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]);
    assert_eq!(stop.len(), 1);
    assert_eq!(
        number(&stop[0], "TLSDASH_LOAD_OK_TOTAL"),
        summary["load"]["requests"]["ok"].as_u64().unwrap()
    );
}

#[test]
fn records_dropped_on_purpose_are_reported_and_cost_no_total() {
    let folder = tempfile::tempdir().unwrap();
    demo(folder.path(), &["--interval", "200ms"]);
    let all = records(&journal(folder.path()));
    let whole = folded(&all, |_| false);
    let whole = whole.current().unwrap();
    assert_eq!(whole.reading().lost(), 0);
    // Every third record is lost, but for the first one and the last of each series: sixteen clients and the run.
    let keep_from = all.len() - 17;
    let has_gap = [0, 1, 2].map(|first| {
        let lost = |i: usize| i > 0 && i % 3 == first && i < keep_from;
        let holed = folded(&all, lost);
        let holed = holed.current().unwrap();
        assert_eq!(holed.reading().lost(), (0..all.len()).filter(|&i| lost(i)).count() as u64);
        assert!(holed.reading().gaps_total() > 0);
        let (a, b) = (whole.proxy().unwrap(), holed.proxy().unwrap());
        assert_eq!(a.totals(), b.totals());
        assert_eq!(
            whole.load().unwrap().totals()[LoadCounter::Ok],
            holed.load().unwrap().totals()[LoadCounter::Ok]
        );
        let clients: u64 =
            holed.clients().iter().map(|client| client.totals()[ClientCounter::BytesOut]).sum();
        assert_eq!(clients, a.totals()[ProxyCounter::BytesOut]);
        b.intervals().any(|interval| interval.after_loss)
    });
    assert!(has_gap.contains(&true), "a loss of the proxy's records is a gap");
}

#[test]
fn seconds_in_which_the_program_was_stopped_are_a_gap() {
    const STOPPED: Duration = Duration::from_secs(3);
    let folder = tempfile::tempdir().unwrap();
    let file = journal(folder.path());
    let mut command = tlsdash(folder.path());
    let at = format!("file:{}", file.display());
    command.args(["demo", "--headless", "--format", "json", "--interval", "500ms", "--journal", &at]);
    let running = TlsdashProcess::start(command);
    let intervals = || journalctl(&file, &["TLSDASH_KIND=proxy"]).len();
    until("it serves", || intervals() >= 3);
    running.signal(Signal::STOP);
    // What is tested is the time itself.
    std::thread::sleep(STOPPED);
    let before = intervals();
    running.signal(Signal::CONT);
    until("it serves again", || intervals() >= before + 3);
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert!(summary["journal"]["gaps"].as_u64().unwrap() > 0, "{summary}");
    let model = folded(&records(&file), |_| false);
    let run = model.current().unwrap();
    let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
    let longest = proxy.intervals().max_by_key(|interval| interval.length_us()).unwrap();
    assert!(longest.after_loss && u128::from(longest.length_us()) >= STOPPED.as_micros(), "{longest:?}");
    let longest = load.intervals().max_by_key(|interval| interval.length_us()).unwrap();
    assert!(longest.after_loss, "{longest:?}");
    assert!(run.reading().gaps_total() > 0 && run.reading().lost() == 0, "{:?}", run.reading());
    let counted: u64 = proxy.intervals().map(|it| it.counters[ProxyCounter::Accepted]).sum();
    assert_eq!(counted, proxy.totals()[ProxyCounter::Accepted], "and nothing is missing in the counters");
}

fn folded(records: &[Record], lost: impl Fn(usize) -> bool) -> Model {
    let mut model = Model::default();
    for (i, record) in records.iter().enumerate() {
        if !lost(i) {
            model.apply(record.clone(), None);
        }
    }
    model
}

#[test]
fn without_a_journal_the_summary_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--headless", "--duration", "2s", "--format", "json", "--journal", "off"];
    let output = run(folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["journal"].is_null());
    assert_eq!(summary["proxy"]["bytes"], summary["load"]["bytes"]);
    assert!(summary["load"]["requests"]["ok"].as_u64().unwrap() > 1_000);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn the_text_summary_is_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["demo", "--headless", "--duration", "2s"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["full handshake", "send lag", "p99.9", "resumed (", "0 lost", "and 6 more", "CPU seconds"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains('\u{1b}'));
}
