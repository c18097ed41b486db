//! The fields of a file, each decoded once, and the entries that are put together from them.
//!
//! A journal file has each value once, and most of those of an entry were met with an earlier one. The reader below looks
//! up, copies and hashes all of them for every entry. So which entry has which fields is told here, by where they lie,
//! and the reader decodes fields, each when it is met first. Where even that is too much, it is not asked: nearly all
//! fields are text that stands in the file as it is, and that is split at its first `=` at an eighth of the cost.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::entry::{Entry, Field, Head, Item};
use super::objects::Objects;
use super::stream::Stream;
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

/// The fields that were met.
pub(super) struct Fields {
    /// Where the reader is, once there was something for it.
    stream: Option<Stream>,
    /// By where they lie in the file; nothing for those that were refused. Each is asked for with every entry, so this
    /// hash is one that is fast.
    known: HashMap<u64, Option<Rc<Field>>, RandomState>,
    /// What `known` takes, some 32 MiB and a step at the most.
    kept_bytes: usize,
    /// What was new in this step.
    step_bytes: usize,
    /// The field at hand.
    buffer: Vec<u8>,
}

impl Fields {
    pub(super) fn new() -> Self {
        Self { stream: None, known: HashMap::default(), kept_bytes: 0, step_bytes: 0, buffer: Vec::new() }
    }

    /// Begins a step; forgets all fields if they take much.
    pub(super) fn begin_step(&mut self) {
        if self.kept_bytes >= KEPT_BYTES_MAX {
            *self = Self::new();
        }
        if self.stream.as_ref().is_some_and(Stream::is_full) {
            self.stream = None;
        }
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
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
        let mut items = Vec::with_capacity(stored.items().len());
        for offset in stored.items() {
            let field = match self.known.get(&offset) {
                Some(known) => known.as_ref(),
                None => self.meet(offset, objects, values)?,
            };
            items.extend(field.map(Item::of));
        }
        self.step_bytes += stored.bytes.len();
        Ok(Entry::new(Head::of(stored), items))
    }

    fn meet(
        &mut self,
        offset: u64,
        objects: &Objects,
        values: &mut Values,
    ) -> io::Result<Option<&Rc<Field>>> {
        self.buffer.clear();
        let field = match values.append(objects, offset, &mut self.buffer)? {
            None => None,
            Some(form) => self.decode(form)?,
        };
        let bytes = field.as_ref().map_or(0, Field::kept_bytes);
        self.step_bytes += bytes;
        self.kept_bytes += FIELD_BYTES + bytes;
        Ok(self.known.entry(offset).or_insert_with(|| field.map(Rc::new)).as_ref())
    }

    /// Decodes the field in the buffer.
    fn decode(&mut self, form: Form) -> io::Result<Option<Field>> {
        if form == Form::Plain
            && let Ok(text) = std::str::from_utf8(&self.buffer)
        {
            return Ok(text.split_once('=').map(|(name, _)| Field::of_text(text, name.len())));
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Stream::new()?),
        };
        let decoded = stream.decode(&self.buffer);
        Ok(decoded.map(|(name, value)| Field::decoded(&name, &value, &self.buffer)))
    }
}
