//! Why a target does not start, as a user reads it.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use bench::scenario::Endpoint;
use bench::target::{SupervisedCommand, Supervisor, wait_until_ready};

use super::{command, lives, shell, tlsdash};
use crate::common;

/// Nobody listens on port 0.
const NOWHERE: Endpoint = Endpoint::Tcp(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)));

/// The message of a script that never becomes ready, which has then ended.
fn message_of(script: &str, limit: Duration) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = shell(&folder, script);
    let pid = supervisor.pid();
    let error = wait_until_ready(&mut supervisor, &NOWHERE, limit, &|| false).unwrap_err();
    supervisor.stop();
    assert!(!lives(pid));
    error.to_string()
}

fn refused(command: &SupervisedCommand) -> String {
    Supervisor::start(tlsdash(), command).unwrap_err().to_string()
}

#[test]
fn a_command_that_dies_at_once_is_quoted() {
    let message = message_of("echo loading; echo 'no such directive \"foo\"' >&2; exit 4", common::PATIENCE);
    let expected =
        "it ended with exit code 4 before it listened; it said: loading | no such directive \"foo\"";
    assert_eq!(message, expected);
    let message = message_of("kill -SEGV $$", common::PATIENCE);
    assert_eq!(message, "it ended with signal 11 before it listened; it wrote no output");
}

#[test]
fn a_command_that_never_listens_is_given_up() {
    let message = message_of("echo still loading; exec sleep 1000", Duration::from_millis(500));
    assert_eq!(message, "it does not listen on 127.0.0.1:0 after 0.5 s; it said: still loading");
}

#[test]
fn a_command_that_goes_into_the_background_is_refused() {
    let message = message_of("sleep 1000 & exit 0", common::PATIENCE);
    assert!(message.starts_with("it ended with exit code 0 before it listened: it must stay"), "{message}");
}

#[test]
fn a_command_without_permission_is_told_to_run_as_root() {
    // Not even root may write this.
    let message = message_of("echo x > /proc/sys/kernel/ostype", common::PATIENCE);
    assert!(message.contains("for lack of permission: run it as root"), "{message}");
    assert!(message.contains("ostype: Permission denied"), "{message}");
}

#[test]
fn a_port_in_use_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = other.local_addr().unwrap();
    let port = addr.port();
    assert!(Endpoint::Tcp(addr).is_listened_on(), "bench looks before it starts anything");
    let program = tlsdash().display().to_string();
    let argv = [&program, "bench-upstream", "--unix", "app.sock", "--tcp", &port.to_string()];
    let mut supervisor = Supervisor::start(tlsdash(), &command(&folder, &argv)).unwrap();
    let error = wait_until_ready(&mut supervisor, &NOWHERE, common::PATIENCE, &|| false).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("127.0.0.1:0 is in use by another process; it said: tlsdash: cannot"),
        "{message}"
    );
    assert!(message.contains(&format!("127.0.0.1:{port}: Address already in use")), "{message}");
}

#[test]
fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let base = command(&folder, &["no-such-program"]);
    assert_eq!(refused(&base), "cannot start no-such-program: there is no such program");
    let file = folder.path().join("text");
    std::fs::write(&file, "text").unwrap();
    let message = refused(&command(&folder, &[&file.display().to_string()]));
    assert!(message.ends_with("text: Permission denied (os error 13)"), "{message}");
    let cpus = |list: &str| SupervisedCommand { cpus: Some(list.to_owned()), ..command(&folder, &["true"]) };
    assert!(refused(&cpus("1023")).starts_with("core 1023 does not exist"));
    assert!(refused(&cpus("all")).contains("is not a list of cores"));
    let nowhere = SupervisedCommand { directory: folder.path().join("nowhere"), ..base.clone() };
    assert!(refused(&nowhere).starts_with("there is no folder "));
    let nowhere = SupervisedCommand { output: folder.path().join("nowhere/output"), ..base };
    assert!(refused(&nowhere).starts_with("cannot write "));
    // A socket that somebody else has is no stale one.
    let _other = UnixListener::bind(folder.path().join("app.sock")).unwrap();
    assert!(Endpoint::Unix(folder.path().join("app.sock")).is_listened_on());
    let nobody = Supervisor::start(&folder.path().join("tlsdash"), &command(&folder, &["true"]));
    assert!(nobody.unwrap_err().to_string().starts_with("cannot start a supervisor for true: "));
}
