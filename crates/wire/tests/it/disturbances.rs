//! Captures that are disturbed as networks, offload and captures disturb them: the counts are the same, or what is missing
//! is said to be missing. *Incomplete* is never *failed*.

use crate::recorded::{CAPTURES, Counts, KEPT, Piece, count, records, split, totals};
use proptest::prelude::*;
use records::metrics::ProxyCounter;

/// Payload that offload merges into one segment, in bytes.
const OFFLOAD_BYTES_MAX: usize = 64 << 10;
/// By how many places a segment may be late.
const LATE_PLACES_MAX: usize = 8;
/// The share of segments that a capture loses, of 100.
const LOST_PERCENT: u32 = 2;

/// The time between two segments, in nanoseconds: nobody reorders segments that are seconds apart.
const BETWEEN_NS: u64 = 10_000;

/// Gives times to the segments in their new order.
fn captured_in_this_order(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let mut time_ns = pieces.first().map_or(0, |piece| piece.time_ns);
    for piece in &mut pieces {
        piece.time_ns = time_ns;
        time_ns += BETWEEN_NS;
    }
    pieces
}

/// Reorders: each segment is late by so many places. A SYN is not, and so begins its connection.
fn reordered(pieces: &[Piece], late: &[usize]) -> Vec<Piece> {
    let late = |at: usize| if pieces[at].is_syn { 0 } else { late[at % late.len()] };
    let mut places: Vec<_> = (0..pieces.len()).map(|at| (at + late(at), at)).collect();
    places.sort_unstable();
    captured_in_this_order(places.into_iter().map(|(_, at)| pieces[at].clone()).collect())
}

fn duplicated(pieces: &[Piece], is_twice: &[bool]) -> Vec<Piece> {
    let twice =
        |(at, piece): (usize, &Piece)| vec![piece.clone(); if is_twice[at % is_twice.len()] { 2 } else { 1 }];
    pieces.iter().enumerate().flat_map(twice).collect()
}

/// Merges segments of one direction that follow each other, as offload does.
fn merged(pieces: &[Piece]) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        let flags = [piece.is_syn, piece.is_reset];
        match merged.iter_mut().rev().find(|last| last.is_with(piece)) {
            Some(last)
                if last.source == piece.source
                    && flags == [false; 2]
                    && !last.is_syn
                    && !last.is_fin
                    && last.sequence.wrapping_add(last.payload.len() as u32) == piece.sequence
                    && last.payload.len() + piece.payload.len() <= OFFLOAD_BYTES_MAX =>
            {
                last.payload.extend(&piece.payload);
                (last.is_fin, last.acknowledged) = (piece.is_fin, piece.acknowledged);
            }
            _ => merged.push(piece.clone()),
        }
    }
    merged
}

/// The segments of the first connection that is not judged, if it is not judged alone either.
fn unjudged_connection(pieces: &[Piece]) -> Option<Vec<Piece>> {
    let of = |first: &Piece| pieces.iter().filter(|piece| piece.is_with(first)).cloned().collect::<Vec<_>>();
    let mut openings = pieces.iter().filter(|piece| piece.is_syn && piece.acknowledged.is_none());
    openings.find_map(|first| Some(of(first)).filter(|pieces| count(pieces).unjudged > 0))
}

/// Asserts that these segments, of one connection, are counted as the whole connection is, or are said to be incomplete.
fn assert_true_or_unjudged(whole: Counts, pieces: &[Piece]) {
    let counts = count(pieces);
    let kinds = |counts: Counts| [counts.full, counts.resumed, counts.failed];
    if counts.accepted == 0 {
        // Nothing says that it is a new connection.
        let is_hello = |piece: &Piece| piece.is_from_client() && piece.payload.starts_with(&[22, 3, 1]);
        assert!(!pieces.iter().any(is_hello), "a ClientHello makes a connection");
        assert_eq!(counts, Counts::NONE);
    } else if counts.unjudged > 0 {
        assert_eq!(counts, Counts { accepted: 1, unjudged: 1, ..Counts::NONE }, "{pieces:#?}");
    } else {
        assert_eq!((counts.accepted, kinds(counts)), (1, kinds(whole)), "{pieces:#?} {:?}", records(pieces));
        assert!(counts.retried <= whole.retried && counts.refused <= whole.refused, "{pieces:#?}");
    }
}

#[test]
fn undisturbed_captures_are_counted_as_they_were_made() {
    for capture in CAPTURES {
        assert_eq!(count(&capture.pieces()), capture.counts, "{}", capture.name);
        let connections = capture.connections();
        assert_eq!(connections.len() as u64, capture.counts.accepted);
        for connection in connections {
            let Counts { accepted, full, resumed, failed, unjudged, .. } = count(&connection);
            assert_eq!((accepted, full + resumed + failed, unjudged), (1, 1, 0));
        }
    }
}

#[test]
fn single_bytes_and_offloaded_segments_change_no_count() {
    for capture in CAPTURES {
        let pieces = capture.pieces();
        for (disturbed, how) in [
            (split(&pieces, 1, 0), "single bytes"),
            (split(&pieces, 7, 5), "overlapping"),
            (merged(&split(&pieces, 100, 0)), "merged again"),
            (merged(&pieces), "merged"),
            (duplicated(&split(&pieces, 1, 0), &[true]), "single bytes, each twice"),
        ] {
            assert_eq!(count(&disturbed), capture.counts, "{} in {how}", capture.name);
        }
    }
}

#[test]
fn a_capture_that_begins_or_ends_within_a_connection_makes_no_failure() {
    for connection in CAPTURES.iter().flat_map(|capture| capture.connections()) {
        let whole = count(&connection);
        for at in 0..connection.len() {
            assert_true_or_unjudged(whole, &connection[at..]);
            assert_true_or_unjudged(whole, &connection[..at]);
        }
    }
}

#[test]
fn a_snap_length_makes_no_failure() {
    let cut = |piece: &Piece, snap_bytes: usize| {
        let mut payload = piece.payload.clone();
        payload.truncate(snap_bytes);
        let cut_bytes = (piece.payload.len() - payload.len()) as u32;
        Piece { payload, cut_bytes, ..piece.clone() }
    };
    for connection in CAPTURES.iter().flat_map(|capture| capture.connections()) {
        let whole = count(&connection);
        for snap_bytes in (0..700).step_by(7) {
            let pieces: Vec<_> = connection.iter().map(|piece| cut(piece, snap_bytes)).collect();
            assert_true_or_unjudged(whole, &pieces);
        }
    }
}

#[test]
fn one_lost_segment_makes_no_failure() {
    for connection in CAPTURES.iter().flat_map(|capture| capture.connections()) {
        let whole = count(&connection);
        // What TLS adds, in bytes.
        let added = |pieces: &[Piece]| {
            let (counted, _) = totals(pieces);
            let sum = |counters: [ProxyCounter; 2]| counted.sum(&counters);
            let is_judged = counted[ProxyCounter::Unjudged] == 0;
            let plain = sum([ProxyCounter::BytesIn, ProxyCounter::BytesOut]);
            is_judged.then(|| sum([ProxyCounter::WireIn, ProxyCounter::WireOut]) - plain)
        };
        let of_whole = added(&connection);
        for at in 0..connection.len() {
            let mut lossy = connection.clone();
            lossy.remove(at);
            assert_true_or_unjudged(whole, &lossy);
            let of_lossy = added(&lossy);
            assert!(of_lossy.is_none() || of_lossy <= of_whole, "{of_lossy:?} of {of_whole:?} without {at}");
        }
    }
}

#[test]
fn a_lost_flight_of_the_server_makes_no_failure_however_much_follows() {
    let is_flight = |piece: &Piece| !piece.is_from_client() && !piece.payload.is_empty();
    let mut lossy = KEPT.pieces();
    lossy.remove(lossy.iter().position(is_flight).unwrap());
    // More pieces than may wait for what is missing.
    let lossy = split(&lossy, 50, 0);
    assert_eq!(count(&lossy), Counts { accepted: 1, unjudged: 1, ..Counts::NONE });
}

#[test]
fn one_late_segment_changes_no_count() {
    for connection in CAPTURES.iter().flat_map(|capture| capture.connections()) {
        let whole = count(&connection);
        for from in 0..connection.len() {
            for to in from + 1..connection.len().min(from + LATE_PLACES_MAX + 1) {
                let mut late = connection.clone();
                let piece = late.remove(from);
                late.insert(to, piece);
                let late = captured_in_this_order(late);
                assert_eq!(count(&late), whole, "from {from} to {to}: {late:#?}");
            }
        }
    }
}

/// Nobody checks sequence numbers: those of a client that makes them up may be ahead of each other by two GiB, again and again.
#[test]
fn missing_bytes_of_made_up_sequence_numbers_are_added_up() {
    let connection = CAPTURES[1].connections().swap_remove(0);
    let [syn, syn_ack] = [0, 1].map(|at| connection[at].clone());
    let next = syn.sequence.wrapping_add(1);
    let far = 0x7000_0000;
    // It says to have read what the server has not sent.
    let acknowledged = Some(syn_ack.sequence.wrapping_add(100));
    let byte = |sequence| Piece { sequence, acknowledged, is_syn: false, payload: vec![7], ..syn.clone() };
    let pieces = [
        syn_ack,
        byte(next.wrapping_add(1)),
        byte(next.wrapping_add(far)),
        Piece { sequence: next.wrapping_sub(far + 1), acknowledged: Some(1), ..syn.clone() },
        byte(next.wrapping_add(far).wrapping_add(far)),
    ];
    let (counted, _) = totals(&pieces);
    assert_eq!(counted[ProxyCounter::WireIn], 3 * u64::from(far) + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn segments_out_of_order_change_no_count(
        late in prop::collection::vec(0..=LATE_PLACES_MAX, 1..300),
        twice in prop::collection::vec(prop::bool::weighted(0.1), 1..300),
        part_bytes in prop_oneof![1..40_usize, 40..2_000_usize],
        overlap_bytes in 0..40_usize,
    ) {
        for capture in CAPTURES {
            let pieces = split(&capture.pieces(), part_bytes, overlap_bytes);
            let disturbed = reordered(&duplicated(&pieces, &twice), &late);
            let counts = count(&disturbed);
            prop_assert_eq!(counts, capture.counts, "{}: {:#?}", capture.name, unjudged_connection(&disturbed));
        }
    }

    #[test]
    fn connections_that_lost_segments_are_judged_truly_or_not_at_all(
        lost in prop::collection::vec(prop::bool::weighted(f64::from(LOST_PERCENT) / 100.0), 1..300),
        late in prop::collection::vec(0..=LATE_PLACES_MAX, 1..300),
        part_bytes in 20..2_000_usize,
    ) {
        for capture in CAPTURES {
            let pieces = split(&capture.pieces(), part_bytes, 0);
            let is_lost = |at: usize| lost[at % lost.len()];
            let (mut left, mut lossy) = (Vec::new(), Vec::new());
            for (at, piece) in pieces.iter().enumerate() {
                if is_lost(at) { lossy.push(piece.clone()) } else { left.push(piece.clone()) }
            }
            let counts = count(&reordered(&left, &late));
            // Connections that lost nothing are counted, and all others are counted truly or said to be incomplete.
            let is_whole = |connection: &Vec<Piece>| !lossy.iter().any(|piece| piece.is_with(&connection[0]));
            let whole: Vec<_> = capture.connections().into_iter().filter(is_whole).map(|pieces| count(&pieces)).collect();
            let sum = |of: fn(&Counts) -> u64| whole.iter().map(of).sum::<u64>();
            let judged = counts.full + counts.resumed + counts.failed;
            prop_assert_eq!(judged + counts.unjudged, counts.accepted);
            prop_assert!(counts.accepted <= capture.counts.accepted);
            prop_assert!((sum(|counts| counts.full)..=capture.counts.full).contains(&counts.full), "{:?}", counts);
            prop_assert!((sum(|counts| counts.resumed)..=capture.counts.resumed).contains(&counts.resumed), "{:?}", counts);
            prop_assert!((sum(|counts| counts.failed)..=capture.counts.failed).contains(&counts.failed), "{:?}", counts);
            prop_assert!(counts.unjudged <= capture.counts.accepted - whole.len() as u64);
        }
    }

    #[test]
    fn a_connection_that_lost_segments_is_judged_truly_or_not_at_all(
        lost in prop::collection::vec(prop::bool::weighted(0.1), 1..100),
        late in prop::collection::vec(0..=LATE_PLACES_MAX, 1..100),
        part_bytes in 20..2_000_usize,
    ) {
        for connection in CAPTURES.iter().flat_map(|capture| capture.connections()) {
            let pieces = split(&connection, part_bytes, 0);
            let is_left = |&(at, _): &(usize, Piece)| !lost[at % lost.len()];
            let left: Vec<_> = pieces.into_iter().enumerate().filter(is_left).map(|(_, piece)| piece).collect();
            assert_true_or_unjudged(count(&connection), &reordered(&left, &late));
        }
    }
}
