//! A VictoriaLogs that journals are uploaded to, as a SOURCE.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::pebble::free_ports;
use crate::common::{connects, outside, run, stderr, until};
use crate::copies::{all_figures, record};
use crate::hosts::SystemdProgram;

/// A running store. It ends when this is dropped.
struct VictoriaLogs {
    child: Child,
    address: String,
}

impl Drop for VictoriaLogs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl VictoriaLogs {
    /// Starts one with further options; `None`, with a message, if it is not installed (`.ci/victoria-logs`).
    fn start(test: &str, data: &Path, more: &[String]) -> Option<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")),
            PathBuf::from,
        );
        let program = target.join("victoria-logs").join("victoria-logs");
        if !program.exists() {
            say_not_run(test, "VictoriaLogs is not installed: .ci/victoria-logs installs it with Go");
            return None;
        }
        let [port] = free_ports();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(program)
            .arg(format!("-httpListenAddr={address}"))
            .arg(format!("-storageDataPath={}", data.display()))
            .arg("-retentionPeriod=10y")
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let store = Self { child, address };
        let socket: SocketAddr = store.address.parse().unwrap();
        until("the store listens", || connects(socket));
        Some(store)
    }

    fn source(&self) -> String {
        format!("logs+http://{}", self.address)
    }

    /// What it answers to a request.
    fn ask(&self, path: &str) -> String {
        let url = format!("http://{}/{path}", self.address);
        let output = outside("curl", "curl").args(["-s", &url]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Sends it a journal, until it has so many entries.
    fn upload(&self, journal: &Path, entries: usize) {
        let url = format!("--url=http://{}/insert/journald", self.address);
        let file = format!("--file={}", journal.display());
        let _upload = SystemdProgram::start("systemd-journal-upload", &[&url, &file]);
        until("all entries arrive", || {
            self.ask("internal/force_flush");
            self.ask("select/logsql/query?query=*+%7C+count()+n").contains(&format!("\"{entries}\""))
        });
    }
}

/// A recording, the number of its entries, and a state directory without any.
fn recording(folder: &Path) -> (PathBuf, usize, PathBuf) {
    let state = folder.join("state");
    fs::create_dir(&state).unwrap();
    let (journal, exported) = record(folder);
    let entries = exported.windows(2).filter(|pair| pair == b"\n\n").count();
    (journal, entries, state)
}

#[test]
fn a_store_says_what_the_journal_says_however_often_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a_store_says_what_the_journal_says_however_often_it_was_sent";
    let Some(store) = VictoriaLogs::start(name, &folder.path().join("data"), &[]) else { return };
    let (journal, entries, state) = recording(folder.path());
    let expected = all_figures(&state, journal.to_str().unwrap());
    assert_eq!(expected[4]["journal"]["lost"], 0, "{}", expected[4]);
    for times in 1..=2 {
        store.upload(&journal, times * entries);
        assert_eq!(all_figures(&state, &store.source()), expected, "sent {times} times");
    }
    // A filter that leaves out everything, and one that is no filter.
    for (query, why) in
        [("a:b", "holds no records of a run of tlsdash"), ("_time:xyz", "it answers 400 Bad Request: ")]
    {
        let output = run(&state, &["explain", &format!("{}?query={query}", store.source())]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    let copy = folder.path().join("copy.journal");
    let output = run(&state, &["compact", &store.source(), copy.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_store_that_lacks_a_node_gives_no_figures() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a_store_that_lacks_a_node_gives_no_figures";
    let start = |part: &str, more: &[String]| VictoriaLogs::start(name, &folder.path().join(part), more);
    let Some(nodes) = start("a", &[]).zip(start("b", &[])) else { return };
    let listed = format!("-storageNode={},{}", nodes.0.address, nodes.1.address);
    // By itself it would answer without the node that is missing.
    let partial = "-search.allowPartialResponse".to_owned();
    let Some(head) = start("head", &[listed, partial]) else { return };
    let (journal, entries, state) = recording(folder.path());
    let expected = all_figures(&state, journal.to_str().unwrap());
    let url = format!("--url=http://{}/insert/journald", head.address);
    let _upload =
        SystemdProgram::start("systemd-journal-upload", &[&url, &format!("--file={}", journal.display())]);
    until("all entries arrive", || {
        for node in [&nodes.0, &nodes.1] {
            node.ask("internal/force_flush");
        }
        head.ask("select/logsql/query?query=*+%7C+count()+n").contains(&format!("\"{entries}\""))
    });
    assert_eq!(all_figures(&state, &head.source()), expected);
    drop(nodes.1);
    for command in [&["explain"][..], &["report", "--json", "-"], &["runs"], &["watch", "--headless"]] {
        let output = run(&state, &[command, &[&*head.source()]].concat());
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]), "{}", stderr(&output));
        let refusal = format!("cannot read {}: it answers 502", head.source());
        assert!(stderr(&output).contains(&refusal), "{}", stderr(&output));
    }
}
