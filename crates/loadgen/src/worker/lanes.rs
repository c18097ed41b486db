//! The lanes of a script on one thread, and the slots that serve them.

use std::collections::HashMap;

use super::LoadWorker;
use crate::plan::Share;
use crate::protocol::ProtocolSession;
use crate::script::{CLIENT_CONNECTIONS_MAX, LaneKind, ScriptPart};
use crate::worker::slot::ConnectionSlot;

/// Which slots serve which lane. A slot that its lane does not use serves others.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Those of the thread's clients, by their index in the script.
    lanes: HashMap<u32, LaneState>,
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
    pub(super) fn new(part: &ScriptPart) -> Self {
        let own = (0..).zip(&part.script.lanes).filter_map(|(index, lane)| {
            let state = LaneState {
                client: part.place(*lane)? as usize,
                kind: lane.kind,
                requests: 0,
                left: 0,
                slots: Vec::new(),
            };
            Some((index, state))
        });
        let mut lanes: HashMap<u32, LaneState> = own.collect();
        for request in &part.script.requests {
            if let Some(lane) = lanes.get_mut(&request.lane) {
                lane.requests += 1;
            }
        }
        Self { lanes, vacant: Vec::new() }
    }

    pub(super) fn client(&self, lane: u32) -> usize {
        self.lanes[&lane].client
    }

    /// The share of its new connections that resume a session; `other` if the script does not say.
    pub(super) fn resume(&self, lane: u32, other: Share) -> Share {
        match self.lanes[&lane].kind {
            LaneKind::Connection { resumes: Some(true) } => Share::ALL,
            LaneKind::Connection { resumes: Some(false) } => Share::ZERO,
            LaneKind::Connection { resumes: None } | LaneKind::Pool => other,
        }
    }

    /// True if the connection of the lane closes, since the present round has no request left for it.
    pub(super) fn is_over(&self, lane: u32) -> bool {
        let LaneState { kind, left, .. } = &self.lanes[&lane];
        *left == 0 && matches!(kind, LaneKind::Connection { .. })
    }

    fn lane_mut(&mut self, lane: u32) -> &mut LaneState {
        self.lanes.get_mut(&lane).expect("a request of the thread has a lane of the thread")
    }

    /// Takes a request of the lane.
    fn take(&mut self, lane: u32) {
        let LaneState { requests, left, .. } = self.lane_mut(lane);
        *left = left.checked_sub(1).unwrap_or(*requests - 1);
    }
}

impl<S: ProtocolSession> LoadWorker<S> {
    /// The lane that a slot serves.
    pub(super) fn lane_of(&self, index: usize) -> Option<(&Lanes, u32)> {
        self.lanes.as_ref().zip(self.slots[index].lane)
    }

    /// The slot for the next request of a lane: the one with the most room, a further one if none has any, and if there
    /// may be none, the one with the fewest requests.
    pub(super) fn slot_of_lane(&mut self, lane: u32) -> Option<usize> {
        let lanes = self.lanes.as_ref()?;
        let LaneState { kind, slots, .. } = &lanes.lanes[&lane];
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
            lanes.lane_mut(lane).slots.push(index);
            self.slots[index] = ConnectionSlot::new();
            self.slots[index].lane = Some(lane);
            index
        }))
    }

    /// Closes the connection of a lane that is over, and takes the slot of a lane that has no connection.
    pub(super) fn leave_lane(&mut self, index: usize) {
        let Some((lanes, lane)) = self.lane_of(index) else { return };
        if lanes.is_over(lane) {
            self.close_idle(index);
        }
        if let Some(lanes) = self.lanes.as_mut().filter(|_| self.slots[index].is_empty()) {
            lanes.lane_mut(lane).slots.retain(|own| *own != index);
            lanes.vacant.push(index);
            self.slots[index].lane = None;
        }
    }
}
