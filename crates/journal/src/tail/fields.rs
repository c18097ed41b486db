//! The fields of a file, each decoded once, and the entries that are put together from them.
//!
//! A journal file holds each value once, and most values of an entry were met with an earlier entry. So this module reads
//! which fields an entry has from their offsets, and decodes each field when it is met first. It splits plain text at the
//! first `=`, an eighth of the cost of `systemd-journal-reader`, which decodes compressed and binary fields.

use std::collections::{HashMap, hash_map};
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::entry::{Entry, Field, Head, Place};
use super::field_reader::FieldReader;
use super::objects::Objects;
use super::values::{Form, Values};
use super::walk::Stored;

/// All fields are forgotten, and met anew, once they take so much.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// What a field takes in addition to its bytes.
const FIELD_BYTES: usize = 160;

/// A step ends when so much of fields and entries is new in it.
const STEP_BYTES_MAX: usize = 1 << 20;

/// A buffer that grew above this is given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// So much room for entries is kept: for as many as a step usually finds, and of a size that is usual.
const SPARE_MAX: usize = 1024;
const SPARE_FIELDS_MAX: usize = 256;

/// The fields that were met.
#[derive(Default)]
pub(super) struct Fields {
    /// The reader of compressed and binary fields, from the first of them on.
    reader: Option<FieldReader>,
    /// By where they lie in the file; nothing for those that were refused. Each is asked for with every entry, so this
    /// hash is one that is fast.
    known: HashMap<u64, Option<Field>, RandomState>,
    /// What `known` takes, some 32 MiB and a step at the most.
    kept_bytes: usize,
    /// What was new in this step.
    step_bytes: usize,
    /// The field at hand.
    buffer: Vec<u8>,
    /// Those that are new with the entry at hand: together, since each by itself would have to be let go by itself.
    texts: String,
    new: Vec<New>,
    /// Room for entries. Those of a step are let go one after the other, and the allocator would join and part what
    /// they leave again and again.
    spare: Vec<Vec<Field>>,
}

/// A field that is new.
struct New {
    offset: u64,
    place: Place,
    bytes: Option<Rc<[u8]>>,
}

impl Fields {
    /// Begins a step; forgets all fields if they take much.
    pub(super) fn begin_step(&mut self) {
        if self.kept_bytes >= KEPT_BYTES_MAX {
            *self = Self::default();
        }
        if self.reader.as_ref().is_some_and(FieldReader::is_full) {
            self.reader = None;
        }
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        if self.texts.capacity() > BUFFER_BYTES_MAX {
            self.texts = String::new();
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
        stored: Stored<'_>,
        objects: &Objects,
        values: &mut Values,
    ) -> io::Result<Entry> {
        values.begin_entry();
        let read = self.meet_all(stored, objects, values);
        self.keep_new();
        read?;
        let mut fields = self.spare.pop().unwrap_or_default();
        fields.extend(stored.items().filter_map(|offset| self.known.get(&offset)?.clone()));
        self.step_bytes += stored.bytes.len();
        Ok(Entry::new(Head::of(stored), fields))
    }

    fn meet_all(&mut self, stored: Stored<'_>, objects: &Objects, values: &mut Values) -> io::Result<()> {
        for offset in stored.items() {
            if let hash_map::Entry::Vacant(vacant) = self.known.entry(offset) {
                vacant.insert(None);
                if let Err(error) = self.meet(offset, objects, values) {
                    self.known.remove(&offset);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reads and decodes a field; one that is refused stays unknown.
    fn meet(&mut self, offset: u64, objects: &Objects, values: &mut Values) -> io::Result<()> {
        self.kept_bytes += FIELD_BYTES;
        self.buffer.clear();
        let Some(form) = values.append(objects, offset, &mut self.buffer)? else { return Ok(()) };
        let before = self.texts.len();
        if form == Form::Plain
            && let Ok(text) = std::str::from_utf8(&self.buffer)
        {
            if let Some((name, value)) = text.split_once('=') {
                let place = Place::append(name, value, &mut self.texts);
                self.new.push(New { offset, place, bytes: None });
            }
        } else {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(FieldReader::new()?),
            };
            if let Some((name, value)) = reader.decode(&self.buffer) {
                let place = Place::append(&name, &value, &mut self.texts);
                let bytes = self.buffer.get(name.len() + 1..).filter(|bytes| *bytes != value.as_bytes());
                self.kept_bytes += bytes.map_or(0, <[u8]>::len);
                self.new.push(New { offset, place, bytes: bytes.map(Rc::from) });
            }
        }
        let bytes = self.texts.len() - before;
        self.step_bytes += bytes;
        self.kept_bytes += bytes;
        Ok(())
    }

    fn keep_new(&mut self) {
        if self.new.is_empty() {
            return;
        }
        let texts = Rc::from(&*self.texts);
        self.texts.clear();
        for New { offset, place, bytes } in self.new.drain(..) {
            self.known.insert(offset, Some(Field::new(&texts, place, bytes)));
        }
    }

    /// Takes back the room of an entry that is done.
    pub(super) fn take_back(&mut self, entry: Entry) {
        let fields = entry.into_emptied();
        if fields.capacity() <= SPARE_FIELDS_MAX && self.spare.len() < SPARE_MAX {
            self.spare.push(fields);
        }
    }
}
