//! The fields of a file, each decoded once, and the entries that are put together from them.
//!
//! A journal file holds each value once, and most values of an entry were met with an earlier entry. So this module reads
//! which fields an entry has from their offsets, and decodes each field when it is met first. It splits plain text at the
//! first `=`, an eighth of the cost of `systemd-journal-reader`, which decodes compressed and binary fields.

use std::collections::{HashMap, hash_map};
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::data_reader::{DataReader, Encoding};
use super::entry::{Entry, EntryHeader, Field, FieldSpan};
use super::entry_scanner::EntryObject;
use super::field_reader::FieldReader;
use super::object_reader::ObjectReader;

/// All fields are forgotten, and met anew, once they take so much.
const CACHE_BYTES_MAX: usize = 32 << 20;
/// What a field takes in addition to its bytes.
const FIELD_BYTES: usize = 160;

/// A step ends when so much of fields and entries is new in it.
const STEP_BYTES_MAX: usize = 1 << 20;

/// A buffer that grew above this is given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// So much room for entries is kept: for as many as a step usually finds, and of a size that is usual.
const SPARE_BUFFERS_MAX: usize = 1024;
const SPARE_FIELDS_MAX: usize = 256;

/// The fields that were met.
#[derive(Default)]
pub(super) struct FieldCache {
    /// The reader of compressed and binary fields, from the first of them on.
    reader: Option<FieldReader>,
    /// By where they lie in the file; nothing for those that were refused. Each is asked for with every entry, so this
    /// hash is one that is fast.
    by_offset: HashMap<u64, Option<Field>, RandomState>,
    /// What `known` takes, some 32 MiB and a step at the most.
    cache_bytes: usize,
    /// What was new in this step.
    step_bytes: usize,
    /// The field at hand.
    buffer: Vec<u8>,
    /// Those that are new with the entry at hand: together, since each by itself would have to be let go by itself.
    text: String,
    new: Vec<NewField>,
    /// Room for entries. Those of a step are let go one after the other, and the allocator would join and part what
    /// they leave again and again.
    spare: Vec<Vec<Field>>,
}

/// A field that is new.
struct NewField {
    offset: u64,
    span: FieldSpan,
    bytes: Option<Rc<[u8]>>,
}

impl FieldCache {
    /// Begins a step; forgets all fields if they take much.
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

    /// Tells whether enough was new in this step.
    pub(super) fn is_step_full(&self) -> bool {
        self.step_bytes >= STEP_BYTES_MAX
    }

    /// Puts an entry together from its fields, those left out that are refused.
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

    /// Reads and decodes a field; one that is refused stays unknown.
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

    /// Takes back the room of an entry that is done.
    pub(super) fn recycle(&mut self, entry: Entry) {
        let fields = entry.into_buffer();
        if fields.capacity() <= SPARE_FIELDS_MAX && self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(fields);
        }
    }
}
