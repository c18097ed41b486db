//! The upstreams' side: connections that are pooled per worker, and exchanges on them.

pub(crate) mod acquire;
pub(crate) mod content;
pub(crate) mod exchange;
pub(crate) mod http1;
pub(crate) mod http2;
mod lease;
pub(crate) mod pool;
mod queue;
pub(crate) mod request_head;
pub(crate) mod response_body;
pub(crate) mod tunnel;
