//! The commands on what was recorded.

pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod report;
pub(crate) mod runs;
