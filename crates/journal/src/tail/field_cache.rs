//! Caches the decoded fields of a file by their offset, and assembles entries from them.
//!
//! A journal file stores each field (`NAME=value`) once, and most fields of an entry occurred in an earlier
//! one. So the cache decodes a field when it first occurs, and again only if the cache was emptied since then.
//! Plain text is split at the first `=`, at an eighth of the cost of `systemd-journal-reader`, which decodes
//! compressed and binary fields.
//!
//! A field is refused if it is damaged, too large, or not `NAME=value`. Its entry is read without it.

use std::collections::{HashMap, hash_map};
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::data_reader::{DataReader, Encoding};
use super::entry::{Entry, EntryField, FieldSpan};
use super::entry_scanner::EntryObject;
use super::field_reader::FieldReader;
use super::object_reader::ObjectReader;

/// The cache of a file is emptied when it reaches this size, or less if many files are open. Single fields are not
/// evicted: they share the text of the entry that brought them, which is freed with the last of them.
pub(super) const CACHE_BYTES_MAX: usize = 32 << 20;
/// The memory of a cached field in addition to its text.
const FIELD_BYTES: usize = 160;

/// A step (see `FileReader::step`) ends after this many bytes of new fields and entries.
const STEP_BYTES_MAX: usize = 1 << 20;

/// A buffer that grew beyond this size is freed at the next step.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The entry buffers kept for reuse: as many as a step usually needs.
const SPARE_BUFFERS_MAX: usize = 1024;
/// A buffer with room for more fields is not kept.
const SPARE_FIELDS_MAX: usize = 256;

/// The decoded fields of a file.
#[derive(Default)]
pub(super) struct FieldCache {
    /// The reader of compressed and binary fields; `None` until the first of them.
    reader: Option<FieldReader>,
    /// The fields by their offset in the file; `None` for refused fields. Each entry looks up all its fields,
    /// so the hash is a fast one.
    by_offset: HashMap<u64, Option<EntryField>, RandomState>,
    /// The memory of `by_offset`: at most its bound and one step.
    cache_bytes: usize,
    /// The bytes of new fields and of entries in this step.
    step_bytes: usize,
    /// The field being read, as `NAME=value`.
    buffer: Vec<u8>,
    /// The text of the current entry's new fields, in one allocation: freeing one per field would cost more.
    new_text: String,
    new_fields: Vec<NewField>,
    /// Entry buffers for reuse: freeing them one by one would keep the allocator splitting and merging.
    spare_buffers: Vec<Vec<EntryField>>,
}

/// A field that is not in the cache yet.
struct NewField {
    offset: u64,
    /// Where its name and value are in the new text.
    span: FieldSpan,
    /// The exact value, if it is not UTF-8.
    bytes: Option<Rc<[u8]>>,
}

impl FieldCache {
    /// Empties the cache if it has this size or more.
    pub(super) fn bound(&mut self, bytes_max: usize) {
        if self.cache_bytes >= bytes_max {
            *self = Self::default();
        }
    }

    /// Frees what only speeds up reading, until there is more to read.
    pub(super) fn rest(&mut self) {
        self.reader = None;
        self.buffer = Vec::new();
        self.new_text = String::new();
        self.new_fields = Vec::new();
        self.spare_buffers = Vec::new();
    }

    /// Starts a step, and frees buffers that grew too large.
    pub(super) fn begin_step(&mut self) {
        if self.reader.as_ref().is_some_and(FieldReader::is_full) {
            self.reader = None;
        }
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        if self.new_text.capacity() > BUFFER_BYTES_MAX {
            self.new_text = String::new();
        }
        self.step_bytes = 0;
    }

    /// Returns whether this step has read enough.
    pub(super) fn is_step_full(&self) -> bool {
        self.step_bytes >= STEP_BYTES_MAX
    }

    /// Assembles an entry from its fields, without the refused ones.
    pub(super) fn entry(
        &mut self,
        object: EntryObject<'_>,
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<Entry> {
        data.begin_entry();
        let loaded = self.load_missing(object, objects, data);
        // Also after an error: the fields loaded before it are good.
        self.store_new();
        loaded?;
        let mut fields = self.spare_buffers.pop().unwrap_or_default();
        fields.extend(object.items().filter_map(|offset| self.by_offset.get(&offset)?.clone()));
        self.step_bytes += object.bytes.len();
        Ok(Entry::of_object(object, objects.header().seqnum_id, fields))
    }

    /// Loads the entry's fields that are not in the cache.
    fn load_missing(
        &mut self,
        object: EntryObject<'_>,
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<()> {
        for offset in object.items() {
            if let hash_map::Entry::Vacant(vacant) = self.by_offset.entry(offset) {
                // Stays `None` if the field is refused. An error is no refusal: the field is read again.
                vacant.insert(None);
                if let Err(error) = self.load(offset, objects, data) {
                    self.by_offset.remove(&offset);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reads and decodes a field, and adds it to the new fields unless it is refused.
    fn load(&mut self, offset: u64, objects: &ObjectReader, data: &mut DataReader) -> io::Result<()> {
        self.cache_bytes += FIELD_BYTES;
        self.buffer.clear();
        let Some(encoding) = data.append(objects, offset, &mut self.buffer)? else { return Ok(()) };
        let before = self.new_text.len();
        if encoding == Encoding::Plain
            && let Ok(text) = std::str::from_utf8(&self.buffer)
        {
            if let Some((name, value)) = text.split_once('=') {
                let span = FieldSpan::append(name, value, &mut self.new_text);
                self.new_fields.push(NewField { offset, span, bytes: None });
            }
        } else {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                empty => empty.insert(FieldReader::new()?),
            };
            if let Some((name, value)) = reader.decode(&self.buffer) {
                let span = FieldSpan::append(&name, &value, &mut self.new_text);
                let bytes = self.buffer.get(name.len() + 1..).filter(|bytes| *bytes != value.as_bytes());
                self.cache_bytes += bytes.map_or(0, <[u8]>::len);
                self.new_fields.push(NewField { offset, span, bytes: bytes.map(Rc::from) });
            }
        }
        let bytes = self.new_text.len() - before;
        self.step_bytes += bytes;
        self.cache_bytes += bytes;
        Ok(())
    }

    /// Moves the new fields into the cache, with one shared text.
    fn store_new(&mut self) {
        if self.new_fields.is_empty() {
            return;
        }
        let text = Rc::from(&*self.new_text);
        self.new_text.clear();
        for NewField { offset, span, bytes } in self.new_fields.drain(..) {
            self.by_offset.insert(offset, Some(EntryField::new(&text, span, bytes)));
        }
    }

    /// Keeps the buffer of an entry for reuse, unless it is too large or there are enough.
    pub(super) fn recycle(&mut self, entry: Entry) {
        let fields = entry.into_buffer();
        if fields.capacity() <= SPARE_FIELDS_MAX && self.spare_buffers.len() < SPARE_BUFFERS_MAX {
            self.spare_buffers.push(fields);
        }
    }
}
