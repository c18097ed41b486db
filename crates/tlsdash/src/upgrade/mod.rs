//! A new process of the program takes over from a running one: SIGUSR2 and `tlsdash ctl upgrade`. `docs/service.md`
//! describes it.
//!
//! ```text
//! old process                                  new process
//! starts the program ──────────────────────▶   is started by a launcher
//! offer: listening sockets ────────────────▶   reads its configuration, binds, opens its journal
//!                          ◀────────────────   prepared, or refused
//! serve: sealed ticket keys, settings ──────▶  starts its workers
//!                          ◀────────────────   serving
//! ends the launcher, names the new main process, drains
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`channel`] | the messages, and the descriptors that go with them |
//! | [`sealed`] | secrets in sealed memory |
//! | [`launcher`] | the process between both, so that the new process is a child of the service manager |
//! | [`program`] | the program to start |
//! | [`successor`] | the new process, as the old one sees it |
//! | [`predecessor`] | the old process, as the new one sees it |

pub(crate) mod channel;
pub(crate) mod launcher;
pub(crate) mod predecessor;
pub(crate) mod program;
mod sealed;
pub(crate) mod successor;

use std::time::Duration;

/// The longest time for a new process to be ready. `ctl upgrade` waits longer.
const READY_PATIENCE: Duration = Duration::from_secs(10);
/// Set for a new process and its launcher, whose standard input is the channel to the old one.
const VARIABLE: &str = "TLSDASH_UPGRADE";
