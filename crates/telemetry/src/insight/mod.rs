//! What the figures of a run mean: what handshakes cost, and what a change would save.

pub(crate) mod costs;
pub(crate) mod savings;
