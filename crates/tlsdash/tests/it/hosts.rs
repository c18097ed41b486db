//! Journals of several hosts, sent by `systemd-journal-upload` and received by `systemd-journal-remote`.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::host::{HostRun, UNIT, create};
use crate::common::{TlsdashProcess, connects, outside, run, stderr, tlsdash, until};
use crate::terminal::TestTerminal;
use serde_json::Value;

/// A process that is killed with the test.
pub(crate) struct SystemdProgram(pub(crate) Child);

impl SystemdProgram {
    /// Starts a program of the package `systemd-journal-remote`.
    pub(crate) fn start(name: &str, args: &[&str]) -> Self {
        let mut command = Command::new(format!("/lib/systemd/{name}"));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        Self(child.unwrap_or_else(|_| {
            panic!("this test needs {name}: install Debian's package systemd-journal-remote (.ci/setup does)")
        }))
    }
}

impl Drop for SystemdProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program on a host of this name.
pub(crate) fn tlsdash_on(name: &str) -> Command {
    let mut command = outside("unshare", "util-linux");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--uts", "sh", "-c", "hostname \"$0\" && exec \"$@\"", name]);
    command.arg(env!("CARGO_BIN_EXE_tlsdash"));
    command
}

/// The demo on a host of this name, which writes its own journal.
struct DemoHost {
    demo: TlsdashProcess,
    journal: PathBuf,
}

impl DemoHost {
    fn start(folder: &Path, name: &str) -> Self {
        let journal = folder.join(name).join("own.journal");
        fs::create_dir(folder.join(name)).unwrap();
        let mut command = tlsdash_on(name);
        command.args(["demo", "--headless", "--interval", "500ms"]);
        command.args(["--load", "rate=50,connections=2", "--journal"]);
        command.arg(format!("file:{}", journal.display()));
        let mut demo = TlsdashProcess::start(command);
        demo.line_with("listening on ");
        until("its journal", || journal.exists());
        Self { demo, journal }
    }

    fn upload(&self, url: &str) -> SystemdProgram {
        let file = format!("--file={}", self.journal.display());
        SystemdProgram::start("systemd-journal-upload", &[&format!("--url={url}"), &file, "--follow=yes"])
    }
}

/// A receiver of uploads into a folder, and its address.
fn receiver(folder: &Path) -> (SystemdProgram, String) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let args = [&*format!("--listen-http={address}"), &format!("--output={}", folder.display())];
    let service = SystemdProgram::start("systemd-journal-remote", &args);
    until("the receiver listens", || connects(address));
    (service, format!("http://{address}"))
}

fn totals(folder: &Path, source: &Path, more: &[&str]) -> [u64; 3] {
    let source = source.display().to_string();
    let output = run(folder, &[&["report", "--json", "-", &source], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let proxy = &report["summary"]["proxy"];
    let exchanges = &proxy["latency_us"]["exchange"]["n"];
    [&proxy["connections"]["accepted"], &proxy["handshakes"]["full"], exchanges]
        .map(|n| n.as_u64().unwrap_or_else(|| panic!("{proxy:#}")))
}

/// Checks that a condition on the connections holds, and its opposite does not.
fn check(folder: &Path, source: &Path, more: &[&str], accepted: u64) {
    for (operator, code) in [("==", 0), ("<", 99)] {
        let condition = format!("connections.accepted {operator} {accepted}");
        let args = [&["check", source.to_str().unwrap(), "--assert", &condition], more].concat();
        let output = run(folder, &args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
    }
}

/// The full handshakes that `explain` counts, by reason.
fn full_by_reason(folder: &Path, source: &Path, more: &[&str]) -> BTreeMap<String, u64> {
    let output = run(folder, &[&["explain", source.to_str().unwrap(), "--format", "json"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = explained["full_by_reason"].as_object().unwrap();
    reasons.iter().map(|(reason, n)| (reason.clone(), n.as_u64().unwrap())).collect()
}

/// What a hostile host may upload: bytes that are no journal, and runs in the name of another host, from the future.
fn upload_hostile(folder: &Path) {
    fs::write(folder.join("remote-garbage.journal"), vec![0x5a; 100_000]).unwrap();
    let mut writer = create(&folder.join("remote-hostile.journal"));
    for run in 1..=40 {
        let account = UNIT.at("edge-b", "00000000000000000000000000000bad");
        HostRun { run, late_s: 1_000_000_000 + run as u64, accepted: 1_000_000 }.begin(&mut writer, account);
    }
}

#[test]
fn uploaded_journals_of_two_hosts_become_one_table_and_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let (state, remote) = (folder.path().join("state"), folder.path().join("remote"));
    for path in [&state, &remote] {
        fs::create_dir(path).unwrap();
    }
    let (_receiver, url) = receiver(&remote);
    let edges = ["edge-a", "edge-b"].map(|name| DemoHost::start(folder.path(), name));
    let [upload_a, _upload_b] = [0, 1].map(|at| edges[at].upload(&url));
    until("both hosts arrive", || {
        let output = run(&state, &["runs", &remote.display().to_string()]);
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        listed.contains("edge-a") && listed.contains("edge-b")
    });

    let mut watch = TestTerminal::start(&state, &["watch", &remote.display().to_string()]);
    watch.shows("sum of 2");
    watch.press("7");
    watch.shows("hosts 2/2 live");

    drop(upload_a);
    watch.shows("edge-a: no record arrives any more");
    watch.shows("sum of 1");

    // Hosts behind one address share a file. Beside it lies an archive of which only the beginning is left.
    let cut = remote.join("remote-127.0.0.1@cut.journal");
    let mut archive = fs::read(remote.join("remote-127.0.0.1.journal")).unwrap();
    archive.truncate(50_000);
    // The file's own id.
    archive[24..40].fill(7);
    fs::write(&cut, archive).unwrap();
    upload_hostile(&remote);
    let _upload_again = edges[0].upload(&url);
    watch.shows("edge-a: records arrive as usual again");
    // Whoever claims to be another host does not take its line.
    watch.press("/state=live\r");
    watch.shows("filter: state");
    for host in ["edge-a  ", "edge-b  "] {
        watch.shows(host);
    }
    watch.press("q");
    watch.ended();
    let journals = edges.map(|edge| {
        assert_eq!(edge.demo.end().0, 0);
        edge.journal
    });
    compare_hosts_with_their_own_journals(folder.path(), &state, &journals);
}

/// Sends the journals again, and compares what commands say of each host and of both with what the journals hold.
fn compare_hosts_with_their_own_journals(folder: &Path, state: &Path, journals: &[PathBuf; 2]) {
    let each = journals.each_ref().map(|journal| totals(state, journal, &[]));
    let sum = [0, 1, 2].map(|at| each[0][at] + each[1][at]);
    // The first receiver's files are cut, and hold what is hostile. Another one receives everything again.
    let again = folder.join("again");
    fs::create_dir(&again).unwrap();
    let (_receiver, url) = receiver(&again);
    let file = |edge: &str| format!("--file={}", folder.join(edge).join("own.journal").display());
    let _uploads = ["edge-a", "edge-b"].map(|edge| {
        SystemdProgram::start(
            "systemd-journal-upload",
            &[&format!("--url={url}"), &file(edge), "--follow=yes"],
        )
    });
    until("all records arrive", || {
        let output = run(state, &["runs", &again.display().to_string()]);
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        ["edge-a", "edge-b"].iter().all(|edge| listed.contains(edge)) && !listed.contains("+ its last record")
    });
    assert_eq!(totals(state, &again, &[]), sum);
    for (edge, own) in ["edge-a", "edge-b"].into_iter().zip(each) {
        assert_eq!(totals(state, &again, &["--host", edge]), own, "{edge}");
        check(state, &again, &["--host", edge], own[0]);
    }
    check(state, &again, &[], sum[0]);
    let explained = ["edge-a", "edge-b"].map(|edge| {
        let counted = full_by_reason(state, &again, &["--host", edge]);
        assert_eq!(counted, full_by_reason(state, &folder.join(edge).join("own.journal"), &[]), "{edge}");
        counted
    });
    let mut sum = explained[0].clone();
    for (reason, n) in &explained[1] {
        *sum.entry(reason.clone()).or_default() += n;
    }
    assert!(sum.values().sum::<u64>() > 0);
    assert_eq!(full_by_reason(state, &again, &[]), sum);
    for (command, more) in
        [("check", &["--assert", "lost == 0"][..]), ("explain", &[]), ("report", &["--md", "-"])]
    {
        let absent = run(state, &[&[command, again.to_str().unwrap(), "--host", "edge-c"], more].concat());
        assert_eq!(absent.status.code(), Some(1));
        let said = stderr(&absent);
        assert!(said.contains("holds no run of it, but of edge-a, edge-b"), "{command}: {said}");
    }
}

#[test]
fn a_run_is_uploaded_to_systemd_journal_remote() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let remote = folder.path().join("remote");
    fs::create_dir(&remote).unwrap();
    let (_receiver, url) = receiver(&remote);
    let journal = folder.path().join("own.journal");
    let mut command = tlsdash(folder.path());
    command.args(["demo", "--headless", "--duration", "2s", "--upload", &url, "--journal"]);
    command.arg(format!("file:{}", journal.display()));
    assert_eq!(TlsdashProcess::start(command).wait().0, 0);
    let own = totals(state.path(), &journal, &[]);
    until("its records arrive", || {
        let output = run(state.path(), &["runs", &remote.display().to_string()]);
        let listed = String::from_utf8_lossy(&output.stdout);
        output.status.success() && !listed.contains("+ its last record")
    });
    assert_eq!(totals(state.path(), &remote, &[]), own);
}
