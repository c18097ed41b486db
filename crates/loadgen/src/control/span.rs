//! How long a load ran, and when it sent and received.

/// How long a load has run after its warm-up, pauses left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunningTime {
    pub(crate) for_ns: u64,
    /// The end of the last period.
    pub(crate) until_ns: u64,
}

impl RunningTime {
    pub(crate) fn go_on(&mut self, until_ns: u64) {
        self.for_ns += until_ns.saturating_sub(self.until_ns);
        self.until_ns = self.until_ns.max(until_ns);
    }
}

/// How long a load ran, and when it last sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadSpan {
    pub(crate) ran: RunningTime,
    /// When the last request was sent; 0 before that.
    pub(crate) sent_ns: u64,
    /// When the last answer was complete; in a closed loop, when the last request ended in any way. An open loop does
    /// not wait for requests that fail, so failures do not lengthen it.
    pub(crate) done_ns: u64,
}

impl LoadSpan {
    /// Merges another thread's span.
    pub(crate) fn widen(&mut self, other: Self) {
        self.ran.for_ns = self.ran.for_ns.max(other.ran.for_ns);
        self.ran.until_ns = self.ran.until_ns.max(other.ran.until_ns);
        self.sent_ns = self.sent_ns.max(other.sent_ns);
        self.done_ns = self.done_ns.max(other.done_ns);
    }
}
