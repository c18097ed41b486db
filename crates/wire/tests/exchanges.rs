//! What is counted of the requests on a connection.

mod recorded;

use records::metrics::ProxyCounter;
use wire::{WireCounter, WireOptions};

use recorded::{Counts, KEPT};

#[test]
fn requests_on_a_kept_connection_are_exchanges() {
    let mut counter = WireCounter::new(WireOptions::default());
    KEPT.pieces().iter().for_each(|piece| piece.count(&mut counter));
    counter.counted.seal();
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
