//! The lanes of a script on one thread, and the slots that serve them.

use super::LoadWorker;
use crate::plan::Share;
use crate::protocol::ProtocolSession;
use crate::schedule::ThreadPart;
use crate::script::{CLIENT_CONNECTIONS_MAX, Lane, LaneKind, Script};
use crate::worker::slot::ConnectionSlot;

/// Which slots serve which lane. A slot that its lane does not use serves others.
#[derive(Debug)]
pub(super) struct Lanes {
    /// All of the script; those of other threads are not used.
    lanes: Vec<LaneState>,
    /// Slots without a lane.
    vacant: Vec<usize>,
}

#[derive(Debug)]
struct LaneState {
    /// The index of its client among the thread's.
    client: usize,
    kind: LaneKind,
    /// Requests of a round.
    requests: u64,
    /// Those of the present round that have not been taken.
    left: u64,
    slots: Vec<usize>,
}

impl Lanes {
    pub(super) fn new(script: &Script, part: ThreadPart) -> Self {
        let state = |lane: &Lane| LaneState {
            client: (lane.client / part.threads) as usize,
            kind: lane.kind,
            requests: 0,
            left: 0,
            slots: Vec::new(),
        };
        let mut lanes: Vec<_> = script.lanes.iter().map(state).collect();
        script.requests.iter().for_each(|request| lanes[request.lane as usize].requests += 1);
        Self { lanes, vacant: Vec::new() }
    }

    pub(super) fn client(&self, lane: u32) -> usize {
        self.lanes[lane as usize].client
    }

    /// The share of its new connections that resume a session; `other` if the script does not say.
    pub(super) fn resume(&self, lane: u32, other: Share) -> Share {
        match self.lanes[lane as usize].kind {
            LaneKind::Connection { resumes: Some(true) } => Share::ALL,
            LaneKind::Connection { resumes: Some(false) } => Share::ZERO,
            LaneKind::Connection { resumes: None } | LaneKind::Pool => other,
        }
    }

    /// True if the connection of the lane closes, since the present round has no request left for it.
    pub(super) fn is_over(&self, lane: u32) -> bool {
        let LaneState { kind, left, .. } = &self.lanes[lane as usize];
        *left == 0 && matches!(kind, LaneKind::Connection { .. })
    }

    /// Takes a request of the lane.
    fn take(&mut self, lane: u32) {
        let LaneState { requests, left, .. } = &mut self.lanes[lane as usize];
        *left = left.checked_sub(1).unwrap_or(*requests - 1);
    }
}

impl<S: ProtocolSession> LoadWorker<S> {
    /// The slot for the next request of a lane: the one with the most room, a further one if none has any, and if there
    /// may be none, the one with the fewest requests.
    pub(super) fn slot_of_lane(&mut self, lane: u32) -> Option<usize> {
        let lanes = self.lanes.as_ref()?;
        let LaneState { kind, slots, .. } = &lanes.lanes[lane as usize];
        let slots_max = match kind {
            LaneKind::Pool if !S::IS_MULTIPLEXED => CLIENT_CONNECTIONS_MAX,
            LaneKind::Pool | LaneKind::Connection { .. } => 1,
        };
        let burden = |&index: &usize| {
            let ConnectionSlot { under_way, connection, .. } = &self.slots[index];
            (!self.has_room(index), *under_way, connection.is_none())
        };
        let best = slots.iter().copied().min_by_key(burden);
        let is_full = slots.len() >= slots_max;
        let found = best.filter(|&index| is_full || self.has_room(index));
        let lanes = self.lanes.as_mut()?;
        lanes.take(lane);
        Some(found.unwrap_or_else(|| {
            let index = lanes.vacant.pop().unwrap_or_else(|| {
                self.slots.push(ConnectionSlot::new());
                self.slots.len() - 1
            });
            lanes.lanes[lane as usize].slots.push(index);
            self.slots[index] = ConnectionSlot::new();
            self.slots[index].lane = Some(lane);
            index
        }))
    }

    /// Closes the connection of a lane that is over, and takes the slot of a lane that has no connection.
    pub(super) fn leave_lane(&mut self, index: usize) {
        let Some((lanes, lane)) = self.lanes.as_ref().zip(self.slots[index].lane) else { return };
        if lanes.is_over(lane) {
            self.close_idle(index);
        }
        if let Some(lanes) = self.lanes.as_mut().filter(|_| self.slots[index].is_empty()) {
            lanes.lanes[lane as usize].slots.retain(|own| *own != index);
            lanes.vacant.push(index);
            self.slots[index].lane = None;
        }
    }
}
