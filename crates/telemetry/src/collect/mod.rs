//! What is counted and sampled in an interval, and how it reaches the publisher.

pub(crate) mod delta;
pub(crate) mod delta_channel;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod observe;
pub(crate) mod process_tree;
pub(crate) mod request_samples;
pub(crate) mod scarcity;
pub(crate) mod tls;
