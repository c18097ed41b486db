//! What the figures of a run mean: what handshakes cost.

pub(crate) mod costs;
