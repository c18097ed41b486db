//! What clients offer besides sessions.

use crate::recorded::{CAPTURES, Capture, Piece, totals};
use records::metrics::TlsCounter;

/// Handshakes with early data offered, and with ECH.
fn offers(pieces: &[Piece]) -> [u64; 2] {
    let (_, tls) = totals(pieces);
    [TlsCounter::EarlyDataOffered, TlsCounter::EchOffered].map(|counter| tls[counter])
}

/// Gives every client's `extended_master_secret`, which is empty, the number of ECH.
fn with_ech(mut pieces: Vec<Piece>) -> Vec<Piece> {
    for piece in pieces.iter_mut().filter(|piece| piece.is_from_client()) {
        if let Some(at) = piece.payload.windows(4).position(|bytes| bytes == [0, 23, 0, 0]) {
            piece.payload[at..at + 2].copy_from_slice(&[0xfe, 0x0d]);
        }
    }
    pieces
}

#[test]
fn early_data_and_ech_count_in_complete_handshakes() {
    let [tls12, tls13, failed] = CAPTURES.map(Capture::pieces);
    assert_eq!(offers(&tls13), [1, 0], "as captures/record.sh made them");
    assert_eq!(offers(&tls12), [0, 0]);
    assert_eq!(offers(&with_ech(tls13)), [1, CAPTURES[1].counts.accepted]);
    assert_eq!(offers(&with_ech(failed)), [0, 0]);
}
