//! Waiting until a target listens.

use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use recorder::host::ListeningSocket;

use super::protocol::CommandExit;
use super::supervisor::Supervisor;
use crate::scenario::Endpoint;

/// How often the kernel's table of sockets is read.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Why a target is not ready. The last part of each message quotes the end of its output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadinessError {
    /// Another process uses its endpoint.
    #[error("{endpoint} is in use by another process{output_tail}")]
    InUse { endpoint: Endpoint, output_tail: OutputTail },
    /// It is not permitted to do something that it needs.
    #[error(
        "it ended with {exit} for lack of permission: run it as root, or change what it does{output_tail}"
    )]
    NotPermitted { exit: CommandExit, output_tail: OutputTail },
    /// It ended without an error: it went into the background.
    #[error("it ended with {exit} before it listened: it must stay in the foreground{output_tail}")]
    Daemonized { exit: CommandExit, output_tail: OutputTail },
    #[error("it ended with {exit} before it listened{output_tail}")]
    Ended { exit: CommandExit, output_tail: OutputTail },
    #[error("it was not waited for: the run was interrupted")]
    Interrupted,
    #[error("it does not listen on {endpoint} after {} s{output_tail}", .limit.as_secs_f64())]
    Timeout { endpoint: Endpoint, limit: Duration, output_tail: OutputTail },
}

/// The end of a target's output, as the end of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTail(String);

impl Endpoint {
    /// Whether a process of this machine listens on it, by `/proc/net` (`proc_pid_net(5)`). A connection would leave
    /// traces in the measurement.
    pub fn is_listened_on(&self) -> bool {
        match self {
            Self::Tcp(addr) => {
                let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(File::open).into_iter().flatten();
                let mut sockets = tables.flat_map(|table| ListeningSocket::all(BufReader::new(table)));
                sockets.any(|socket| socket.port == addr.port())
            }
            Self::Unix(path) => {
                has_unix_listener(&fs::read_to_string("/proc/net/unix").unwrap_or_default(), path)
            }
        }
    }
}

/// Waits until a target listens, at most for `limit`, or until `is_interrupted` is true.
///
/// The supervisor has just been started, and [`Endpoint::is_listened_on`] was false before that.
///
/// # Errors
/// If it ended, does not listen in time, or was interrupted.
pub fn wait_until_ready(
    supervisor: &mut Supervisor,
    endpoint: &Endpoint,
    limit: Duration,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), ReadinessError> {
    let deadline = Instant::now() + limit;
    loop {
        // Before the sockets are checked: a process that begins to listen meanwhile is not late.
        let is_late = Instant::now() > deadline;
        if let Some(exit) = supervisor.exit() {
            return Err(ReadinessError::of_ended(exit, endpoint, supervisor.output_tail()));
        }
        if endpoint.is_listened_on() {
            return Ok(());
        }
        if is_interrupted() {
            return Err(ReadinessError::Interrupted);
        }
        if is_late {
            let (endpoint, output_tail) = (endpoint.clone(), OutputTail(supervisor.output_tail()));
            return Err(ReadinessError::Timeout { endpoint, limit, output_tail });
        }
        std::thread::sleep(POLL_EVERY);
    }
}

impl ReadinessError {
    /// Explains the end by the process's own output, as far as that is an error of the kernel.
    fn of_ended(exit: CommandExit, endpoint: &Endpoint, output_tail: String) -> Self {
        let lower = output_tail.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        let output_tail = OutputTail(output_tail);
        if says(&["address already in use", "address in use", "eaddrinuse"]) {
            Self::InUse { endpoint: endpoint.clone(), output_tail }
        } else if says(&["permission denied", "operation not permitted", "eacces", "eperm", "as root"]) {
            Self::NotPermitted { exit, output_tail }
        } else if exit.is_success() {
            Self::Daemonized { exit, output_tail }
        } else {
            Self::Ended { exit, output_tail }
        }
    }
}

impl fmt::Display for OutputTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("; it wrote no output")
        } else {
            write!(f, "; it said: {}", self.0)
        }
    }
}

/// Lines such as `0000000000000000: 00000002 00000000 00010000 0001 01 15362 /run/app.sock`: the fourth field has the
/// flag of a socket that accepts. The path is as the process gave it: Node gives only the file's name, from within its
/// folder.
fn has_unix_listener(table: &str, path: &Path) -> bool {
    const ACCEPTS: &str = "00010000";
    // A path may hold blanks.
    let bound_to =
        |line| (0..7).try_fold(line, |rest: &str, _| rest.trim_start().split_once(' ').map(|(_, rest)| rest));
    let is_path = |bound: &str| Path::new(bound) == path || (path.exists() && path.ends_with(bound));
    table
        .lines()
        .filter(|line| line.split_whitespace().nth(3) == Some(ACCEPTS))
        .any(|line| bound_to(line).is_some_and(is_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn listeners_of_each_kind_are_seen_while_they_are_there() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            // A machine without IPv6 has the first alone.
            let Ok(listener) = TcpListener::bind(address) else {
                assert!(address.starts_with('['), "{address}");
                continue;
            };
            let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
            assert!(endpoint.is_listened_on(), "{endpoint}");
            drop(listener);
            assert!(!endpoint.is_listened_on(), "{endpoint}");
        }
        let folder = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::Unix(folder.path().join("a b.sock"));
        assert!(!endpoint.is_listened_on());
        let listener = UnixListener::bind(folder.path().join("a b.sock")).unwrap();
        assert!(endpoint.is_listened_on() && !Endpoint::Unix("b.sock".into()).is_listened_on());
        drop(listener);
        assert!(!endpoint.is_listened_on());
    }

    #[test]
    fn a_unix_listener_bound_by_its_name_alone_is_seen() {
        let table = "0: 00000002 00000000 00010000 0001 01 15362 app.sock\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        assert!(!has_unix_listener(table, &path), "the socket of another folder");
        drop(UnixListener::bind(&path).unwrap());
        assert!(has_unix_listener(table, &path));
        assert!(!has_unix_listener(table, &folder.path().join("another app.sock")));
    }

    #[test]
    fn the_output_of_a_target_tells_why_it_ended() {
        let of = |code, output_tail: &str| {
            ReadinessError::of_ended(
                CommandExit::Code(code),
                &Endpoint::Tcp("127.0.0.1:443".parse().unwrap()),
                output_tail.to_owned(),
            )
            .to_string()
        };
        assert_eq!(
            of(1, "bind() failed (98: Address already in use)"),
            "127.0.0.1:443 is in use by another process; it said: bind() failed (98: Address already in use)"
        );
        assert!(of(1, "bind() to 0.0.0.0:443 failed (13: Permission denied)").contains("run it as root"));
        assert_eq!(of(1, ""), "it ended with exit code 1 before it listened; it wrote no output");
        assert!(of(0, "").contains("must stay in the foreground"));
    }
}
