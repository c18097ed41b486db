//! The mix of a traffic.

use records::values::{AgeCounts, MixDistributions, ValueCounts};
use serde::{Deserialize, Serialize};

/// Parts of a second in which arrivals are counted.
pub const TENTHS: usize = 10;

/// What the sizes of requests and responses are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// Bodies.
    #[default]
    Bodies,
    /// Bodies of responses alone: logs do not have those of requests.
    Responses,
    /// All plaintext, with the heads of requests and responses.
    Plaintext,
}

/// What a traffic was like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficMix {
    /// What it was made from, in words.
    pub source: String,
    pub sizes: Sizes,
    /// From the begin to the end.
    pub seconds: Vec<Second>,
    /// Connections that were open at the begin.
    pub open: u64,
    /// Full handshakes that a setting of the server kept from resuming: with resumption off, or of a session that its
    /// cache had lost. Their clients offer a session, and the server of the load decides.
    pub would_resume: u64,
    /// Those that are empty are not known.
    pub distributions: MixDistributions,
    /// Connections of a client.
    pub clients: ValueCounts,
    /// Ages of the tickets that resumed; empty if not known.
    pub ages: AgeCounts,
    /// Handshakes by version, group, cipher suite and application protocol, by the names of records.
    pub versions: Shares,
    pub groups: Shares,
    pub ciphers: Shares,
    pub protocols: Shares,
    /// Requests by method; empty if not known.
    pub methods: Shares,
    /// Requests by route, such as `shop.example/static`; empty unless asked for.
    pub routes: Shares,
}

/// What began in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// Handshakes, full and resumed.
    pub full: u64,
    pub resumed: u64,
    /// Connections by tenths of the second.
    pub connections: [u64; TENTHS],
    /// Requests in the same way.
    pub requests: [u64; TENTHS],
}

/// Counts by name, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares(Vec<(String, u64)>);

impl Shares {
    pub fn new(counts: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut counts: Vec<_> = counts.into_iter().filter(|(_, n)| *n > 0).collect();
        counts.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
        Self(counts)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, n)| (&**name, *n))
    }

    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// The share of a name, from 0 to 1.
    pub fn share(&self, name: &str) -> f64 {
        let n = self.0.iter().find(|(known, _)| known == name).map_or(0, |(_, n)| *n);
        n as f64 / self.total().max(1) as f64
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Second {
    pub fn all_connections(&self) -> u64 {
        self.connections.iter().sum()
    }

    pub fn all_requests(&self) -> u64 {
        self.requests.iter().sum()
    }
}

impl TrafficMix {
    pub fn connections(&self) -> u64 {
        self.seconds.iter().map(Second::all_connections).sum()
    }

    pub fn requests(&self) -> u64 {
        self.seconds.iter().map(Second::all_requests).sum()
    }

    /// Full and resumed handshakes.
    pub fn handshakes(&self) -> [u64; 2] {
        self.seconds
            .iter()
            .fold([0; 2], |[full, resumed], second| [full + second.full, resumed + second.resumed])
    }

    /// The share of full handshakes that would resume at a server of other settings, from 0 to 1.
    pub(crate) fn would_resume_share(&self) -> f64 {
        let [full, _] = self.handshakes();
        self.would_resume.min(full) as f64 / full.max(1) as f64
    }

    /// The share of handshakes that are resumed, from 0 to 1; `None` without handshakes.
    pub fn resumed_share(&self) -> Option<f64> {
        let [full, resumed] = self.handshakes();
        (full + resumed > 0).then(|| resumed as f64 / (full + resumed) as f64)
    }
}
