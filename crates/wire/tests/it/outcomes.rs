//! Why handshakes failed, by the packets.

use crate::recorded::{CAPTURES, Counts, Piece, count, records};
use records::kinds::ConnectionOutcome as Outcome;

/// Longer than a server that does not wait takes to close, in nanoseconds.
const WAIT_NS: u64 = 3_000_000_000;

#[test]
fn failures_have_the_causes_that_the_clients_gave_them() {
    let outcomes: Vec<_> = records(&CAPTURES[2].pieces()).iter().map(|record| record.outcome).collect();
    let expected = [
        Outcome::HandshakeAlert,
        Outcome::HandshakeAlert,
        Outcome::NotTls,
        Outcome::Incompatible,
        Outcome::Incompatible,
        Outcome::HandshakeEof,
        Outcome::HandshakeEof,
    ];
    assert_eq!(outcomes, expected);
}

/// A connection without a byte of payload that the server closes first, after this time, with what each end sends then.
fn closed_by_the_server(after_ns: u64) -> Vec<Piece> {
    let connections = CAPTURES[2].connections();
    let is_silent = |pieces: &&Vec<Piece>| pieces.iter().all(|piece| piece.payload.is_empty());
    let mut pieces = connections.iter().find(is_silent).expect("a client left without a byte")[..3].to_vec();
    assert_eq!([0, 1, 2].map(|at| pieces[at].is_syn), [true, true, false]);
    let time_ns = pieces[2].time_ns + after_ns;
    let of_server =
        Piece { time_ns, sequence: pieces[1].sequence.wrapping_add(1), is_syn: false, ..pieces[1].clone() };
    let of_client = Piece { time_ns: time_ns + 1_000, ..pieces[2].clone() };
    pieces.extend([of_server, of_client].map(|piece| Piece { is_fin: true, ..piece }));
    pieces
}

#[test]
fn a_server_that_closes_after_a_while_has_given_up_waiting() {
    for (after_ns, outcome) in [(WAIT_NS, Outcome::HandshakeTimeout), (1_000, Outcome::HandshakeOther)] {
        let records = records(&closed_by_the_server(after_ns));
        assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [outcome], "{records:?}");
    }
}

/// A connection whose client offers early data, with these records of the server behind its flight, before the client's
/// `Finished`.
fn with_early_data(records: &[u16]) -> Vec<Piece> {
    let connections = CAPTURES[1].connections();
    let has_early_data = |pieces: &&Vec<Piece>| {
        let hello = pieces.iter().find(|piece| !piece.payload.is_empty()).unwrap();
        // A record of application data ends the segment of the `ClientHello`.
        hello.payload[hello.payload.len() - 40..].starts_with(&[23, 3, 3, 0, 35])
    };
    let pieces = connections.iter().find(has_early_data).expect("a client offers early data");
    let finished =
        pieces.iter().rposition(|piece| piece.is_from_client() && !piece.payload.is_empty()).unwrap();
    let flight = &pieces[finished - 2];
    assert!(!flight.is_from_client() && !flight.payload.is_empty());
    let mut sequence = flight.sequence.wrapping_add(flight.payload.len() as u32);
    let mut with = pieces[..finished].to_vec();
    for &len in records {
        let payload = [&[23, 3, 3][..], &len.to_be_bytes(), &vec![7; len.into()]].concat();
        with.push(Piece { sequence, payload, ..flight.clone() });
        sequence = sequence.wrapping_add(u32::from(len) + 5);
    }
    let close = |is_fin| Piece { sequence, is_fin, is_reset: !is_fin, payload: Vec::new(), ..flight.clone() };
    with.extend([close(true), pieces[finished].clone(), close(false)]);
    with
}

#[test]
fn a_server_that_answers_early_data_and_closes_has_not_failed() {
    const GOODBYE_BYTES: u16 = 19;
    let answered = count(&with_early_data(&[249, GOODBYE_BYTES]));
    assert_eq!(answered, Counts { accepted: 1, resumed: 1, ..Counts::NONE });
    let refused = count(&with_early_data(&[GOODBYE_BYTES]));
    assert_eq!(refused, Counts { accepted: 1, failed: 1, ..Counts::NONE }, "an alert instead of an answer");
}
