//! Counts what the logs of another TLS terminator say: a third producer of records beside proxy and load.
//!
//! A source ([`LogSocket`], [`FollowedFile`], [`JournalLines`]) gives lines. A [`LogParser`] takes off the header that syslog
//! puts before a line, and makes an [`event`] of each. [`LogCounter`] counts events into the delta that the publisher takes
//! from every producer. [`observe_log`] does that on a thread of its own while a terminator runs; [`LogReplay`] does it for a
//! log that is whole, in the log's own time.
//!
//! Only what the log says is counted. What it does not say is absent, and [`LogKind::absent`] has the reasons.

#![forbid(unsafe_code)]

pub mod event;
mod followed_file;
mod format;
mod journal_lines;
mod lines;
mod local_clock;
mod log_counter;
mod log_observer;
mod log_socket;
mod names;
mod replay;
pub mod setup;
mod syslog;

pub use followed_file::FollowedFile;
pub use format::{BadLine, LogKind, LogParser, UnknownLogKind};
pub use journal_lines::JournalLines;
pub use lines::LineReader;
pub use lines::health::{LineHealth, LogTransport};
pub use log_counter::{LogCounter, RESOLUTION};
pub use log_observer::{LineSource, observe_log};
pub use log_socket::{LogSocket, SocketAddress, SocketError, SocketOptions};
pub use replay::{LogReplay, ReplayError, ReplayedLog, log_span};
