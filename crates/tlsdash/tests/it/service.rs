//! The program as a service: sockets handed over, notifications, and the user that it becomes.

use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::{TlsdashProcess, outside, run, stderr, tlsdash, told, until, upstream};
use rustix::process::Signal;

fn curl(url: &str) -> String {
    let output = outside("curl", "curl")
        .args(["--silent", "--show-error", "--insecure", "--max-time", "20", url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sockets_that_are_handed_over_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let app = upstream(folder.path(), b"handed over");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap();
    // As a service manager does: the socket is descriptor 3, and the process is told so.
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@""#])
        .arg(env!("CARGO_BIN_EXE_tlsdash"))
        .args(["--headless", "--workers", "2", "--journal", "off", "--upstream"])
        .arg(format!("unix:{}", app.display()))
        .stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    let mut running = TlsdashProcess::start(command);
    assert_eq!(running.address(), addr);
    for _ in 0..8 {
        assert_eq!(curl(&format!("https://{addr}/")), "handed over");
    }
    let (code, _) = running.end();
    assert_eq!(code, 0);
    // The socket is as it was, for the next one.
    socket.set_nonblocking(true).unwrap();
    std::net::TcpStream::connect(addr).unwrap();
    until("a connection waits", || socket.accept().is_ok());
}

#[test]
fn the_service_manager_hears_ready_alive_reloading_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let app = upstream(folder.path(), b"ok");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut command = tlsdash(folder.path());
    command
        .args(["--headless", "--listen", "127.0.0.1:0", "--journal", "off", "--upstream"])
        .arg(format!("unix:{}", app.display()))
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000");
    let mut running = TlsdashProcess::start(command);
    assert_eq!(told(&socket, "READY=1"), ["READY=1\n"]);
    let addr = running.address();
    assert!(crate::common::connects(addr));
    told(&socket, "WATCHDOG=1");
    running.signal(Signal::HUP);
    let reloading = told(&socket, "READY=1");
    assert!(
        reloading.iter().any(|message| message.contains("RELOADING=1\nMONOTONIC_USEC=")),
        "{reloading:?}"
    );
    running.signal(Signal::TERM);
    told(&socket, "STOPPING=1");
    assert_eq!(running.wait().0, 0);
}

#[test]
fn root_privileges_are_dropped_for_the_named_user() {
    if !rustix::process::geteuid().is_root() {
        return say_not_run(
            "root_privileges_are_dropped_for_the_named_user",
            "only root can become another user",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let app = upstream(folder.path(), b"ok");
    for path in [folder.path(), &app] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let state = folder.path().join("state");
    let mut command = tlsdash(&state);
    command
        .args(["--headless", "--listen", "127.0.0.77:443", "--user", "nobody", "--upstream"])
        .arg(format!("unix:{}", app.display()));
    let mut running = TlsdashProcess::start(command);
    let addr = running.address();
    assert_eq!(curl(&format!("https://{addr}/")), "ok");
    for task in std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("Uid:"), ["65534"; 4], "{status}");
        assert_eq!(line("Gid:"), ["65534"; 4], "{status}");
        assert_eq!(line("NoNewPrivs:"), ["1"]);
        assert_eq!(line("CapEff:"), ["0000000000000000"]);
        assert!(!line("Groups:").contains(&"0".to_owned()), "{status}");
    }
    assert_eq!(running.end().0, 0);
    let journal = std::fs::metadata(state.join("tlsdash.journal")).unwrap();
    assert_eq!(journal.uid(), 65534, "the journal is written after root was given up");
}

/// The unit with the program where the tests have it, beside its socket.
fn unit(folder: &Path) -> PathBuf {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = std::fs::read_to_string(packaging.join("tlsdash.service")).unwrap();
    let program = format!("\"{}\"", env!("CARGO_BIN_EXE_tlsdash"));
    let path = folder.join("tlsdash.service");
    std::fs::write(&path, unit.replace("/usr/bin/tlsdash", &program)).unwrap();
    std::fs::copy(packaging.join("tlsdash.socket"), folder.join("tlsdash.socket")).unwrap();
    path
}

#[test]
fn the_units_are_sound_and_the_service_is_hardened() {
    let folder = tempfile::tempdir().unwrap();
    let path = unit(folder.path());
    for unit in [&path, &folder.path().join("tlsdash.socket")] {
        let verified =
            outside("systemd-analyze", "systemd").args(["--man=no", "verify"]).arg(unit).output().unwrap();
        assert!(verified.status.success(), "{}", stderr(&verified));
    }
    // In tenths.
    let args = ["security", "--no-pager", "--offline=yes", "--threshold=15"];
    let judged = outside("systemd-analyze", "systemd").args(args).arg(&path).output().unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}

#[test]
fn the_units_that_observe_are_sound_and_hardened() {
    // In tenths. A packet socket needs capabilities.
    is_sound_and_hardened("tlsdash-observe@.service", "tlsdash-observe@nginx.service", 15);
    is_sound_and_hardened("tlsdash-wire.service", "tlsdash-wire.service", 20);
}

fn is_sound_and_hardened(file: &str, name: &str, exposure_max: u32) {
    let folder = tempfile::tempdir().unwrap();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = std::fs::read_to_string(packaging.join(file)).unwrap();
    let path = folder.path().join(name);
    let program = format!("\"{}\"", env!("CARGO_BIN_EXE_tlsdash"));
    std::fs::write(&path, unit.replace("/usr/bin/tlsdash", &program)).unwrap();
    let verified =
        outside("systemd-analyze", "systemd").args(["--man=no", "verify"]).arg(&path).output().unwrap();
    assert!(verified.status.success() && verified.stderr.is_empty(), "{}", stderr(&verified));
    let args = ["security", "--no-pager", "--offline=yes", &format!("--threshold={exposure_max}")];
    let judged = outside("systemd-analyze", "systemd").args(args).arg(&path).output().unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}

/// The program as somebody else than root. Root becomes nobody for it, who is given a copy that everybody may execute.
pub(crate) fn without_root(folder: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return tlsdash(folder);
    }
    let program = folder.join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_tlsdash"), &program).unwrap();
    for path in [folder, &program] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = outside("setpriv", "util-linux");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

#[test]
fn core_dumps_and_processes_of_the_same_user_see_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let listen = ["--headless", "--journal", "off", "--listen", "127.0.0.1:0"];
    let mut command = without_root(folder.path());
    command.args(listen).args(["--upstream", "unix:/nobody-listens-here"]);
    let mut running = TlsdashProcess::start(command);
    running.address();
    let proc = Path::new("/proc").join(running.pid().to_string());
    let limits = std::fs::read_to_string(proc.join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
    // proc(5): of a process that may not be dumped these belong to root.
    assert_eq!(
        std::fs::metadata(proc.join("mem")).unwrap().uid(),
        0,
        "another process of its user can read it"
    );
    assert_eq!(running.end().0, 0);
}

#[test]
fn whoever_serves_as_root_is_warned() {
    let folder = tempfile::tempdir().unwrap();
    let app = upstream(folder.path(), b"ok");
    let mut running = crate::common::proxy(folder.path(), &app, &[]);
    running.address();
    let (code, _, said) = running.end_and_tell();
    assert_eq!(code, 0);
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(said.contains("warning: serving as root: use --user"), is_root, "{said}");
    let told =
        crate::common::journalctl(&crate::common::journal(folder.path()), &["TLSDASH_NOTICE_TOPIC=root"]);
    assert_eq!(told.len(), usize::from(is_root));
    if !is_root {
        say_not_run("whoever_serves_as_root_is_warned", "only root is warned, and nobody else was");
    }
}

#[test]
fn a_user_that_cannot_be_become_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (user, says) in [("no-such-user", "no user"), ("nobody:no-such-group", "no group"), ("root", "root")]
    {
        let output = run(folder.path(), &["--user", user, "--upstream", "unix:/x", "--headless"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn the_probe_at_the_start_sends_the_header_that_the_upstream_expects() {
    let folder = tempfile::tempdir().unwrap();
    let app = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = tlsdash(folder.path());
    command
        .args(["--headless", "--listen", "127.0.0.1:0", "--journal", "off", "--proxy-protocol", "v1"])
        .args(["--upstream", &app.local_addr().unwrap().to_string()]);
    let running = TlsdashProcess::start(command);
    let mut received = String::new();
    app.accept().unwrap().0.read_to_string(&mut received).unwrap();
    assert_eq!(received, "PROXY UNKNOWN\r\n");
    drop(running);
}
