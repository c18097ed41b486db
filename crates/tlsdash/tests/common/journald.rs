//! A journald of a test's own, in mounts of its own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::{outside, send, tlsdash, until};

/// Binds the folders that journald uses to those of the test, and becomes journald.
const START: &str = "mount --bind \"$0/run-systemd\" /run/systemd && mount --bind \"$0/run-log\" /run/log \
    && mount --bind \"$0/var-log-journal\" /var/log/journal && mount --bind \"$0/etc\" /etc/systemd \
    && exec /lib/systemd/systemd-journald $1";

/// A journald, and the mounts in which it is the system's, or that of the namespace `test`.
pub(crate) struct TestJournald {
    pub(crate) root: tempfile::TempDir,
    namespace: &'static str,
    process: Child,
    /// A namespace's journald that has no such connection ends by itself.
    stdout: UnixStream,
}

impl TestJournald {
    pub(crate) fn system(settings: &str) -> Self {
        Self::start("", settings)
    }

    pub(crate) fn start(namespace: &'static str, settings: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["run-systemd", "run-log", "var-log-journal", "etc"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let config = format!(
            "[Journal]\nStorage=volatile\nReadKMsg=no\nRuntimeMaxUse=64M\nRuntimeKeepFree=1\n{settings}\n"
        );
        for name in ["journald.conf", "journald@test.conf"] {
            fs::write(root.path().join("etc").join(name), &config).unwrap();
        }
        let (process, stdout) = run(&root, namespace);
        Self { root, namespace, process, stdout }
    }

    /// A program that is run where this journald is the one there is.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = outside("nsenter", "util-linux");
        command.arg("--target").arg(self.process.id().to_string()).arg("--mount");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(program);
        command
    }

    /// tlsdash, where this journald is the one there is, with a state directory of its own.
    pub(crate) fn tlsdash(&self, args: &[&str]) -> Command {
        let plain = tlsdash(&self.state());
        let mut command = self.command(plain.get_program().to_str().unwrap());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).args(args);
        command
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// What journalctl finds.
    pub(crate) fn entries(&self, matches: &[&str]) -> Vec<Value> {
        let mut journalctl = self.command("journalctl");
        if !self.namespace.is_empty() {
            journalctl.arg(format!("--namespace={}", self.namespace));
        }
        let output = journalctl.args(["-o", "json", "--all", "--no-pager"]).args(matches).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(signal, self.process.id());
    }

    /// Kills it; what it had not stored yet is lost.
    pub(crate) fn kill_and_start(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        (self.process, self.stdout) = run(&self.root, self.namespace);
    }
}

impl Drop for TestJournald {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(root: &tempfile::TempDir, namespace: &str) -> (Child, UnixStream) {
    let sockets = match namespace {
        "" => "run-systemd/journal".to_owned(),
        name => format!("run-systemd/journal.{name}"),
    };
    let sockets = root.path().join(sockets);
    let _ = fs::remove_dir_all(&sockets);
    let mut unshare = outside("unshare", "util-linux");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let said = root.path().join("said");
    let mut process = unshare
        .args(["--mount", "--propagation", "private", "sh", "-c", START])
        .arg(root.path())
        .arg(namespace)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let mut connections = None;
    until("a private journald", || {
        assert!(
            process.try_wait().unwrap().is_none(),
            "no private journald can be started: this test needs the Debian package systemd, and root or user \
             namespaces that may mount (and the folders /run/systemd, /run/log, /var/log/journal, /etc/systemd)\n{}",
            fs::read_to_string(&said).unwrap()
        );
        let connect = |name| UnixStream::connect(sockets.join(name)).ok();
        connections = connections.take().or_else(|| connect("stdout").zip(connect("io.systemd.journal")));
        connections.is_some()
    });
    let (stdout, mut control) = connections.unwrap();
    // It listens before it has opened its journal, and answers this only after that.
    control.write_all(b"{\"method\":\"io.systemd.Journal.Synchronize\"}\0").unwrap();
    let mut answer = Vec::new();
    BufReader::new(control).read_until(0, &mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "{\"parameters\":{}}\0");
    (process, stdout)
}
