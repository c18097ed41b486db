//! What the reader below gets: a journal of its own, made of fields, and of an entry for each few of them.
//!
//! That reader trusts every size that it meets, cannot seek, keeps all fields that it ever saw, makes compressed ones
//! plain without a bound, and makes a map of all fields for each entry. So it is given a stream in which a field stands
//! once, whole, plain and of a bounded size, and an entry of its own has only those that came since the one before it.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use systemd_journal_reader::JournalReader;

use super::feed::Feed;
use super::walk::ITEMS_AT;
use crate::layout::{INCOMPATIBLE_COMPACT, SIGNATURE, align8, kind};

/// Another stream is begun once so much went through one: offsets in it have 32 bits.
const STREAM_BYTES_MAX: u64 = 1 << 30;

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

/// The name and value of fields, the latter as text.
pub(super) type Texts = HashMap<Rc<str>, Rc<str>>;

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

    pub(super) fn is_full(&self) -> bool {
        self.len >= STREAM_BYTES_MAX
    }

    /// Hands a field to the reader that `write` appends, as `NAME=value`, if it does.
    ///
    /// Gives where it lies in the stream, and what `look` makes of it.
    pub(super) fn put<T>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<Option<()>>,
        look: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<Option<(u32, T)>> {
        // The stream is replaced long before this fails.
        let Ok(place) = u32::try_from(self.len) else { return Ok(None) };
        let len = &mut self.len;
        self.feed.extend(|out| {
            let start = out.len();
            out.resize(start + PAYLOAD_AT, 0);
            let written = write(out);
            if !matches!(written, Ok(Some(()))) {
                out.truncate(start);
                return written.map(|_| None);
            }
            let size = out.len() - start;
            let looked = look(&out[start + PAYLOAD_AT..]);
            out[start] = kind::DATA;
            out[start + 8..start + 16].copy_from_slice(&(size as u64).to_le_bytes());
            out.resize(start + align8(size as u64) as usize, 0);
            *len += align8(size as u64);
            Ok(Some((place, looked)))
        })
    }

    /// Gives what the reader makes of fields that were put, all of different names.
    pub(super) fn take(&mut self, places: impl Iterator<Item = u32>) -> Texts {
        let len = &mut self.len;
        self.feed.extend(|out| {
            let start = out.len();
            out.resize(start + ITEMS_AT, 0);
            places.for_each(|place| out.extend_from_slice(&place.to_le_bytes()));
            let size = (out.len() - start) as u64;
            out[start] = kind::ENTRY;
            out[start + 8..start + 16].copy_from_slice(&size.to_le_bytes());
            out.resize(start + align8(size) as usize, 0);
            *len += align8(size);
        });
        self.reader.next_entry().map(|entry| entry.fields).unwrap_or_default()
    }
}
