//! What follows a turn of a connection, and why and how one ends.

use std::fmt::Display;

use records::kinds::ConnectionOutcome;
use records::text::clean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// An event or a deadline.
    Wait,
    /// Another turn, since there is more to read.
    Again,
    /// To be closed: both sides have ended, and everything is sent.
    Close,
}

/// Why and how a connection ends.
#[derive(Debug)]
pub struct ConnEnd {
    pub(super) outcome: ConnectionOutcome,
    pub(super) detail: String,
    pub(super) mode: CloseMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseMode {
    /// Send the client's pending bytes first, and give the client time to close.
    AfterSending,
    /// Close now, and drop the client's pending bytes in the proxy.
    AtOnce,
    /// Close now with a reset, so the kernel also drops its bytes for the client.
    Reset,
}

impl ConnEnd {
    /// Ends it once the client has its pending bytes.
    pub fn after_sending(outcome: ConnectionOutcome, detail: impl Display) -> Self {
        Self::new(outcome, detail, CloseMode::AfterSending)
    }

    pub fn at_once(outcome: ConnectionOutcome, detail: impl Display) -> Self {
        Self::new(outcome, detail, CloseMode::AtOnce)
    }

    /// Ends it now with a reset, so the client does not take the truncated bytes for complete.
    pub fn reset(outcome: ConnectionOutcome, detail: impl Display) -> Self {
        Self::new(outcome, detail, CloseMode::Reset)
    }

    #[cold]
    fn new(outcome: ConnectionOutcome, detail: impl Display, mode: CloseMode) -> Self {
        Self { outcome, detail: clean::text(&detail.to_string()), mode }
    }
}
