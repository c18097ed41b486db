//! One of the two half-duplex copies.

use crate::buffer::Buffer;

/// Bytes that wait in one direction before its source is no longer read. A sink that is slow still has what its socket
/// holds; reading more for it would move bytes from the kernel's memory to ours and make its buffer grow.
pub(super) const HIGH_WATER_BYTES: usize = 16 << 10;

/// What goes one way.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// What its sink has not taken yet.
    pub(super) pending: Buffer,
    /// Its source will send nothing more.
    pub(super) ended: bool,
    /// Its sink has been told so, or takes nothing any more.
    pub(super) passed_on: bool,
}

impl Direction {
    pub(super) fn has_room(&self) -> bool {
        !self.ended && self.pending.len() < HIGH_WATER_BYTES
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended && self.passed_on && self.pending.is_empty()
    }
}
