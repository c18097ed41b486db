//! One of the two half-duplex copies.

use std::time::Instant;

use crate::io::buffer::Buffer;
use crate::worker::pending::{StallEntry, StallQueue};

/// Pending bytes in one direction at which its source is no longer read. A slow sink still has the bytes in its
/// socket; reading more would move bytes from the kernel's memory to ours and make its buffer grow.
const HIGH_WATER_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct HalfDuplex {
    /// Bytes that the sink has not taken yet.
    pub(super) pending: Buffer,
    /// Whether the sink has taken anything since the last check.
    pub(super) has_moved: bool,
    /// Since when the sink has taken none of the pending bytes.
    pub(super) stalled: StallEntry,
    /// The source sends nothing more.
    pub(super) source_ended: bool,
    /// The sink knows this, or takes no more bytes.
    pub(super) sink_closed: bool,
}

impl HalfDuplex {
    pub(super) fn has_room(&self) -> bool {
        !self.source_ended && self.pending.len() < HIGH_WATER_BYTES
    }

    /// Removes the bytes that the sink has taken.
    pub(super) fn consume(&mut self, n: usize) {
        self.pending.consume(n);
        self.has_moved = true;
    }

    /// Updates the stall after a write, depending on whether the sink has left bytes.
    pub(super) fn update_stall(&mut self, stalls: &mut StallQueue, key: usize, now: Instant) {
        if self.pending.is_empty() {
            stalls.forget(&mut self.stalled, key);
        } else {
            stalls.note(&mut self.stalled, key, self.has_moved, now);
        }
        self.has_moved = false;
    }

    pub(super) fn is_done(&self) -> bool {
        self.source_ended && self.sink_closed && self.pending.is_empty()
    }
}
