//! `tlsdash` without arguments: what one can do here.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{run, stderr, tlsdash, until};

/// What it prints, with programs from `path` only.
fn first_screen(folder: &Path, path: &Path) -> String {
    let output = tlsdash(folder).env("PATH", path).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let text = String::from_utf8(output.stdout).unwrap();
    let columns = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(columns <= 80 && text.lines().count() <= 24, "{text}");
    text
}

/// A process of this name, which ends with the test.
struct NamedProcess(Child);

impl NamedProcess {
    fn start(folder: &Path, name: &str) -> Self {
        let program = folder.join(name);
        std::fs::copy("/bin/sleep", &program).unwrap();
        let child = Command::new(&program).arg("600").stdin(Stdio::null()).spawn().unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        until("it has its name", || std::fs::read_to_string(&comm).unwrap().trim_end() == name);
        Self(child)
    }
}

impl Drop for NamedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn with_nothing_here_the_demo_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let text = first_screen(folder.path(), folder.path());
    for part in ["    tlsdash demo ", "    tlsdash selftest ", "    tlsdash --help "] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "it writes nothing");
}

#[test]
fn a_running_haproxy_and_recorded_runs_are_offered_with_true_commands() {
    let folder = tempfile::tempdir().unwrap();
    let _haproxy = NamedProcess::start(folder.path(), "haproxy");
    let journal = format!("file:{}", folder.path().join("tlsdash.journal").display());
    let output = run(folder.path(), &["demo", "--headless", "--duration", "1s", "--journal", &journal]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = first_screen(folder.path(), folder.path());
    let observe = "    tlsdash observe haproxy --syslog udp:127.0.0.1:5514";
    for part in
        ["\nhaproxy runs; ", observe, "\nRecorded runs, file:", "    tlsdash runs ", "    tlsdash watch "]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let runs = run(folder.path(), &["runs"]);
    assert_eq!(String::from_utf8_lossy(&runs.stdout).lines().count(), 2, "{}", stderr(&runs));
}

#[test]
fn a_service_without_options_is_refused_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let output = tlsdash(folder.path()).env("NOTIFY_SOCKET", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--upstream and --route are missing"), "{}", stderr(&output));
}
