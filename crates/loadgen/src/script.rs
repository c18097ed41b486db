//! A script: requests with times, clients and connections of their own, such as those of a log.

use std::sync::Arc;
use std::time::Duration;

use records::values::TlsVersion;

use crate::protocol::Protocol;

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
    /// Each has its own sessions.
    pub clients: Vec<ScriptClient>,
    /// What clients offer.
    pub profiles: Vec<ClientProfile>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptClient {
    /// Which of the plan's sources it has; the same again beyond them.
    pub source: u32,
    /// The index of its profile.
    pub profile: u32,
}

/// What a client speaks. What is absent is as for the whole load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProfile {
    pub version: Option<TlsVersion>,
    /// Names of the only cipher suites, as TLS registers them.
    pub ciphers: Vec<String>,
    /// Names of the only key exchange groups.
    pub groups: Vec<String>,
    pub protocol: Protocol,
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
    /// Checks that it can be followed, with this many templates and threads.
    pub(crate) fn check(&self, templates: usize, threads: u32) -> Result<(), ScriptError> {
        let Self { name: _, requests, lanes, clients, profiles, period } = self;
        let rules = [
            (!requests.is_empty(), "has no request"),
            (requests.is_sorted_by_key(|request| request.after_us), "is not in the order of its times"),
            (requests.iter().all(|request| (request.template as usize) < templates), "lacks a template"),
            (requests.iter().all(|request| (request.lane as usize) < lanes.len()), "lacks a lane"),
            (lanes.iter().all(|lane| (lane.client as usize) < clients.len()), "lacks a client"),
            (clients.iter().all(|client| (client.profile as usize) < profiles.len()), "lacks a profile"),
            (!self.has_both_protocols() || threads > 1, "has two protocols, which take two threads"),
            (period.as_micros() > 0, "takes no time"),
            (
                requests.iter().all(|request| u128::from(request.after_us) <= period.as_micros()),
                "is too long",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, broken)| Err(ScriptError(broken)))
    }

    /// The most lanes that are between their first and their last request at a time; a pool counts as one.
    pub fn connections_max(&self) -> u32 {
        let mut last = vec![0; self.lanes.len()];
        (0..).zip(&self.requests).for_each(|(at, request): (usize, _)| last[request.lane as usize] = at);
        let (mut is_open, mut open, mut most) = (vec![false; self.lanes.len()], 0, 0);
        for (at, request) in self.requests.iter().enumerate() {
            let lane = request.lane as usize;
            open += u32::from(!std::mem::replace(&mut is_open[lane], true));
            most = most.max(open);
            open -= u32::from(last[lane] == at);
        }
        most
    }

    pub fn has_both_protocols(&self) -> bool {
        let is_http2 = |profile: &ClientProfile| profile.protocol != Protocol::Http1;
        self.profiles.iter().any(is_http2) && !self.profiles.iter().all(is_http2)
    }

    fn profile(&self, client: u32) -> &ClientProfile {
        &self.profiles[self.clients[client as usize].profile as usize]
    }
}

/// What a thread does of a script: the requests of some of its clients, all over one protocol.
#[derive(Debug)]
pub(crate) struct ScriptPart {
    pub(crate) script: Arc<Script>,
    /// The clients, by their index in the script.
    pub(crate) clients: Box<[u32]>,
    /// The index of each client of the script among those; `None` if another thread serves it.
    places: Box<[Option<u32>]>,
    pub(crate) protocol: Protocol,
}

impl ScriptPart {
    /// The parts of this many threads. If there are two protocols, each has threads by its share of the requests.
    pub(crate) fn of_threads(script: &Arc<Script>, threads: u32) -> Vec<Arc<Self>> {
        let of = |is_http2: bool| {
            let is_one = |client: &u32| (script.profile(*client).protocol != Protocol::Http1) == is_http2;
            (0..script.clients.len() as u32).filter(is_one).collect::<Vec<_>>()
        };
        let groups = [of(false), of(true)];
        let of_http2 = script.requests.iter().filter(|request| {
            script.profile(script.lanes[request.lane as usize].client).protocol != Protocol::Http1
        });
        let share = of_http2.count() as f64 / script.requests.len().max(1) as f64;
        let for_http2 = match &groups {
            [_, http2] if http2.is_empty() => 0,
            [http1, _] if http1.is_empty() => threads,
            _ => ((f64::from(threads) * share).round() as u32).clamp(1, threads.max(2) - 1),
        };
        let group = |[clients, count]: [usize; 2]| {
            (0..count).map(move |thread| (clients, thread, count)).collect::<Vec<_>>()
        };
        let for_http1 = threads - for_http2.min(threads);
        let all = group([0, for_http1 as usize]).into_iter().chain(group([1, for_http2 as usize]));
        all.map(|(group, thread, count)| {
            let clients: Box<[u32]> = groups[group].iter().copied().skip(thread).step_by(count).collect();
            let mut places = vec![None; script.clients.len()];
            (0..).zip(&clients).for_each(|(place, client)| places[*client as usize] = Some(place));
            let protocol = clients.first().map_or(Protocol::Http1, |client| script.profile(*client).protocol);
            Arc::new(Self { script: Arc::clone(script), clients, places: places.into(), protocol })
        })
        .collect()
    }

    /// The index of a lane's client among those of the thread; `None` if another thread serves it.
    pub(crate) fn place(&self, lane: Lane) -> Option<u32> {
        self.places[lane.client as usize]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Requests at these times, each of a client of its own unless the number of its client is given again.
    pub(crate) fn script(requests: &[(u64, u32)], is_http2: &[bool]) -> Script {
        let clients = 0..is_http2.len() as u32;
        Script {
            name: String::new(),
            requests: requests
                .iter()
                .map(|&(after_us, lane)| ScriptRequest { after_us, template: 0, lane })
                .collect(),
            lanes: clients.clone().map(|client| Lane { client, kind: LaneKind::Pool }).collect(),
            clients: clients.map(|client| ScriptClient { source: client, profile: client }).collect(),
            profiles: is_http2
                .iter()
                .map(|is_http2| ClientProfile {
                    protocol: if *is_http2 { Protocol::Http2 { streams: 8 } } else { Protocol::Http1 },
                    ..ClientProfile::default()
                })
                .collect(),
            period: Duration::from_micros(10),
        }
    }

    #[test]
    fn each_client_has_one_thread_that_speaks_its_protocol() {
        let is_http2 = [false, true, true, false, true, true];
        for threads in 2..8 {
            let script = Arc::new(script(&[(0, 0), (1, 1), (2, 2)], &is_http2));
            script.check(1, threads).unwrap();
            let parts = ScriptPart::of_threads(&script, threads);
            assert_eq!(parts.len(), threads as usize);
            for (client, is_http2) in is_http2.iter().enumerate() {
                let lane = script.lanes[client];
                let own: Vec<_> = parts.iter().filter(|part| part.place(lane).is_some()).collect();
                assert_eq!(own.len(), 1);
                let place = own[0].place(lane).unwrap() as usize;
                assert_eq!(own[0].clients[place] as usize, client);
                assert_eq!(own[0].protocol != Protocol::Http1, *is_http2, "{threads} threads");
            }
        }
        assert!(script(&[(0, 0)], &is_http2).check(1, 1).unwrap_err().to_string().contains("two threads"));
    }
}
