//! What the reader below gets: a journal of its own, in which each field stands once, with an entry that has it alone.
//!
//! That reader trusts every size that it meets, cannot seek, keeps all fields that it ever saw, and makes compressed
//! ones plain without a bound. So what it is given is whole, plain and of a bounded size.

use std::io;
use std::rc::Rc;

use systemd_journal_reader::JournalReader;

use super::feed::Feed;
use super::walk::ITEMS_AT;
use crate::layout::{INCOMPATIBLE_COMPACT, SIGNATURE, align8, kind};

/// So much goes through one, and what comes at once: the reader keeps a copy of it all.
const STREAM_BYTES_MAX: u64 = 256 << 10;

/// The reader wants at least this much of a header.
const HEADER_BYTES: usize = 240;
/// Where the payload of DATA objects begins in compact files.
const PAYLOAD_AT: usize = 72;

/// The stream, and the reader at its end.
pub(super) struct Stream {
    feed: Feed,
    reader: JournalReader<Feed>,
    /// The size of the stream so far.
    len: u64,
}

impl Stream {
    pub(super) fn new() -> io::Result<Self> {
        let feed = Feed::default();
        feed.extend(|out| {
            out.extend_from_slice(SIGNATURE);
            out.resize(HEADER_BYTES, 0);
            out[12..16].copy_from_slice(&INCOMPATIBLE_COMPACT.to_le_bytes());
            out[88..96].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
            // The reader stops at the end of the arena: this one never ends.
            out[96..104].copy_from_slice(&(1_u64 << 62).to_le_bytes());
        });
        Ok(Self { reader: JournalReader::new(feed.clone())?, feed, len: HEADER_BYTES as u64 })
    }

    /// Tells whether enough went through it.
    pub(super) fn is_full(&self) -> bool {
        self.len >= STREAM_BYTES_MAX
    }

    /// Gives the name and the value, as text, that the reader makes of a field `NAME=value`.
    pub(super) fn decode(&mut self, field: &[u8]) -> Option<(Rc<str>, Rc<str>)> {
        // A full one is replaced long before this fails.
        let Ok(place) = u32::try_from(self.len) else { return None };
        self.put(kind::DATA, PAYLOAD_AT, field);
        self.put(kind::ENTRY, ITEMS_AT, &place.to_le_bytes());
        self.reader.next_entry()?.fields.into_iter().next()
    }

    /// Adds an object whose payload begins so far behind its own beginning.
    fn put(&mut self, kind: u8, payload_at: usize, payload: &[u8]) {
        let size = (payload_at + payload.len()) as u64;
        self.feed.extend(|out| {
            let start = out.len();
            out.resize(start + payload_at, 0);
            out[start] = kind;
            out[start + 8..start + 16].copy_from_slice(&size.to_le_bytes());
            out.extend_from_slice(payload);
            out.resize(start + align8(size) as usize, 0);
        });
        self.len += align8(size);
    }
}
