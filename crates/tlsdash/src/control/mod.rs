//! Control of a running service over a Unix socket: `--control` and `tlsdash ctl`. `docs/service.md` describes it.
//!
//! | module | purpose |
//! |---|---|
//! | [`protocol`] | requests and responses, as lines of JSON |
//! | [`access`] | who may read and who may write, by the peer's credentials |
//! | [`command`] | what a request asks of the controller |
//! | [`server`] | the socket of a service |
//! | [`conversation`] | the server's end of a connection |
//! | [`client`] | requests to a service |
//! | [`remote`] | requests of keys in `tlsdash watch` to the shown service |
//!
//! A request that changes something goes to the controller, as a key in the dashboard does. A query of figures reads the
//! model.

pub(crate) mod access;
pub(crate) mod client;
mod command;
pub(crate) mod conversation;
pub(crate) mod protocol;
pub(crate) mod remote;
pub(crate) mod server;

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use nix::unistd::Uid;

use crate::cli::ProxyOptions;
use access::{AccessRules, ControlGroup};
use client::SOCKET_NAME;
use server::ControlListener;

pub(crate) use command::{ControlAction, ControlAnswer, ControlCommand, ServiceChange};

/// The options of the control socket.
#[derive(Clone, Debug)]
pub(crate) struct ControlOptions {
    pub(crate) path: PathBuf,
    /// `--control-group`.
    pub(crate) group: Option<String>,
    /// `--control-readers`.
    pub(crate) readers: Option<String>,
}

impl ControlOptions {
    /// The control socket of a proxy; `None` without one.
    pub(crate) fn of(options: &ProxyOptions) -> Option<Self> {
        let of_unit = || {
            let folder = std::env::var_os("RUNTIME_DIRECTORY").filter(|_| options.run.headless)?;
            Some(PathBuf::from(folder).join(SOCKET_NAME))
        };
        let path = match &options.control {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => path.clone(),
            None => of_unit()?,
        };
        Some(Self { path, group: options.control_group.clone(), readers: options.control_readers.clone() })
    }

    /// The absolute path of the socket, for the run's record.
    pub(crate) fn recorded_path(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        records::text::clean::line(&path.to_string_lossy())
    }

    /// Makes the socket, as the user that the service runs as, or takes over that of the process that this one replaces.
    ///
    /// # Errors
    /// If a group does not exist, or the socket cannot be made.
    pub(crate) fn listen(&self, former: Option<UnixListener>) -> anyhow::Result<ControlListener> {
        let [writers, readers] = find_groups(self.group.as_deref(), self.readers.as_deref())?;
        let rules = AccessRules { owner: Uid::effective(), writers, readers };
        match former {
            Some(listener) => ControlListener::take_over(&self.path, listener, rules),
            None => ControlListener::bind(&self.path, rules),
        }
    }
}

/// Looks up the groups of `--control-group` and `--control-readers`.
///
/// # Errors
/// If there is no such group.
pub(crate) fn find_groups(
    group: Option<&str>,
    readers: Option<&str>,
) -> anyhow::Result<[Option<ControlGroup>; 2]> {
    let find =
        |option: &str, name: Option<&str>| name.map(|name| ControlGroup::find(option, name)).transpose();
    Ok([find("--control-group", group)?, find("--control-readers", readers)?])
}
