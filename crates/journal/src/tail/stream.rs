//! What the reader below gets: a journal of its own, made of the entries that are wanted and the fields that they have.
//!
//! That reader trusts every size that it meets, cannot seek, keeps all fields that it ever saw, and makes compressed
//! ones plain without a bound. So it is given a stream in which each entry follows those of its fields that the reader
//! does not have yet, whole, plain and of bounded sizes; and once it keeps much, another reader with another stream
//! takes its place.

use std::collections::{HashMap, VecDeque};
use std::io;

use foldhash::fast::RandomState;
use systemd_journal_reader::JournalReader;

use super::feed::Feed;
use super::objects::Objects;
use super::values::Values;
use super::walk::{ITEMS_AT, Stored};
use crate::layout::{INCOMPATIBLE_COMPACT, SIGNATURE, align8, kind};

/// A reader is replaced once it keeps so much.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// What a field takes in the reader and here, in addition to its bytes.
const FIELD_BYTES: usize = 256;

/// Or once so much went through it: offsets in the stream have 32 bits.
const STREAM_BYTES_MAX: u64 = 1 << 30;

/// A step ends when so much was handed over.
const STEP_BYTES_MAX: usize = 1 << 20;

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
    /// The fields that were met, by where they lie in the file; each is asked for with every entry, so this hash is one
    /// that is fast.
    fields: HashMap<u64, Field, RandomState>,
    kept_bytes: usize,
    step_bytes: usize,
    /// Used again for every entry.
    items: Vec<u8>,
    /// Of the entries that are on their way to the reader.
    entries: VecDeque<Head>,
}

/// A field that the reader has.
#[derive(Clone, Copy, Debug)]
struct Field {
    /// Where it lies in the stream; zero if it was refused.
    offset: u32,
    is_text: bool,
}

/// What the reader does not tell of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// Where it lies in the file.
    pub(super) offset: u64,
    pub(super) bytes: usize,
    pub(super) seqnum: u64,
    pub(super) monotonic_us: u64,
    pub(super) boot_id: u128,
    pub(super) xor_hash: u64,
    /// How many fields it has, those that were refused left out.
    pub(super) fields: usize,
    /// All fields are text.
    pub(super) is_text: bool,
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
        Ok(Self {
            reader: JournalReader::new(feed.clone())?,
            feed,
            len: HEADER_BYTES as u64,
            fields: HashMap::default(),
            kept_bytes: 0,
            step_bytes: 0,
            items: Vec::new(),
            entries: VecDeque::new(),
        })
    }

    /// Gives the next entry that the reader makes of what it was given.
    pub(super) fn next_entry(&mut self) -> Option<(Head, systemd_journal_reader::Entry)> {
        let entry = self.reader.next_entry()?;
        Some((self.entries.pop_front().unwrap_or_default(), entry))
    }

    /// Begins a step, for which all entries were taken; with another reader if this one keeps much.
    pub(super) fn begin_step(&mut self) -> io::Result<()> {
        if self.kept_bytes >= KEPT_BYTES_MAX || self.len >= STREAM_BYTES_MAX {
            *self = Self::new()?;
        }
        self.step_bytes = 0;
        Ok(())
    }

    /// Tells whether enough was handed over in this step.
    pub(super) fn is_step_full(&self) -> bool {
        self.step_bytes >= STEP_BYTES_MAX
    }

    /// Hands an entry to the reader, and before it those of its fields that the reader does not have.
    pub(super) fn push(
        &mut self,
        entry: Stored<'_>,
        objects: &Objects,
        values: &mut Values,
    ) -> io::Result<()> {
        let mut head = Head {
            offset: entry.offset,
            bytes: entry.bytes.len(),
            seqnum: entry.seqnum(),
            monotonic_us: entry.monotonic_us(),
            boot_id: entry.boot_id(),
            xor_hash: entry.xor_hash(),
            fields: 0,
            is_text: true,
        };
        self.items.clear();
        values.begin_entry();
        for offset in entry.items() {
            let field = match self.fields.get(&offset) {
                Some(field) => *field,
                None => self.push_field(offset, objects, values)?,
            };
            if field.offset > 0 {
                self.items.extend_from_slice(&field.offset.to_le_bytes());
                head.fields += 1;
                head.is_text &= field.is_text;
            }
        }
        let size = ITEMS_AT + self.items.len();
        self.feed.extend(|out| {
            let start = out.len();
            out.extend_from_slice(&entry.bytes[..ITEMS_AT]);
            out[start + 8..start + 16].copy_from_slice(&(size as u64).to_le_bytes());
            out.extend_from_slice(&self.items);
            out.resize(start + align8(size as u64) as usize, 0);
        });
        self.len += align8(size as u64);
        self.step_bytes += size;
        self.entries.push_back(head);
        Ok(())
    }

    fn push_field(&mut self, offset: u64, objects: &Objects, values: &mut Values) -> io::Result<Field> {
        let (size, is_text) = self.feed.extend(|out| {
            let start = out.len();
            out.resize(start + PAYLOAD_AT, 0);
            let is_there = match values.append(objects, offset, out) {
                Ok(appended) => appended.is_some(),
                Err(error) => {
                    out.truncate(start);
                    return Err(error);
                }
            };
            if !is_there {
                out.truncate(start);
                return Ok((0, true));
            }
            let size = out.len() - start;
            let is_text = std::str::from_utf8(&out[start + PAYLOAD_AT..]).is_ok();
            out[start] = kind::DATA;
            out[start + 8..start + 16].copy_from_slice(&(size as u64).to_le_bytes());
            out.resize(start + align8(size as u64) as usize, 0);
            Ok((size, is_text))
        })?;
        // The stream is replaced long before this fails.
        let place = if size > 0 { u32::try_from(self.len).unwrap_or_default() } else { 0 };
        let field = Field { offset: place, is_text };
        self.len += align8(size as u64);
        self.kept_bytes += size + FIELD_BYTES;
        self.step_bytes += size;
        self.fields.insert(offset, field);
        Ok(field)
    }
}
