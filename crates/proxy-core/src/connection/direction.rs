//! One of the two half-duplex copies.

use std::time::Instant;

use crate::io::buffer::Buffer;
use crate::worker::pending::{Stalled, Stalls};

/// Bytes that wait in one direction before its source is no longer read. A sink that is slow still has what its socket
/// holds; reading more for it would move bytes from the kernel's memory to ours and make its buffer grow.
pub(super) const HIGH_WATER_BYTES: usize = 16 << 10;

/// What goes one way.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// What its sink has not taken yet.
    pub(super) pending: Buffer,
    /// Whether its sink has taken anything since that was last looked at.
    pub(super) has_moved: bool,
    /// Since when the sink has taken nothing of what is pending.
    pub(super) stalled: Stalled,
    /// Its source will send nothing more.
    pub(super) ended: bool,
    /// Its sink has been told so, or takes nothing any more.
    pub(super) passed_on: bool,
}

impl Direction {
    pub(super) fn has_room(&self) -> bool {
        !self.ended && self.pending.len() < HIGH_WATER_BYTES
    }

    /// Notes after writing whether anything is left that the sink did not take.
    pub(super) fn note_stall(&mut self, stalls: &mut Stalls, key: usize, now: Instant) {
        if self.pending.is_empty() {
            stalls.forget(&mut self.stalled, key);
        } else {
            stalls.note(&mut self.stalled, key, self.has_moved, now);
        }
        self.has_moved = false;
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended && self.passed_on && self.pending.is_empty()
    }
}
