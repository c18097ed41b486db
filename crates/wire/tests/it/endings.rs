//! Who closes, and who stops reading.

use crate::recorded::{CAPTURES, Piece, totals};
use records::metrics::ProxyCounter as P;

const CLOSED_FIRST: [P; 4] = [P::ClosedByClient, P::ClosedByServer, P::ResetByClient, P::ResetByServer];

fn count<const N: usize>(pieces: &[Piece], counters: [P; N]) -> [u64; N] {
    let (totals, _) = totals(pieces);
    counters.map(|counter| totals[counter])
}

/// The first connection with TLS 1.3 up to its end, which is left out, and a segment of each end without payload.
fn open_connection() -> (Vec<Piece>, [Piece; 2]) {
    let mut pieces = CAPTURES[1].connections().swap_remove(0);
    let end = pieces.iter().position(|piece| piece.is_fin).expect("it ends with a FIN");
    pieces.truncate(end);
    let ends = [true, false].map(|is_client| {
        let last = pieces.iter().rfind(|piece| piece.is_from_client() == is_client).expect("both ends speak");
        let sequence = last.sequence.wrapping_add(last.payload.len() as u32);
        Piece { sequence, payload: Vec::new(), ..last.clone() }
    });
    (pieces, ends)
}

#[test]
fn the_end_that_closes_first_is_counted() {
    for (first, expected) in [
        ((0, false), [1, 0, 0, 0]),
        ((1, false), [0, 1, 0, 0]),
        ((0, true), [0, 0, 1, 0]),
        ((1, true), [0, 0, 0, 1]),
    ] {
        let (mut pieces, ends) = open_connection();
        let (end, is_reset) = first;
        pieces.push(Piece { is_fin: !is_reset, is_reset, window: 0, ..ends[end].clone() });
        // The peer resets what is closed already.
        pieces.push(Piece { is_reset: true, ..ends[1 - end].clone() });
        assert_eq!(count(&pieces, CLOSED_FIRST), expected, "{first:?}");
        assert_eq!(count(&pieces, [P::Closed, P::ClientWindowsFull, P::ServerWindowsFull]), [1, 0, 0]);
    }
    let (pieces, _) = open_connection();
    assert_eq!(count(&pieces, CLOSED_FIRST), [0; 4], "nobody has closed it");
}

#[test]
fn a_window_of_zero_counts_once_until_it_opens() {
    let (mut pieces, [client, server]) = open_connection();
    assert_eq!(count(&pieces, [P::ClientWindowsFull, P::ServerWindowsFull]), [0, 0]);
    for (end, window) in [(&client, 0), (&client, 0), (&server, 0), (&client, 9), (&client, 0), (&server, 0)]
    {
        pieces.push(Piece { window, ..end.clone() });
    }
    assert_eq!(count(&pieces, [P::ClientWindowsFull, P::ServerWindowsFull]), [2, 1]);
    let hello = pieces.iter().position(|piece| !piece.payload.is_empty()).expect("a ClientHello");
    for piece in &mut pieces {
        piece.window = u16::from(!piece.is_syn);
    }
    pieces.truncate(hello);
    assert_eq!(count(&pieces, [P::ClientWindowsFull, P::ServerWindowsFull]), [0, 0], "a SYN's says nothing");
}
