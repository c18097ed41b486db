//! Bytes that hyper writes for a client, until TLS takes them.
//!
//! hyper writes slices. A long slice lies in a piece of a response as it was read from an upstream: such a piece is kept
//! until it is encrypted, and not copied.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;

/// Slices from here on are not copied, if they lie in a known piece.
const LENT_BYTES_MIN: usize = 32 << 10;
/// Plaintext of a full record of TLS (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;

/// The long pieces of responses that hyper has of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct LongPieces(Rc<RefCell<Vec<Bytes>>>);

/// Written bytes: copied ones, and pieces between them.
#[derive(Debug, Default)]
pub(crate) struct WrittenBytes {
    copied: Vec<u8>,
    /// Each with the number of copied bytes before it.
    lent: Vec<(usize, Bytes)>,
    lent_bytes: usize,
}

impl LongPieces {
    /// Notes a piece that hyper gets, if it is long.
    pub(crate) fn add(&self, piece: &Bytes) {
        if piece.len() >= LENT_BYTES_MIN {
            self.0.borrow_mut().push(piece.clone());
        }
    }

    /// Forgets a piece that hyper has written or dropped; `rest` is what is left at its end.
    pub(crate) fn remove(&self, rest: &Bytes) {
        let mut pieces = self.0.borrow_mut();
        if !pieces.is_empty() {
            pieces.retain(|piece| piece.as_ptr_range().end != rest.as_ptr_range().end);
        }
    }

    /// The part of a piece that a slice is.
    fn find(&self, slice: &[u8]) -> Option<Bytes> {
        let (slice_range, pieces) = (slice.as_ptr_range(), self.0.borrow());
        let holds = |piece: &&Bytes| {
            let range = piece.as_ptr_range();
            range.start <= slice_range.start && slice_range.end <= range.end
        };
        Some(pieces.iter().find(holds)?.slice_ref(slice))
    }
}

impl WrittenBytes {
    pub(crate) fn push(&mut self, slice: &[u8], pieces: &LongPieces) {
        let is_long = slice.len() >= LENT_BYTES_MIN;
        let Some(mut piece) = is_long.then(|| pieces.find(slice)).flatten() else {
            return self.copied.extend_from_slice(slice);
        };
        // Each part begins a record: what is before it is filled up to whole ones.
        let begun = (self.copied.len() - self.copied_before_last()) % RECORD_BYTES;
        let filling = piece.split_to((RECORD_BYTES - begun) % RECORD_BYTES);
        self.copied.extend_from_slice(&filling);
        self.lent_bytes += piece.len();
        self.lent.push((self.copied.len(), piece));
    }

    fn copied_before_last(&self) -> usize {
        self.lent.last().map_or(0, |(at, _)| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.copied.len() + self.lent_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in order; no part is empty.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let lent = self.lent.iter().flat_map(move |(at, piece)| {
            let before = &self.copied[from..*at];
            from = *at;
            [before, &**piece]
        });
        lent.chain([&self.copied[self.copied_before_last()..]]).filter(|part| !part.is_empty())
    }

    /// Drops all of it, and keeps memory for later bytes.
    pub(crate) fn clear(&mut self) {
        self.copied.clear();
        self.lent.clear();
        self.lent_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(len: usize) -> Bytes {
        (0..len).map(|n| n as u8).collect()
    }

    #[test]
    fn slices_of_known_pieces_are_lent_and_fill_records() {
        let (pieces, mut written) = (LongPieces::default(), WrittenBytes::default());
        let (first, second) = (piece(60_000), piece(40_000));
        pieces.add(&first);
        pieces.add(&second);
        let mut expected = Vec::new();
        for slice in [b"head", &first[10..], b"tail", &second[..39_000]] {
            written.push(slice, &pieces);
            expected.extend_from_slice(slice);
        }
        let parts: Vec<&[u8]> = written.parts().collect();
        assert_eq!((parts.concat(), written.len()), (expected, 99_000 - 2));
        assert_eq!(
            parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
            [RECORD_BYTES, 59_990 - (RECORD_BYTES - 4), RECORD_BYTES, 39_000 - (RECORD_BYTES - 4),]
        );
        assert!(first.as_ptr_range().contains(&parts[1].as_ptr()));
        written.clear();
        assert!(written.is_empty() && written.parts().next().is_none());
    }

    #[test]
    fn what_is_short_or_unknown_or_was_removed_is_copied() {
        let (pieces, mut written) = (LongPieces::default(), WrittenBytes::default());
        let (short, mut long) = (piece(LENT_BYTES_MIN - 1), piece(LENT_BYTES_MIN));
        pieces.add(&short);
        pieces.add(&long);
        written.push(&short, &pieces);
        written.push(&vec![0; LENT_BYTES_MIN], &pieces);
        let slice = long.clone();
        drop(long.split_to(LENT_BYTES_MIN));
        pieces.remove(&long);
        written.push(&slice, &pieces);
        assert_eq!(written.parts().count(), 1);
        assert_eq!(written.len(), 3 * LENT_BYTES_MIN - 1);
        assert!(pieces.0.borrow().is_empty());
    }
}
