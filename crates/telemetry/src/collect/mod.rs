//! Counters and samples of an interval, and their way to the publisher.

pub(crate) mod contention;
pub(crate) mod delta;
pub(crate) mod delta_channel;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod listening;
pub(crate) mod observe;
pub(crate) mod process_tree;
pub(crate) mod request_samples;
pub(crate) mod slow_reading;
pub(crate) mod tls;
pub(crate) mod unit_processes;
