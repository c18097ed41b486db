//! Why handshakes failed, by the packets.

use crate::recorded::{CAPTURES, Piece, records};
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
