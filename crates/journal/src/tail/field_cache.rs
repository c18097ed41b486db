//! Decodes each field of a file once, and assembles entries from them.
//!
//! A journal file stores each value once, and most values of an entry occurred in an earlier one. So this
//! module reads the offsets of an entry's fields, and decodes a field when it first occurs. It splits plain
//! text at the first `=`, at an eighth of the cost of `systemd-journal-reader`, which decodes compressed and
//! binary fields.

use std::collections::{HashMap, hash_map};
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::data_reader::{DataReader, Encoding};
use super::entry::{Entry, EntryHeader, Field, FieldSpan};
use super::entry_scanner::EntryObject;
use super::field_reader::FieldReader;
use super::object_reader::ObjectReader;

/// The cache is emptied when it reaches this size.
const CACHE_BYTES_MAX: usize = 32 << 20;
/// The memory of a cached field in addition to its bytes.
const FIELD_BYTES: usize = 160;

/// A step ends after this many bytes of new fields and entries.
const STEP_BYTES_MAX: usize = 1 << 20;

/// A larger buffer is freed.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The buffers of entries that are kept for reuse: as many as a step usually finds, and of a usual size.
const SPARE_BUFFERS_MAX: usize = 1024;
const SPARE_FIELDS_MAX: usize = 256;

/// The decoded fields.
#[derive(Default)]
pub(super) struct FieldCache {
    /// The reader of compressed and binary fields, once there is one.
    reader: Option<FieldReader>,
    /// By offset in the file; `None` for refused fields. Each entry looks up all its fields, so the hash is a
    /// fast one.
    by_offset: HashMap<u64, Option<Field>, RandomState>,
    /// The memory of `by_offset`: at most about 32 MiB and one step.
    cache_bytes: usize,
    /// The bytes that are new in this step.
    step_bytes: usize,
    /// The current field.
    buffer: Vec<u8>,
    /// The new fields of the current entry, in one allocation: freeing each by itself would cost more.
    text: String,
    new: Vec<NewField>,
    /// Buffers for reuse: freeing those of a step one by one would keep the allocator splitting and merging.
    spare: Vec<Vec<Field>>,
}

/// A field that is not in the cache yet.
struct NewField {
    offset: u64,
    span: FieldSpan,
    bytes: Option<Rc<[u8]>>,
}

impl FieldCache {
    /// Starts a step; empties the cache if it is full.
    pub(super) fn begin_step(&mut self) {
        if self.cache_bytes >= CACHE_BYTES_MAX {
            *self = Self::default();
        }
        if self.reader.as_ref().is_some_and(FieldReader::is_full) {
            self.reader = None;
        }
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        if self.text.capacity() > BUFFER_BYTES_MAX {
            self.text = String::new();
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
        let read = self.load_missing(object, objects, data);
        self.store_new();
        read?;
        let mut fields = self.spare.pop().unwrap_or_default();
        fields.extend(object.items().filter_map(|offset| self.by_offset.get(&offset)?.clone()));
        self.step_bytes += object.bytes.len();
        Ok(Entry::new(EntryHeader::of(object), fields))
    }

    fn load_missing(
        &mut self,
        object: EntryObject<'_>,
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<()> {
        for offset in object.items() {
            if let hash_map::Entry::Vacant(vacant) = self.by_offset.entry(offset) {
                vacant.insert(None);
                if let Err(error) = self.load(offset, objects, data) {
                    self.by_offset.remove(&offset);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reads and decodes a field. A refused field stays `None`.
    fn load(&mut self, offset: u64, objects: &ObjectReader, data: &mut DataReader) -> io::Result<()> {
        self.cache_bytes += FIELD_BYTES;
        self.buffer.clear();
        let Some(encoding) = data.append(objects, offset, &mut self.buffer)? else { return Ok(()) };
        let before = self.text.len();
        if encoding == Encoding::Plain
            && let Ok(text) = std::str::from_utf8(&self.buffer)
        {
            if let Some((name, value)) = text.split_once('=') {
                let span = FieldSpan::append(name, value, &mut self.text);
                self.new.push(NewField { offset, span, bytes: None });
            }
        } else {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(FieldReader::new()?),
            };
            if let Some((name, value)) = reader.decode(&self.buffer) {
                let span = FieldSpan::append(&name, &value, &mut self.text);
                let bytes = self.buffer.get(name.len() + 1..).filter(|bytes| *bytes != value.as_bytes());
                self.cache_bytes += bytes.map_or(0, <[u8]>::len);
                self.new.push(NewField { offset, span, bytes: bytes.map(Rc::from) });
            }
        }
        let bytes = self.text.len() - before;
        self.step_bytes += bytes;
        self.cache_bytes += bytes;
        Ok(())
    }

    fn store_new(&mut self) {
        if self.new.is_empty() {
            return;
        }
        let text = Rc::from(&*self.text);
        self.text.clear();
        for NewField { offset, span, bytes } in self.new.drain(..) {
            self.by_offset.insert(offset, Some(Field::new(&text, span, bytes)));
        }
    }

    /// Reuses the buffer of an entry.
    pub(super) fn recycle(&mut self, entry: Entry) {
        let fields = entry.into_buffer();
        if fields.capacity() <= SPARE_FIELDS_MAX && self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(fields);
        }
    }
}
