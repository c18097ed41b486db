//! Latency percentiles by class.

pub(crate) mod view;
