//! The committed captures, in memory, and what is counted of them. `captures/record.sh` records them anew.

#![allow(dead_code, unreachable_pub, reason = "each test uses what it needs")]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;

use records::kinds::ConnectionRecord;
use records::metrics::{Counters, Dimension, ProxyCounter, TlsCounter, UsageCounter};
use wire::capture::{CaptureReader, Frame, LinkLayer};
use wire::packet::{Packet, Segment};
use wire::{WireCounter, WireOptions};

/// A committed capture, and what its clients and servers did.
#[derive(Clone, Copy, Debug)]
pub struct Capture {
    pub name: &'static str,
    pub counts: Counts,
}

/// What is counted of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub accepted: u64,
    pub full: u64,
    pub resumed: u64,
    pub failed: u64,
    /// Full handshakes whose client offered a session.
    pub refused: u64,
    /// Full handshakes with a `HelloRetryRequest`.
    pub retried: u64,
    pub unjudged: u64,
}

/// As `captures/record.sh` made them.
pub const CAPTURES: [Capture; 3] = [
    Capture {
        name: "tls12",
        counts: Counts { accepted: 8, full: 4, resumed: 4, refused: 1, ..Counts::NONE },
    },
    Capture {
        name: "tls13",
        counts: Counts { accepted: 12, full: 7, resumed: 5, refused: 1, retried: 1, ..Counts::NONE },
    },
    Capture { name: "failed", counts: Counts { accepted: 7, failed: 7, ..Counts::NONE } },
];

/// A connection with 100 requests.
pub const KEPT: Capture = Capture { name: "kept", counts: Counts { accepted: 1, full: 1, ..Counts::NONE } };

/// The servers' ports in the captures.
pub const PORTS: [u16; 3] = [24_431, 24_432, 24_433];

/// A segment that owns its payload.
#[derive(Clone)]
pub struct Piece {
    pub time_ns: u64,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub sequence: u32,
    pub acknowledged: Option<u32>,
    pub is_syn: bool,
    pub is_fin: bool,
    pub is_reset: bool,
    pub window: u16,
    pub payload: Vec<u8>,
    /// Bytes of the payload behind those, which the snap length cut off.
    pub cut_bytes: u32,
}

impl Counts {
    pub const NONE: Self =
        Self { accepted: 0, full: 0, resumed: 0, failed: 0, refused: 0, retried: 0, unjudged: 0 };

    pub fn of(counters: &Counters<ProxyCounter>, tls: &Counters<TlsCounter>) -> Self {
        Self {
            accepted: counters[ProxyCounter::Accepted],
            full: counters[ProxyCounter::HandshakesFull],
            resumed: counters[ProxyCounter::HandshakesResumed],
            failed: counters[ProxyCounter::HandshakesFailed],
            refused: tls[TlsCounter::FullRefused],
            retried: counters[ProxyCounter::HandshakesRetried],
            unjudged: counters[ProxyCounter::Unjudged],
        }
    }
}

impl Capture {
    pub fn path(self) -> PathBuf {
        PathBuf::from(format!("{}/tests/captures/{}.pcap", env!("CARGO_MANIFEST_DIR"), self.name))
    }

    pub fn reader(self) -> CaptureReader {
        CaptureReader::new(File::open(self.path()).expect("the capture is committed")).expect("a capture")
    }

    /// All its segments.
    pub fn pieces(self) -> Vec<Piece> {
        let (mut reader, mut pieces) = (self.reader(), Vec::new());
        while let Some(frame) = reader.next_frame().expect("the capture is whole") {
            let Packet::Tcp(segment) = Packet::parse(&frame) else { panic!("not TCP: {frame:?}") };
            assert_eq!(segment.payload.len(), segment.len as usize, "no segment is cut");
            pieces.push(Piece {
                time_ns: frame.time_ns,
                source: segment.source,
                destination: segment.destination,
                sequence: segment.sequence,
                acknowledged: segment.acknowledged,
                is_syn: segment.is_syn,
                is_fin: segment.is_fin,
                is_reset: segment.is_reset,
                window: segment.window,
                payload: segment.payload.to_vec(),
                cut_bytes: 0,
            });
        }
        pieces
    }

    /// The segments of each connection.
    pub fn connections(self) -> Vec<Vec<Piece>> {
        let mut connections: Vec<Vec<Piece>> = Vec::new();
        for piece in self.pieces() {
            match connections.iter_mut().find(|known| known[0].is_with(&piece)) {
                Some(known) => known.push(piece),
                None => connections.push(vec![piece]),
            }
        }
        connections
    }
}

/// The way tcpdump writes them, on one line.
impl fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, sequence, acknowledged, ref payload, .. } = *self;
        let flags = [(self.is_syn, "S"), (self.is_fin, "F"), (self.is_reset, "R")];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| *flag).collect();
        let (len, first) = (payload.len(), &payload[..payload.len().min(6)]);
        write!(
            formatter,
            "{source} > {destination} [{flags}] seq {sequence} ack {acknowledged:?} len {len} {first:?}"
        )
    }
}

impl Piece {
    /// Whether both are of one connection.
    pub fn is_with(&self, other: &Self) -> bool {
        let ends = [other.source, other.destination];
        ends.contains(&self.source) && ends.contains(&self.destination)
    }

    pub fn is_from_client(&self) -> bool {
        PORTS.contains(&self.destination.port())
    }

    pub fn count(&self, counter: &mut WireCounter) {
        self.count_in(counter, false);
    }

    /// The same, where this machine sent it or received it.
    pub fn count_in(&self, counter: &mut WireCounter, is_outgoing: bool) {
        let (time_ns, link) = (self.time_ns, LinkLayer::Ip);
        let frame = Frame { time_ns, interface: 0, is_outgoing, link, data: &[] };
        let segment = Segment {
            source: self.source,
            destination: self.destination,
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            is_syn: self.is_syn,
            is_fin: self.is_fin,
            is_reset: self.is_reset,
            window: self.window,
            payload: &self.payload,
            len: self.payload.len() as u32 + self.cut_bytes,
        };
        counter.segment(&frame, &segment);
    }
}

/// Counts segments, and then as many SYNs as there are connections, each from the port of one: whatever was not decided
/// before is given up.
pub fn count(pieces: &[Piece]) -> Counts {
    let (counters, tls) = totals(pieces);
    Counts::of(&counters, &tls)
}

/// The record of each connection that is over.
pub fn records(pieces: &[Piece]) -> Vec<ConnectionRecord> {
    let mut records = Vec::new();
    count_each(pieces, |counter| {
        // An interval has one of the connections that ended well, so that each segment is an interval.
        counter.counted.seal();
        records.append(&mut counter.counted.delta.connections);
    });
    records
}

/// What is counted of each value of a dimension, all services together.
pub fn usage(pieces: &[Piece], dimension: Dimension) -> BTreeMap<String, Counters<UsageCounter>> {
    let mut counter = count_each(pieces, |_| {});
    counter.counted.seal();
    let mut values: BTreeMap<String, Counters<UsageCounter>> = BTreeMap::new();
    for row in counter.counted.delta.tls.usage.iter().filter(|row| row.dimension == dimension) {
        values.entry(row.value.to_string()).or_default().add(&row.counters);
    }
    values
}

/// The totals of the counters.
pub fn totals(pieces: &[Piece]) -> (Counters<ProxyCounter>, Counters<TlsCounter>) {
    let mut counter = count_each(pieces, |_| {});
    counter.counted.seal();
    (counter.counted.delta.counters, counter.counted.delta.tls.counters)
}

fn count_each(pieces: &[Piece], mut each: impl FnMut(&mut WireCounter)) -> WireCounter {
    let mut counter = WireCounter::new(WireOptions { ports: PORTS.to_vec(), ..WireOptions::default() });
    let mut ends: Vec<Piece> = Vec::new();
    let last_ns = pieces.iter().map(|piece| piece.time_ns).max().unwrap_or_default();
    for piece in pieces {
        piece.count(&mut counter);
        each(&mut counter);
        if !ends.iter().any(|end| end.is_with(piece)) {
            let mut end = Piece { is_syn: true, is_fin: false, is_reset: false, ..piece.clone() };
            if !piece.is_from_client() {
                (end.source, end.destination) = (piece.destination, piece.source);
            }
            end.time_ns = last_ns + 1;
            end.sequence = piece.sequence.wrapping_add(0x4000_0000);
            (end.acknowledged, end.payload) = (None, Vec::new());
            ends.push(end);
        }
    }
    for end in &ends {
        end.count(&mut counter);
        each(&mut counter);
    }
    counter
}

/// Splits the payload of each segment into such parts, each of which begins so many bytes before the end of the one before.
pub fn split(pieces: &[Piece], part_bytes: usize, overlap_bytes: usize) -> Vec<Piece> {
    let parts = |piece: &Piece| {
        let starts = (0..piece.payload.len().max(1)).step_by(part_bytes);
        let part = |start: usize| {
            let end = (start + part_bytes).min(piece.payload.len());
            let from = start.saturating_sub(overlap_bytes);
            Piece {
                sequence: piece.sequence.wrapping_add(from as u32 + u32::from(piece.is_syn && from > 0)),
                payload: piece.payload[from..end].to_vec(),
                is_fin: piece.is_fin && end == piece.payload.len(),
                ..piece.clone()
            }
        };
        starts.map(part).collect::<Vec<_>>()
    };
    pieces.iter().flat_map(parts).collect()
}
