//! The fields of a file, each decoded once, and the entries that are put together from them.
//!
//! Most fields of an entry were met before: journal files have each value once. The reader below would look up, copy
//! and hash all of them for every entry; so it decodes those that are new, and which entry has which is told by where
//! they lie.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::entry::{Entry, Field, Head, Item, name_hash};
use super::objects::Objects;
use super::stream::Stream;
use super::values::{Values, name_len};
use super::walk::Stored;

/// All fields are forgotten, and met anew, once they take so much.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// What a field takes in the reader and here, in addition to its bytes.
const FIELD_BYTES: usize = 320;

/// A step ends when so much of fields and entries is new in it.
const STEP_BYTES_MAX: usize = 1 << 20;

/// So many fields go through the reader together; they are told apart by comparing each with each.
const TOGETHER_MAX: usize = 32;

/// The fields that were met.
pub(super) struct Fields {
    stream: Stream,
    /// By where they lie in the file; nothing for those that were refused. Each is asked for with every entry, so this
    /// hash is one that is fast.
    known: HashMap<u64, Option<Rc<Field>>, RandomState>,
    /// Those that the reader was given and did not give back yet, of different names.
    underway: Vec<Underway>,
    kept_bytes: usize,
    step_bytes: usize,
}

/// A field that is with the reader.
struct Underway {
    offset: u64,
    /// Where it lies in the stream.
    place: u32,
    name_hash: u64,
    /// Its value, unless that is text.
    bytes: Option<Box<[u8]>>,
}

impl Fields {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            stream: Stream::new()?,
            known: HashMap::default(),
            underway: Vec::new(),
            kept_bytes: 0,
            step_bytes: 0,
        })
    }

    /// Begins a step; forgets all fields if they take much.
    pub(super) fn begin_step(&mut self) -> io::Result<()> {
        if self.kept_bytes >= KEPT_BYTES_MAX || self.stream.is_full() {
            *self = Self::new()?;
        }
        self.step_bytes = 0;
        Ok(())
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
        self.decode();
        read?;
        let known = stored.items().filter_map(|offset| self.known.get(&offset)?.as_ref());
        let fields: Vec<Item> = known.map(Item::of).collect();
        self.step_bytes += stored.bytes.len();
        Ok(Entry::new(Head::of(stored), fields))
    }

    /// Gives the reader what is new.
    fn meet_all(&mut self, stored: Stored<'_>, objects: &Objects, values: &mut Values) -> io::Result<()> {
        for offset in stored.items() {
            let is_met = self.known.contains_key(&offset);
            if !is_met && self.underway.iter().all(|other| other.offset != offset) {
                self.meet(offset, objects, values)?;
            }
        }
        Ok(())
    }

    fn meet(&mut self, offset: u64, objects: &Objects, values: &mut Values) -> io::Result<()> {
        let put = self.stream.put(|out| values.append(objects, offset, out), look)?;
        let Some((place, (name_hash, len, bytes))) = put else {
            self.keep(offset, None);
            return Ok(());
        };
        let has_name = |other: &Underway| other.name_hash == name_hash;
        if self.underway.len() == TOGETHER_MAX || self.underway.iter().any(has_name) {
            self.decode();
        }
        self.step_bytes += len;
        self.kept_bytes += len + bytes.as_ref().map_or(0, |bytes| bytes.len());
        self.underway.push(Underway { offset, place, name_hash, bytes });
        Ok(())
    }

    /// Takes back from the reader what is with it.
    fn decode(&mut self) {
        if self.underway.is_empty() {
            return;
        }
        let texts = self.stream.take(self.underway.iter().map(|field| field.place));
        for (name, value) in texts {
            let name_hash = name_hash(name.as_bytes());
            let found = self.underway.iter().position(|field| field.name_hash == name_hash);
            if let Some(found) = found {
                let Underway { offset, bytes, .. } = self.underway.swap_remove(found);
                self.keep(offset, Some(Rc::new(Field { name, name_hash, value, bytes })));
            }
        }
        // It gives back all that it is given; what it did not would be refused rather than asked for again and again.
        while let Some(field) = self.underway.pop() {
            self.keep(field.offset, None);
        }
    }

    fn keep(&mut self, offset: u64, field: Option<Rc<Field>>) {
        self.kept_bytes += FIELD_BYTES;
        self.known.insert(offset, field);
    }
}

/// What is to be known of a field before it is decoded: the hash of its name, its size, and its value unless that is
/// text.
fn look(field: &[u8]) -> (u64, usize, Option<Box<[u8]>>) {
    let name_len = name_len(field).unwrap_or_default();
    let (name, value) = field.split_at(name_len);
    let is_text = std::str::from_utf8(value).is_ok();
    let bytes = if is_text { None } else { value.get(1..).map(Box::from) };
    (name_hash(name), field.len(), bytes)
}
