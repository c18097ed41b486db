//! The wall clock, as certificates and tickets have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(in crate::tls) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
