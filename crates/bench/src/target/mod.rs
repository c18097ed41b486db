//! Processes that a bench starts: targets, generators, upstreams.
//!
//! ```text
//!   bench ── pipe: SupervisedCommand ──> tlsdash bench-supervisor ── starts ──> command, its children
//!         <── pipe: SupervisorMessage ──        (child subreaper)
//! ```
//!
//! The supervisor ends everything below it when the pipe from bench closes. The kernel closes it however bench ends.
//!
//! | module | purpose |
//! |---|---|
//! | `supervisor` | bench's end: starts a supervised command and stops it |
//! | `supervise` | the supervisor's end |
//! | `protocol` | the messages between both ends |
//! | `readiness` | waits until a target listens |
//! | `output_tail` | the end of a target's output |
//! | `usage` | resources of process trees and the machine, sampled |

mod output_tail;
mod protocol;
mod readiness;
mod supervise;
mod supervisor;
mod usage;

use std::path::PathBuf;

pub use protocol::{CommandExit, ExitInfo, SupervisedCommand};
pub use readiness::{ReadinessError, wait_until_ready};
pub use supervise::supervise;
pub use supervisor::{StartError, Supervisor};
pub use usage::{MachineMeter, SampleTimes, TimeSpan, UsageMeter, growth_within};

/// The folders of servers, which the `PATH` of an ordinary user may lack.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// The folders in which programs are found: those of `PATH`, then those of servers.
pub fn program_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from)).collect()
}
