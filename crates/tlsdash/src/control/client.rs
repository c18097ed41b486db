//! Requests to a service.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};

use super::protocol::{ControlRequest, ControlResponse, VERSION};
use crate::error::usage;

/// The longest time for a part of an answer.
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

/// A connection to a service.
#[derive(Debug)]
pub(crate) struct ControlClient {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
}

impl ControlClient {
    /// Connects to the socket of a service.
    ///
    /// # Errors
    /// If there is no service, or this user has no access.
    pub(crate) fn connect(socket: &Path) -> anyhow::Result<Self> {
        let name = socket.display();
        // The reason comes first: a line of the dashboard may have no room for all of it.
        let stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
            _ if fs::metadata(socket).is_ok_and(|found| !found.file_type().is_socket()) => {
                anyhow!("{name} is not a socket: name the socket of the service's --control")
            }
            io::ErrorKind::NotFound => anyhow!("there is no control socket {name}: the service has gone, or has another --control"),
            io::ErrorKind::ConnectionRefused => anyhow!("nobody serves the control socket {name}: the service has gone"),
            io::ErrorKind::PermissionDenied => anyhow!(
                "permission denied by the control socket {name}: root, the service's user and the group of --control-group may connect"
            ),
            _ => anyhow!("cannot connect to the control socket {name}: {error}"),
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), socket: socket.to_owned() })
    }

    /// Sends a request, and returns the answer.
    ///
    /// # Errors
    /// If the service does not answer, or not in this protocol.
    pub(crate) fn ask(&mut self, request: &ControlRequest) -> anyhow::Result<ControlResponse> {
        let name = self.socket.display();
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        // A service that refuses everybody answers before it reads.
        let written = self.stream.get_mut().write_all(&line);
        let mut answer = String::new();
        let read = (&mut self.stream).take(ANSWER_BYTES_MAX).read_line(&mut answer);
        if answer.is_empty() {
            written.and(read).with_context(|| format!("no answer from {name}"))?;
            return Err(anyhow!("no answer from {name}: the service closed the connection"));
        }
        anyhow::ensure!(answer.ends_with('\n'), "the answer from {name} ended early: the service has gone");
        let mut response: ControlResponse = serde_json::from_str(&answer)
            .with_context(|| format!("{name} does not answer as a control socket of tlsdash"))?;
        response.text = records::text::clean::line(&response.text);
        if !response.ok && response.version < VERSION {
            let older = format!(
                "; the service speaks version {} of the protocol, this program {VERSION}: restart the service",
                response.version
            );
            response.text.push_str(&older);
        }
        Ok(response)
    }
}

/// Sends one request, and returns the answer.
///
/// # Errors
/// If the service cannot be reached, or does not answer.
pub(crate) fn ask(socket: &Path, request: &ControlRequest) -> anyhow::Result<ControlResponse> {
    ControlClient::connect(socket)?.ask(request)
}
