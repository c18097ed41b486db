//! One request to a service.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::protocol::{ControlRequest, ControlResponse};
use crate::cli::usage;

/// The longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest answer: every client of a large service.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The name of the socket in a runtime directory.
pub(crate) const SOCKET_NAME: &str = "control.sock";
/// The runtime directory of the unit.
const RUNTIME_DIRECTORY: &str = "/run/tlsdash";

/// The socket of the service on this host.
///
/// # Errors
/// If there is none at the usual places.
pub(crate) fn find_socket() -> anyhow::Result<PathBuf> {
    let of_unit = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let places = of_unit.into_iter().chain([PathBuf::from(RUNTIME_DIRECTORY)]);
    let mut sockets = places.map(|folder| folder.join(SOCKET_NAME));
    sockets.find(|path| path.exists()).ok_or_else(|| {
        usage(format!("there is no {RUNTIME_DIRECTORY}/{SOCKET_NAME}: name the socket of the service's --control with --control PATH"))
    })
}

/// Sends a request, and returns the answer.
///
/// # Errors
/// If the service cannot be reached, or does not answer.
pub(crate) fn ask(socket: &Path, request: &ControlRequest) -> anyhow::Result<ControlResponse> {
    let name = socket.display();
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("cannot connect to the control socket {name}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    // A service that refuses everybody answers before it reads.
    let written = stream.write_all(&line);
    let mut answer = String::new();
    let read = BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer);
    if answer.is_empty() {
        written.and(read).with_context(|| format!("no answer from {name}"))?;
    }
    serde_json::from_str(&answer).with_context(|| format!("the answer from {name} is not understood"))
}
