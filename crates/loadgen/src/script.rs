//! A script: requests with times, clients and connections of their own, such as those of a log.

use std::time::Duration;

/// Most connections at a time of a client whose connections are not known, as browsers keep to.
pub(crate) const CLIENT_CONNECTIONS_MAX: usize = 6;

/// What is sent in place of a rate. The plan's rate is its mean, and the plan's requests are all of its rounds.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it was made from.
    pub name: String,
    /// In the order of their times.
    pub requests: Vec<ScriptRequest>,
    pub lanes: Vec<Lane>,
    /// Each has its own sessions, and with the plan's sources an address.
    pub clients: u32,
    /// How long a round takes; the next one begins then. At least 1 us, and no request is later.
    pub period: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptRequest {
    /// When it is due, in microseconds since the begin of its round.
    pub after_us: u64,
    /// The index of its template.
    pub template: u32,
    /// The index of its lane.
    pub lane: u32,
}

/// Requests of one client that share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Below the number of clients.
    pub client: u32,
    pub kind: LaneKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// One connection, which closes after its last request of a round.
    Connection {
        /// Whether it resumes a session, if the client has one; `None` leaves it to the plan's share.
        resumes: Option<bool>,
    },
    /// As many connections as the client needs, up to six, kept until the server closes them.
    Pool,
}

/// The script contradicts itself; says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script of the load {0}")]
pub struct ScriptError(&'static str);

impl Script {
    /// Checks that it can be followed, with this many templates.
    pub(crate) fn check(&self, templates: usize) -> Result<(), ScriptError> {
        let Self { name: _, requests, lanes, clients, period } = self;
        let rules = [
            (!requests.is_empty(), "has no request"),
            (requests.is_sorted_by_key(|request| request.after_us), "is not in the order of its times"),
            (requests.iter().all(|request| (request.template as usize) < templates), "lacks a template"),
            (requests.iter().all(|request| (request.lane as usize) < lanes.len()), "lacks a lane"),
            (lanes.iter().all(|lane| lane.client < *clients), "lacks a client"),
            (period.as_micros() > 0, "takes no time"),
            (
                requests.iter().all(|request| u128::from(request.after_us) <= period.as_micros()),
                "is too long",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, broken)| Err(ScriptError(broken)))
    }
}
