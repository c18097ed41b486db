//! Segments of real handshakes, mangled as no network does it: whatever comes of that is counted consistently, and its memory
//! comes back.

use crate::recorded::{CAPTURES, PORTS, Piece, split};
use proptest::prelude::*;
use records::metrics::{Counters, ProxyCounter as P};
use wire::{WireCounter, WireOptions};

/// What parts of all connections may take, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Longer than an end, or a connection that never opened, is known.
const FORGOTTEN_NS: u64 = 61_000_000_000;

/// What is done to a segment.
#[derive(Clone, Copy, Debug)]
enum Mangling {
    Flip { byte: usize, bit: u8 },
    Shorten(usize),
    SnapAt(usize),
    MoveSequence(i8),
    Acknowledge(Option<u32>),
    TurnRound,
    Syn,
    Fin,
    Reset,
    Late(u32),
    OtherConnection(usize),
}

fn mangling() -> impl Strategy<Value = Mangling> {
    prop_oneof![
        4 => (any::<usize>(), 0..8_u8).prop_map(|(byte, bit)| Mangling::Flip { byte, bit }),
        2 => (0..600_usize).prop_map(Mangling::Shorten),
        2 => (0..600_usize).prop_map(Mangling::SnapAt),
        2 => any::<i8>().prop_map(Mangling::MoveSequence),
        1 => any::<Option<u32>>().prop_map(Mangling::Acknowledge),
        1 => Just(Mangling::TurnRound),
        1 => Just(Mangling::Syn),
        1 => Just(Mangling::Fin),
        1 => Just(Mangling::Reset),
        1 => any::<u32>().prop_map(Mangling::Late),
        1 => any::<usize>().prop_map(Mangling::OtherConnection),
    ]
}

fn mangle(mangling: Mangling, pieces: &mut [Piece], at: usize) {
    let other = match mangling {
        Mangling::OtherConnection(other) => pieces[other % pieces.len()].clone(),
        _ => pieces[at].clone(),
    };
    let piece = &mut pieces[at];
    match mangling {
        Mangling::Flip { byte, bit } => {
            if let Some(index) = byte.checked_rem(piece.payload.len()) {
                piece.payload[index] ^= 1 << bit;
            }
        }
        Mangling::Shorten(len) => piece.payload.truncate(len),
        Mangling::SnapAt(len) => {
            piece.cut_bytes = piece.payload.len().saturating_sub(len) as u32;
            piece.payload.truncate(len);
        }
        Mangling::MoveSequence(by) => piece.sequence = piece.sequence.wrapping_add_signed(i32::from(by)),
        Mangling::Acknowledge(acknowledged) => piece.acknowledged = acknowledged,
        Mangling::TurnRound => std::mem::swap(&mut piece.source, &mut piece.destination),
        Mangling::Syn => piece.is_syn = !piece.is_syn,
        Mangling::Fin => piece.is_fin = !piece.is_fin,
        Mangling::Reset => piece.is_reset = !piece.is_reset,
        Mangling::Late(ns) => piece.time_ns += u64::from(ns),
        Mangling::OtherConnection(_) => {
            (piece.source, piece.destination) = (other.source, other.destination);
        }
    }
}

/// Segments in another order, some of them twice or not at all, each mangling at its place.
fn mangled(mut pieces: Vec<Piece>, manglings: &[(usize, Mangling)], order: &[(u8, i8)]) -> Vec<Piece> {
    for &(at, mangling) in manglings {
        let at = at % pieces.len();
        mangle(mangling, &mut pieces, at);
    }
    let copies = |(at, piece): (usize, Piece)| {
        let (copies, late) = order.get(at % (4 * order.len())).copied().unwrap_or((1, 0));
        (0..copies).map(move |_| (at as i64 + i64::from(late), piece.clone())).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = pieces.into_iter().enumerate().flat_map(copies).collect();
    places.sort_by_key(|(place, _)| *place);
    places.into_iter().map(|(_, piece)| piece).collect()
}

/// What holds of the counts at every moment.
fn assert_consistent(totals: &Counters<P>) -> Result<(), TestCaseError> {
    let of = |counter| totals[counter];
    let judged = totals.sum(&[P::HandshakesFull, P::HandshakesResumed, P::HandshakesFailed, P::Unjudged]);
    prop_assert!(judged <= of(P::Accepted), "{:?}", totals);
    prop_assert!(of(P::Closed) <= of(P::Accepted), "{:?}", totals);
    let closed_first =
        totals.sum(&[P::ClosedByClient, P::ClosedByServer, P::ResetByClient, P::ResetByServer]);
    prop_assert!(closed_first <= of(P::Closed), "{:?}", totals);
    prop_assert!(
        totals.sum(&[P::BytesIn, P::BytesOut]) <= totals.sum(&[P::WireIn, P::WireOut]),
        "{:?}",
        totals
    );
    Ok(())
}

/// A SYN in each direction, which begins every connection anew: whatever was open before is over.
fn ends(pieces: &[Piece], time_ns: u64) -> Vec<Piece> {
    let mut ends = Vec::new();
    for (nth, piece) in pieces.iter().enumerate() {
        let sequence = piece.sequence.wrapping_add(0x4000_0000 + nth as u32);
        let syn = Piece {
            time_ns,
            sequence,
            acknowledged: None,
            is_syn: true,
            is_fin: false,
            is_reset: false,
            payload: Vec::new(),
            cut_bytes: 0,
            ..piece.clone()
        };
        let answer = Piece { source: syn.destination, destination: syn.source, ..syn.clone() };
        ends.extend([syn, answer]);
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mangled_handshakes_are_counted_consistently_and_give_their_memory_back(
        manglings in prop::collection::vec((any::<usize>(), mangling()), 0..60),
        order in prop::collection::vec((0..3_u8, -20..20_i8), 1..50),
        part_bytes in prop_oneof![20..200_usize, 200..2_000_usize],
        has_ports in any::<bool>(),
    ) {
        for capture in CAPTURES {
            let ports = if has_ports { PORTS.to_vec() } else { Vec::new() };
            let mut counter = WireCounter::new(WireOptions { ports, ..WireOptions::default() });
            let whole = capture.pieces();
            let pieces = mangled(split(&whole, part_bytes, 0), &manglings, &order);
            for piece in &pieces {
                piece.count(&mut counter);
                assert_consistent(&counter.counted.counters())?;
                prop_assert!(counter.flows() <= pieces.len() && counter.kept_bytes() <= KEPT_BYTES_MAX);
            }
            let last_ns = pieces.iter().chain(&whole).map(|piece| piece.time_ns).max().unwrap_or_default();
            for end in ends(&pieces, last_ns) {
                end.count(&mut counter);
            }
            // Whoever comes later finds them forgotten.
            for late in 1..3 {
                Piece { time_ns: last_ns + late * FORGOTTEN_NS, ..ends(&whole[..1], 0).swap_remove(0) }.count(&mut counter);
            }
            assert_consistent(&counter.counted.counters())?;
            let totals = &counter.counted.counters();
            prop_assert_eq!(totals[P::Closed], totals[P::Accepted]);
            prop_assert_eq!((counter.flows(), counter.kept_bytes()), (1, 0));
        }
    }
}
