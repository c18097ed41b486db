//! The bound on connections of all workers together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits the connections of all workers together. Every worker writes it twice per connection, so it has two cache
/// lines to itself: processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ConnectionLimiter {
    open: AtomicUsize,
    max: AtomicUsize,
}

impl ConnectionLimiter {
    pub(crate) fn new(max: usize) -> Self {
        Self { open: AtomicUsize::new(0), max: AtomicUsize::new(max) }
    }

    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Takes the place of one connection, if there is one. Workers that try at the same moment for the last place
    /// may both fail; they try again.
    pub(crate) fn enter(&self) -> bool {
        if self.open.fetch_add(1, Ordering::Relaxed) < self.max.load(Ordering::Relaxed) {
            return true;
        }
        self.leave();
        false
    }

    pub(crate) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that hold a place.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }
}
