//! The log of another terminator in the summary.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::runs::Run;
use records::metrics::{ProxyCounter, labels};
use records::text::quantity::{counted, grouped};
use records::values::LogFigure;

/// The log of another terminator that was counted.
#[derive(Clone, Debug, Serialize)]
pub struct LogSummary {
    /// The terminator, such as `haproxy`.
    pub terminator: String,
    /// Resolution of its times, in microseconds: shorter times count as this much.
    pub resolution_us: u64,
    /// What became of its lines; absent in recordings from before they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCounts>,
    /// What became of packets, if these were counted instead of a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketCounts>,
    /// Figures that the log does not have, each with the reason: their values are 0 and meaningless.
    pub absent: Vec<String>,
    /// The same figures, also those of which no reason is known.
    #[serde(skip)]
    pub lacks: Vec<LogFigure>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct LineCounts {
    pub read: u64,
    /// Lines that could not be parsed and count nothing.
    pub unreadable: u64,
    /// Lines much earlier than a line before them; they count at the time of that line.
    pub out_of_order: u64,
    /// Lines that did not arrive; `null` if the log does not show this.
    pub lost: Option<u64>,
}

impl fmt::Display for LineCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, unreadable, out_of_order, lost } = self;
        write!(f, "{read} read, {unreadable} of them unreadable, {out_of_order} out of order, ")?;
        match lost {
            Some(lost) => write!(f, "{lost} lost"),
            None => f.write_str("how many were lost is not known"),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct PacketCounts {
    /// TCP packets that were read.
    pub read: u64,
    /// Packets that were dropped on their way to us, as far as that shows.
    pub lost: u64,
    /// Handshakes that cannot be judged, because a part of them was not captured.
    pub unjudged: u64,
    /// Connections by the end that closed first, and how.
    pub closed_first: BTreeMap<&'static str, u64>,
    /// Times that an end stopped reading, by the end.
    pub windows_full: BTreeMap<&'static str, u64>,
    pub quic: QuicCounts,
}

/// QUIC, which is not judged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QuicCounts {
    /// Pairs of addresses and ports.
    pub connections: u64,
    pub packets: u64,
    /// Payload of UDP, of both directions.
    pub bytes: u64,
}

impl fmt::Display for PacketCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, lost, unjudged, .. } = self;
        write!(f, "{} read, {} lost; {}", grouped(*read), grouped(*lost), counted(*unjudged, "handshake"))?;
        f.write_str(" not judged")
    }
}

fn packet_counts(run: &Run) -> Option<PacketCounts> {
    let totals = run.proxy()?.totals();
    let count = |(label, counter)| (label, totals[counter]);
    run.other_terminator().filter(|began| began.is_of_packets()).map(|_| PacketCounts {
        read: totals[ProxyCounter::Packets],
        lost: totals[ProxyCounter::PacketsLost],
        unjudged: totals[ProxyCounter::Unjudged],
        closed_first: labels::first_closes().map(count).collect(),
        windows_full: labels::full_windows().map(count).collect(),
        quic: QuicCounts {
            connections: totals[ProxyCounter::QuicConnections],
            packets: totals[ProxyCounter::QuicPackets],
            bytes: totals[ProxyCounter::QuicBytes],
        },
    })
}

pub(super) fn of(run: &Run) -> Option<LogSummary> {
    let began = run.other_terminator()?;
    Some(LogSummary {
        terminator: began.log.clone(),
        resolution_us: began.log_resolution_us,
        lines: line_counts(run),
        packets: packet_counts(run),
        absent: run.absent_figures(),
        lacks: LogFigure::ALL.into_iter().map(|(it, _)| it).filter(|it| run.absent(*it).is_some()).collect(),
    })
}

fn line_counts(run: &Run) -> Option<LineCounts> {
    let totals = run.proxy()?.totals();
    let lost = Some(totals[ProxyCounter::LinesLost]);
    let counts = LineCounts {
        read: totals[ProxyCounter::LinesRead],
        unreadable: totals[ProxyCounter::LinesUnreadable],
        out_of_order: totals[ProxyCounter::LinesOutOfOrder],
        lost: lost.filter(|_| run.absent(LogFigure::LostLines).is_none()),
    };
    (counts.read > 0).then_some(counts)
}
