//! Connections while a script is made: those that are due, and those that are open.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use loadgen::Lane;

/// One of so many connections takes requests for which no connection is open, so that the others have as many as they should.
const SPARE_SHARE: usize = 400;

/// Connections that are open while the script is made.
#[derive(Debug, Default)]
pub(crate) struct OpenLanes {
    pub(crate) lanes: Vec<Lane>,
    /// Requests that each has left.
    pub(crate) left: Vec<u64>,
    /// Those that have some left, by when the next one is due.
    pub(crate) due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The one that ended last.
    ended: Option<u32>,
    /// Those that take requests for which none is open.
    pub(crate) spare: VecDeque<u32>,
    /// Requests beyond what connections have, by the distribution.
    pub(crate) beyond: u64,
}

/// Connections that have not begun, by the tenth of a second in which they are due.
#[derive(Debug)]
pub(crate) struct DueConnections(pub(crate) Vec<u64>);

impl DueConnections {
    pub(crate) fn add(&mut self, tenth: usize, connections: u64) {
        if let Some(due) = self.0.get_mut(tenth) {
            *due += connections;
        }
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&mut self, tenth: usize) -> bool {
        let is_due = self.0[tenth] > 0;
        self.0[tenth] -= u64::from(is_due);
        is_due
    }
}

impl OpenLanes {
    pub(crate) fn add(&mut self, lane: Lane) -> u32 {
        self.lanes.push(lane);
        self.lanes.len() as u32 - 1
    }

    /// The connection for the next request: the one that is due first, or if all have ended, a spare one; `None` if there is
    /// none.
    pub(crate) fn next(&mut self) -> Option<u32> {
        if let Some(Reverse((_, lane))) = self.due.pop() {
            return Some(lane);
        }
        if self.spare.len() <= self.lanes.len() / SPARE_SHARE {
            self.spare.extend(self.ended.take());
        }
        self.spare.rotate_left(usize::from(!self.spare.is_empty()));
        let lane = *self.spare.back()?;
        self.left[lane as usize] += 1;
        self.beyond += 1;
        Some(lane)
    }

    /// Notes that a request was sent, and when the next one is due.
    pub(crate) fn sent(&mut self, lane: u32, due_us: u64) {
        let left = &mut self.left[lane as usize];
        *left -= 1;
        if *left > 0 {
            self.due.push(Reverse((due_us, lane)));
        } else if self.spare.back() != Some(&lane) {
            // It is not the spare one that was taken for this request.
            self.ended = Some(lane);
        }
    }
}
