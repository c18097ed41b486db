//! A VictoriaLogs that journals are uploaded to, by systemd and by `--upload`, as a SOURCE.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::pebble::free_ports;
use crate::common::{TlsdashProcess, connects, outside, run, stderr, tlsdash, until};
use crate::copies::{all_figures, record};
use crate::hosts::SystemdProgram;

/// A running store. It ends when this is dropped.
pub(crate) struct VictoriaLogs {
    child: Child,
    pub(crate) address: String,
}

impl Drop for VictoriaLogs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")), PathBuf::from);
    target.join("go").join("victoria-logs")
}

impl VictoriaLogs {
    /// Starts one with further options; `None`, with a message, if it is not installed (`.ci/go-programs`).
    pub(crate) fn start(test: &str, data: &Path, more: &[String]) -> Option<Self> {
        let program = program();
        if !program.exists() {
            say_not_run(test, "VictoriaLogs is not installed: .ci/go-programs installs it with Go");
            return None;
        }
        let [port] = free_ports();
        Some(Self::start_at(format!("127.0.0.1:{port}"), &program, data, more))
    }

    fn start_at(address: String, program: &Path, data: &Path, more: &[String]) -> Self {
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
        store
    }

    /// Kills it and starts it again with what is on its disk.
    fn kill_and_start(self, data: &Path) -> Self {
        let program = program();
        let address = self.address.clone();
        drop(self);
        Self::start_at(address, &program, data, &[])
    }

    pub(crate) fn source(&self) -> String {
        format!("logs+http://{}", self.address)
    }

    /// What it answers to a request.
    pub(crate) fn ask(&self, path: &str) -> String {
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

#[test]
fn an_upload_lacks_nothing_though_the_store_is_killed() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = "an_upload_lacks_nothing_though_the_store_is_killed";
    let data = folder.path().join("data");
    let Some(mut store) = VictoriaLogs::start(name, &data, &[]) else { return };
    let journal = folder.path().join("own.journal");
    let mut command = tlsdash(folder.path());
    command.args([
        "demo",
        "--headless",
        "--interval",
        "250ms",
        "--load",
        "rate=200,connections=4",
        "--upload",
    ]);
    command.args([&store.source(), "--journal", &format!("file:{}", journal.display())]);
    let demo = TlsdashProcess::start(command);
    let entries = |store: &VictoriaLogs| {
        store.ask("internal/force_flush");
        let counted = store.ask("select/logsql/query?query=*+%7C+count()+n");
        counted.split('"').nth(3).and_then(|n| n.parse().ok()).unwrap_or(0_u64)
    };
    for _ in 0..2 {
        let before = entries(&store);
        until("further records arrive", || entries(&store) > before + 20);
        // What has arrived since the last flush is not on the disk yet.
        store = store.kill_and_start(&data);
    }
    let before = entries(&store);
    until("further records arrive", || entries(&store) > before + 20);
    let (code, _, told) = demo.end_and_tell();
    assert_eq!(code, 0, "{told}");
    store.ask("internal/force_flush");
    let expected = all_figures(state.path(), journal.to_str().unwrap());
    assert_eq!(expected[4]["journal"]["lost"], 0, "{}", expected[4]);
    for (read, expected) in all_figures(state.path(), &store.source()).iter().zip(&expected) {
        assert!(read == expected, "{}\n{}\n{told}", read["quality"], expected["quality"]);
    }
}

#[test]
fn an_upload_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, receiver) = ("logs+http://127.0.0.1:9", "https://127.0.0.1:9?cafile=/nonexistent");
    for (args, why) in [
        (&["--upload", "127.0.0.1:9"][..], "expected http://HOST:PORT"),
        (&["--upload", receiver][..], "authorities in /nonexistent: No such file"),
        (&["--upload", store, "--journal", "system"][..], "it goes with --journal auto or file:PATH.journal"),
        (&["--upload", store, "--journal", "off"][..], "it goes with --journal auto or file:PATH.journal"),
    ] {
        let output = run(folder.path(), &[&["demo", "--headless"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    }
}
