//! The time in which something was measured.

/// How long a load has run after its warm-up, pauses left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) for_ns: u64,
    /// Up to when.
    pub(crate) until_ns: u64,
}

impl Ran {
    pub(crate) fn go_on(&mut self, until_ns: u64) {
        self.for_ns += until_ns.saturating_sub(self.until_ns);
        self.until_ns = self.until_ns.max(until_ns);
    }
}

/// The time in which something was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) ran: Ran,
    /// When the last request was sent; 0 before that.
    pub(crate) sent_ns: u64,
    /// When the last answer was whole; in a closed loop, when the last request was over in whatever way. An open loop
    /// does not wait for what fails, so failures do not lengthen it.
    pub(crate) done_ns: u64,
}

impl Span {
    /// Takes in what another thread has measured.
    pub(crate) fn widen(&mut self, other: Self) {
        self.ran.for_ns = self.ran.for_ns.max(other.ran.for_ns);
        self.ran.until_ns = self.ran.until_ns.max(other.ran.until_ns);
        self.sent_ns = self.sent_ns.max(other.sent_ns);
        self.done_ns = self.done_ns.max(other.done_ns);
    }
}
