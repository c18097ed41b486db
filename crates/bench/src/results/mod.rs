//! The result of a cell: one target under one case in one round.

mod folder;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use folder::{FolderError, ResultsFolder};

/// The result of a cell: a line of `cells.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The round, from 1.
    pub round: u32,
    /// The position of the target in the random order of the round, from 1.
    pub position: u32,
    pub target: String,
    pub case: String,
    /// When it began, in microseconds since 1970.
    pub began_us: u64,
    /// The requests per second that were asked of an open loop, of stages their mean; `None` for a closed loop.
    pub rate: Option<f64>,
    /// The figures of the load by their names in the catalogue (`docs/figures.md`), in their units; only those with a value.
    pub figures: BTreeMap<String, f64>,
    /// The requests that the target answered in its own turns; `None` without turns, when all count.
    pub answered_in_turns: Option<u64>,
    /// Resources of the target's processes in the measured part; `None` if unknown.
    pub target_usage: Option<ResourceUsage>,
    pub load_usage: ResourceUsage,
    /// Resources of the upstream; `None` if the target answers itself.
    pub upstream_usage: Option<ResourceUsage>,
    /// The state of the machine meanwhile.
    pub machine: MachineUsage,
    /// The negotiated parameters, checked on the wire before the load; `None` without TLS.
    pub negotiated: Option<NegotiatedParameters>,
    /// Percentiles of the response time in microseconds, ascending, as `(percentile, microseconds)`: the latency curve.
    pub response_curve: Vec<(f64, u64)>,
    /// Why figures of the cell are less certain than they seem, in words.
    pub doubts: Vec<Doubt>,
    /// The connections that were open at the end, each made in the measured part; `None` if that is not known.
    pub connections_kept: Option<u64>,
    /// Other remarks, in words; they invalidate no figure.
    pub remarks: Vec<String>,
    /// Why there are no figures, in words, with the target's last output.
    pub failure: Option<String>,
    /// The journal of the cell, relative to the folder; `None` if it was not kept.
    pub journal: Option<String>,
}

/// Resources of a process tree, including ended children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// The time over which it was measured, in microseconds; in turns the part of it in which requests were due.
    pub wall_us: u64,
    /// The largest sum of resident memory, in bytes; pages that processes share count for each.
    pub rss_peak: u64,
    /// The largest proportional set size, in bytes; 0 if the kernel hides it.
    pub pss_peak: u64,
    /// Resident memory before the first request, in bytes.
    pub rss_at_rest: u64,
    /// Proportional set size before the first request, in bytes; 0 if the kernel hides it.
    pub pss_at_rest: u64,
    /// Resident memory at the end, in bytes.
    pub rss_at_end: u64,
    pub threads_max: u64,
    /// The most open descriptors; 0 if the kernel hides them.
    pub descriptors_max: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
}

/// The state of the machine during a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUsage {
    /// The share of the cores' time that a hypervisor gave to others, 0 to 1.
    pub steal: f64,
    /// The CPU time of all other processes, as a share of the cores' time, 0 to 1.
    pub other: f64,
    /// How long the target's threads waited for a core, as a share of their CPU time; `None` if the kernel hides it.
    pub run_queue_delay: Option<f64>,
    /// The clock of the cores was lowered (thermal throttling).
    pub is_throttled: bool,
}

/// The negotiated parameters of a connection to the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiatedParameters {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: String,
    pub cipher: String,
    pub group: String,
    /// The application protocol; empty without ALPN.
    pub alpn: String,
}

/// Why figures of a cell are less certain than they seem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// The figures that it invalidates.
    pub spoils: DoubtScope,
    pub reason: String,
}

/// Which figures a doubt invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubtScope {
    /// Rates and latencies, such as when the generator is at its limit; the cost stays.
    RateAndLatency,
    /// Used resources, for example if they are too small to measure; rates and latencies stay.
    Usage,
    /// Every figure, such as when requests failed or another cipher was negotiated.
    All,
}

impl ResourceUsage {
    pub fn cpu_us(&self) -> u64 {
        self.user_us + self.system_us
    }
}

/// What identifies a cell: its round, its case and its target.
pub(crate) type CellKey<'a> = (u32, &'a str, &'a str);

impl CellResult {
    pub(crate) fn key(&self) -> CellKey<'_> {
        (self.round, &self.case, &self.target)
    }

    /// The requests that used resources are divided by; `None` if none was answered.
    pub(crate) fn answered(&self) -> Option<f64> {
        let all = || self.figures.get("requests.answered").copied();
        let answered = self.answered_in_turns.map(|answered| answered as f64).or_else(all);
        answered.filter(|answered| answered.is_finite() && *answered > 0.0)
    }

    /// Why no figure of this kind may be compared, in words: it failed, or a doubt spoils such figures.
    pub(crate) fn obstacle(&self, kind: DoubtScope) -> Option<&str> {
        let spoils = |doubt: &&Doubt| [kind, DoubtScope::All].contains(&doubt.spoils);
        let doubt = || self.doubts.iter().find(spoils).map(|doubt| &*doubt.reason);
        self.failure.as_deref().or_else(doubt)
    }
}

impl NegotiatedParameters {
    /// True if the parameters are as expected. Empty parts of `expected` match anything, and a resumed handshake of
    /// TLS 1.2 has no group. Libraries differ in the case of names.
    pub fn agrees_with(&self, expected: &Self) -> bool {
        let agrees =
            |found: &str, expected: &str| expected.is_empty() || found.eq_ignore_ascii_case(expected);
        agrees(&self.version, &expected.version)
            && agrees(&self.cipher, &expected.cipher)
            && (self.group.is_empty() || agrees(&self.group, &expected.group))
            && agrees(&self.alpn, &expected.alpn)
    }
}

impl fmt::Display for NegotiatedParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [&self.version, &self.cipher, &self.group, &self.alpn];
        let words: Vec<&str> =
            words.into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}
