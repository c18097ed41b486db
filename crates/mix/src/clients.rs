//! The clients of a load: how often each connects, what it offers, and who opens the next connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use loadgen::{ClientProfile, Protocol, ScriptClient, TlsVersion};

use crate::draw::{Quota, Steps};
use crate::traffic::{Shares, TrafficMix};

/// Most clients: each has an address of its own.
const CLIENTS_MAX: u32 = 65_533;
/// A client is taken in parts that are at most this share of the connections, so that shares of what clients offer are exact.
const PART_SHARE: f64 = 0.01;
/// How long after the begin of a connection its ticket is there to be used.
const SESSION_AFTER_US: u64 = 100_000;
/// Sessions that a client keeps.
const SESSIONS_MAX: usize = 6;
/// Clients that are looked at for one whose session is there, and whose profile has had too few connections.
const LOOKED_AT_MAX: usize = 16;
/// Streams of a connection of HTTP/2, as browsers use them.
const STREAMS: u32 = 100;

/// Clients by the number, among all, of the connection that they open next.
type DueClients = BinaryHeap<Reverse<(u64, u32)>>;

/// Who opens connections.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) list: Vec<ScriptClient>,
    pub(crate) profiles: Vec<ClientProfile>,
    states: Vec<ClientState>,
    /// Clients without a session, and those that have one, by when their next connection is due among all.
    fresh: DueClients,
    known: DueClients,
    /// How many connections each profile has, and should have.
    quota: Quota,
    /// Connections that were to resume a session of a client that has none.
    pub(crate) without_session: u64,
}

#[derive(Clone, Debug)]
struct ClientState {
    /// Its share of the connections, from 0 to 1.
    share: f64,
    opened: u64,
    /// Where among all connections its first one lies, in its own distance.
    phase: f64,
    /// From when on each of its sessions can be resumed.
    sessions: Vec<u64>,
}

impl ClientState {
    /// The number, among all connections, of its next one.
    fn due(&self) -> u64 {
        ((self.opened as f64 + self.phase) / self.share) as u64
    }
}

impl Clients {
    /// So many times as many clients as in the mix, for so many full handshakes.
    pub(crate) fn new(mix: &TrafficMix, scale: f64, full: u64) -> Self {
        let mut weights = weights(mix, scale);
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let kinds = [&mix.versions, &mix.groups, &mix.ciphers, &mix.protocols];
        if kinds.iter().any(|shares| shares.iter().count() > 1) {
            let part = (all * PART_SHARE).max(2.0 * all / full.max(1) as f64);
            weights = weights
                .into_iter()
                .flat_map(|(source, weight)| {
                    let parts = (weight / part).ceil().max(1.0);
                    std::iter::repeat_n((source, weight / parts), parts as usize)
                })
                .collect();
        }
        let mut offers = Offers::new(mix);
        // The heavy ones first: light ones even out what is left.
        weights.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let mut clients = Self {
            list: Vec::new(),
            profiles: Vec::new(),
            states: Vec::new(),
            fresh: BinaryHeap::new(),
            known: BinaryHeap::new(),
            quota: Quota::new([]),
            without_session: 0,
        };
        let mut phases = Steps::new(0.732_050_807_568_877);
        for (source, weight) in weights {
            let profile = offers.next(weight);
            let known = clients.profiles.iter().position(|known| *known == profile);
            let profile = known.unwrap_or_else(|| {
                clients.profiles.push(profile);
                clients.profiles.len() - 1
            });
            let share = weight / all;
            let state = ClientState { share, opened: 0, phase: phases.next(), sessions: Vec::new() };
            let number = clients.list.len() as u32;
            clients.list.push(ScriptClient { source, profile: profile as u32 });
            clients.fresh.push(Reverse((state.due(), number)));
            clients.states.push(state);
        }
        let mut shares = vec![0.0; clients.profiles.len()];
        for (client, state) in clients.list.iter().zip(&clients.states) {
            shares[client.profile as usize] += state.share;
        }
        clients.quota = Quota::new(shares);
        clients
    }

    /// The client that opens a connection now.
    pub(crate) fn next(&mut self, at_us: u64, resumes: bool) -> u32 {
        let due = |heap: &DueClients| heap.peek().map(|Reverse((due, _))| *due);
        let (known, fresh) = (due(&self.known), due(&self.fresh));
        let is_known = known.is_some_and(|known| resumes || fresh.is_none_or(|fresh| known < fresh));
        self.without_session += u64::from(resumes && !is_known);
        let heap = if is_known { &mut self.known } else { &mut self.fresh };
        let mut first: Vec<_> = std::iter::from_fn(|| heap.pop()).take(LOOKED_AT_MAX).collect();
        let (states, quota) = (&self.states, &self.quota);
        let order = |&at: &usize| {
            let Reverse((_, client)) = first[at];
            let state = &states[client as usize];
            let is_ready = !resumes || state.sessions.iter().any(|from_us| *from_us <= at_us);
            (is_ready, quota.lack(self.list[client as usize].profile as usize))
        };
        // Of those that are alike the one that is due first.
        let chosen = (0..first.len()).rev().max_by(|a, b| {
            let ((a_ready, a_lack), (b_ready, b_lack)) = (order(a), order(b));
            a_ready.cmp(&b_ready).then(a_lack.total_cmp(&b_lack))
        });
        let Reverse((_, client)) = first.swap_remove(chosen.unwrap_or_default());
        heap.extend(first);
        self.quota.give(self.list[client as usize].profile as usize);
        let state = &mut self.states[client as usize];
        state.opened += 1;
        // A ticket is used once, and each handshake brings the next one.
        if let Some(used) = state.sessions.iter().position(|from_us| *from_us <= at_us).filter(|_| resumes) {
            state.sessions.remove(used);
        }
        if state.sessions.len() < SESSIONS_MAX {
            state.sessions.push(at_us + SESSION_AFTER_US);
        }
        self.known.push(Reverse((state.due(), client)));
        client
    }
}

/// The source of each client, and its connections: as many as it takes to have the quantiles of the mix.
fn weights(mix: &TrafficMix, scale: f64) -> Vec<(u32, f64)> {
    let clients = (mix.clients.total() as f64 * scale).round();
    let clients = (clients as u32).clamp(1, CLIENTS_MAX);
    let weight = |at: u32| mix.clients.quantile((f64::from(at) + 0.5) / f64::from(clients));
    (0..clients).map(|source| (source, weight(source).unwrap_or(1).max(1) as f64)).collect()
}

/// What clients offer, so that each version, group, suite and protocol has its share.
#[derive(Debug)]
struct Offers {
    versions: (Vec<TlsVersion>, Quota),
    groups: (Vec<String>, Quota),
    ciphers: (Vec<String>, Quota),
    protocols: (Vec<Protocol>, Quota),
}

impl Offers {
    fn new(mix: &TrafficMix) -> Self {
        let names = |shares: &Shares, is_known: &dyn Fn(&str) -> bool| {
            let known: Vec<_> = shares.iter().filter(|(name, _)| is_known(name)).collect();
            let quota = Quota::new(known.iter().map(|(_, n)| *n as f64));
            (known.into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>(), quota)
        };
        let (versions, of_versions) = names(&mix.versions, &|name| version(name).is_some());
        let (protocols, of_protocols) = names(&mix.protocols, &|_| true);
        Self {
            versions: (versions.iter().filter_map(|name| version(name)).collect(), of_versions),
            groups: names(&mix.groups, &loadgen::knows_group),
            ciphers: names(&mix.ciphers, &loadgen::knows_cipher),
            protocols: (protocols.iter().map(|name| protocol(name)).collect(), of_protocols),
        }
    }

    fn next(&mut self, weight: f64) -> ClientProfile {
        let Self { versions, groups, ciphers, protocols } = self;
        let version = versions.1.next(weight, |_| true).map(|at| versions.0[at]);
        let is_12 = version == Some(TlsVersion::V12);
        let group = groups.1.next(weight, |at| !(is_12 && is_hybrid(&groups.0[at])));
        let cipher = ciphers.1.next(weight, |at| is_12 != is_of_13(&ciphers.0[at]));
        let protocol = protocols.1.next(weight, |_| true).map(|at| protocols.0[at]);
        ClientProfile {
            // A client of TLS 1.3 offers both.
            version: version.filter(|_| is_12),
            groups: group.map(|at| loadgen::groups_from(&groups.0[at], version)).unwrap_or_default(),
            ciphers: cipher.map(|at| loadgen::ciphers_from(&ciphers.0[at])).unwrap_or_default(),
            protocol: protocol.unwrap_or_default(),
        }
    }
}

fn version(name: &str) -> Option<TlsVersion> {
    match name {
        "TLSv1.3" => Some(TlsVersion::V13),
        "TLSv1.2" => Some(TlsVersion::V12),
        _ => None,
    }
}

fn protocol(name: &str) -> Protocol {
    if name == "h2" { Protocol::Http2 { streams: STREAMS } } else { Protocol::Http1 }
}

/// Whether a group is of a key exchange that only TLS 1.3 has.
fn is_hybrid(group: &str) -> bool {
    group.contains("MLKEM")
}

/// Whether a suite is of TLS 1.3: those have no key exchange in their name.
fn is_of_13(cipher: &str) -> bool {
    !cipher.contains("_WITH_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(counts: &[(&str, u64)]) -> Shares {
        Shares::new(counts.iter().map(|&(name, n)| (name.to_owned(), n)))
    }

    fn mix() -> TrafficMix {
        TrafficMix {
            clients: "1:100 5:20 800:1".parse().unwrap(),
            versions: shares(&[("TLSv1.3", 95), ("TLSv1.2", 5)]),
            groups: shares(&[("X25519MLKEM768", 60), ("x25519", 35), ("ffdhe2048", 5)]),
            protocols: shares(&[("h2", 70), ("http/1.1", 30)]),
            ..TrafficMix::default()
        }
    }

    #[test]
    fn offers_have_their_shares_although_one_client_makes_most_connections() {
        let mut clients = Clients::new(&mix(), 1.0, 400);
        let opened: Vec<ClientProfile> = (0..1_000)
            .map(|at| {
                let client = clients.next(at * 1_000_000, at % 3 > 0);
                clients.profiles[clients.list[client as usize].profile as usize].clone()
            })
            .collect();
        let share = |is_one: fn(&ClientProfile) -> bool| {
            opened.iter().filter(|profile| is_one(profile)).count() as f64 / 10.0
        };
        let old = share(|profile| profile.version == Some(TlsVersion::V12));
        let hybrid = share(|profile| profile.groups[0] == "X25519MLKEM768");
        let http2 = share(|profile| profile.protocol != Protocol::Http1);
        for (is, wanted) in [(old, 5.0), (hybrid, 100.0 * 60.0 / 95.0), (http2, 70.0)] {
            assert!((is - wanted).abs() < 1.0, "{is} % instead of {wanted} %");
        }
        let is_offered =
            |profile: &ClientProfile| profile.version.is_none() || !is_hybrid(&profile.groups[0]);
        assert!(clients.profiles.iter().all(is_offered), "TLS 1.2 has no hybrid group");
        let groups = loadgen::groups_from("secp384r1", Some(TlsVersion::V12));
        assert_eq!(groups, ["secp384r1", "X25519", "secp256r1"], "with the curves of certificates");
    }

    #[test]
    fn clients_are_as_unequal_as_they_were_and_resume_only_what_they_have() {
        let mut clients =
            Clients::new(&TrafficMix { clients: mix().clients, ..TrafficMix::default() }, 1.0, 300);
        let mut counts = vec![0_u64; clients.list.len()];
        assert_eq!(counts.len(), 121);
        for at in 0..1_000 {
            let resumes = at % 10 > 2;
            let client = clients.next(at * 50_000, resumes) as usize;
            assert!(!resumes || counts[client] > 0, "{client} has no session yet");
            counts[client] += 1;
        }
        assert_eq!(clients.without_session, 0);
        let most = counts.iter().max().unwrap();
        assert!((700..=830).contains(most), "{most}");
        assert!(counts.iter().filter(|n| **n > 0).count() > 100);
    }

    #[test]
    fn sessions_of_before_the_recording_are_counted() {
        let mut clients = Clients::new(&mix(), 1.0, 0);
        clients.next(0, true);
        assert_eq!(clients.without_session, 1);
    }
}
