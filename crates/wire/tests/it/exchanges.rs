//! What is counted of the requests on a connection.

use records::metrics::ProxyCounter;
use wire::{WireCounter, WireOptions};

use crate::recorded::{Counts, KEPT, Piece};

/// What an interval counts of these segments.
fn counted(pieces: &[Piece]) -> WireCounter {
    let mut counter = WireCounter::new(WireOptions::default());
    for piece in pieces {
        piece.count(&mut counter);
    }
    counter.counted.seal();
    counter
}

#[test]
fn requests_on_a_kept_connection_are_exchanges() {
    let counter = counted(&KEPT.pieces());
    let delta = &counter.counted.delta;
    assert_eq!(Counts::of(&delta.counters, &delta.tls.counters), KEPT.counts);
    // The tickets came before the first request.
    assert_eq!(delta.counters[ProxyCounter::Exchanges], 100);
    // Requests and a goodbye; answers and two tickets, as tshark reads the lengths of their records.
    let sealed = [9 * 97 + 90 * 98 + 99 + 19, 100 * 169 + 2 * 282];
    let records = [101, 102];
    assert_eq!(delta.counters[ProxyCounter::BytesIn], sealed[0] - 17 * records[0]);
    assert_eq!(delta.counters[ProxyCounter::BytesOut], sealed[1] - 17 * records[1]);
}

#[test]
fn requests_behind_a_segment_that_was_cut_are_exchanges() {
    for is_from_client in [true, false] {
        let mut pieces = KEPT.pieces();
        // Of a long segment the kernel keeps the beginning.
        let mut with_data = pieces
            .iter_mut()
            .filter(|piece| piece.is_from_client() == is_from_client && !piece.payload.is_empty());
        let cut = with_data.nth(20).unwrap();
        cut.cut_bytes = cut.payload.split_off(60).len() as u32;
        let counter = counted(&pieces);
        let delta = &counter.counted.delta;
        assert_eq!(delta.counters[ProxyCounter::Exchanges], 100, "cut from the client: {is_from_client}");
        assert_eq!(delta.mix.distributions.bytes_out.total(), 100, "cut from the client: {is_from_client}");
    }
}

#[test]
fn a_suite_with_a_short_tag_adds_less_to_each_record() {
    let mut pieces = KEPT.pieces();
    let [of_longer, of_shorter] = [None, Some(0x1305_u16)].map(|suite| {
        if let Some(suite) = suite {
            let hello =
                pieces.iter_mut().find(|piece| !piece.is_from_client() && !piece.payload.is_empty()).unwrap();
            // Behind the headers of record and message, the version, the random value and the session identifier.
            let at = 5 + 4 + 2 + 32 + 1 + usize::from(hello.payload[43]);
            hello.payload[at..at + 2].copy_from_slice(&suite.to_be_bytes());
        }
        let counter = counted(&pieces);
        let counters = &counter.counted.delta.counters;
        [counters[ProxyCounter::BytesIn], counters[ProxyCounter::BytesOut]]
    });
    // 100 requests and a goodbye; 100 answers and two tickets.
    assert_eq!(of_shorter, [of_longer[0] + 8 * 101, of_longer[1] + 8 * 102]);
}
