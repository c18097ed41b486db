//! Load, proxy, journal and CPU in detail, and the proxy's workers.

pub(crate) mod model;
pub(crate) mod view;
