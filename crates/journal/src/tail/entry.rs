//! An entry as it is read.

use std::hash::{BuildHasher as _, Hasher as _};
use std::rc::Rc;

use foldhash::fast::FixedState;

use super::entry_scanner::EntryObject;

/// One entry that was read.
#[derive(Debug)]
pub struct Entry {
    header: EntryHeader,
    /// In the order of the file.
    fields: Vec<Field>,
}

/// What an entry says of itself, besides its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryHeader {
    seqnum: u64,
    realtime_us: u64,
    monotonic_us: u64,
    boot_id: u128,
    xor_hash: u64,
}

/// A field of an entry: a part of a text that holds all those that were new when it was met.
#[derive(Clone, Debug)]
pub(super) struct Field {
    text: Rc<str>,
    span: FieldSpan,
    /// The value byte for byte, if it is no text.
    bytes: Option<Rc<[u8]>>,
}

/// Where a field stands in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldSpan {
    /// The hash of its name: an entry is asked for dozens of names, and most of its fields are none of them.
    name_hash: u64,
    start: u32,
    /// Where its `=` stands.
    equals: u32,
    end: u32,
}

impl FieldSpan {
    /// Appends a field, and gives where it stands then. What is not UTF-8 in its value was replaced.
    pub(super) fn append(name: &str, value: &str, text: &mut String) -> Self {
        let start = text.len() as u32;
        text.push_str(name);
        let equals = text.len() as u32;
        text.push('=');
        text.push_str(value);
        Self { name_hash: name_hash(name), start, equals, end: text.len() as u32 }
    }
}

impl Field {
    pub(super) fn new(text: &Rc<str>, span: FieldSpan, bytes: Option<Rc<[u8]>>) -> Self {
        Self { text: Rc::clone(text), span, bytes }
    }

    fn name(&self) -> &str {
        &self.text[self.span.start as usize..self.span.equals as usize]
    }

    fn text(&self) -> &str {
        &self.text[self.span.equals as usize + 1..self.span.end as usize]
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_else(|| self.text().as_bytes())
    }
}

/// The hash by which names are told apart at first; they are compared where it is the same.
fn name_hash(name: &str) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl EntryHeader {
    pub(super) fn of(object: EntryObject<'_>) -> Self {
        Self {
            seqnum: object.seqnum(),
            realtime_us: object.realtime_us(),
            monotonic_us: object.monotonic_us(),
            boot_id: object.boot_id(),
            xor_hash: object.xor_hash(),
        }
    }
}

impl Entry {
    pub(super) fn new(header: EntryHeader, fields: Vec<Field>) -> Self {
        Self { header, fields }
    }

    /// Gives the room that its fields took, empty.
    pub(super) fn into_buffer(mut self) -> Vec<Field> {
        self.fields.clear();
        self.fields
    }

    /// Gives the time of the entry by the realtime clock, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.header.realtime_us
    }

    /// Gives the time of the entry by the monotonic clock of its [boot](Self::boot_id), in microseconds.
    pub fn monotonic_us(&self) -> u64 {
        self.header.monotonic_us
    }

    /// Gives the id of the boot in which the entry was written, as in `_BOOT_ID` and sd-id128(3).
    pub fn boot_id(&self) -> u128 {
        self.header.boot_id
    }

    /// Gives the sequence number, which counts the entries of one writer through all its files.
    pub fn seqnum(&self) -> u64 {
        self.header.seqnum
    }

    /// Gives what an entry and its copy in another file have in common.
    pub(super) fn copy_key(&self) -> impl std::hash::Hash {
        let EntryHeader { boot_id, monotonic_us, realtime_us, xor_hash, .. } = self.header;
        (boot_id, monotonic_us, realtime_us, xor_hash)
    }

    /// Tells whether it has a field of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields_named(name).next().is_some()
    }

    /// Gives the value of a field as text: bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// Of a field that appears more than once the last value is given, by the order of the file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields_named(name).next_back().map(Field::text)
    }

    /// Gives the value of a field, byte for byte, of a field that appears more than once the last one.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.fields_named(name).next_back().map(Field::bytes)
    }

    /// Iterates over all values of a field, in the order of the file, which need not be that of the writer.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields_named(name).map(Field::bytes)
    }

    /// Iterates over names and values of all fields, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|field| (field.name(), field.bytes()))
    }

    fn fields_named(&self, name: &str) -> impl DoubleEndedIterator<Item = &Field> {
        let hash = name_hash(name);
        let fields = self.fields.iter().filter(move |field| field.span.name_hash == hash);
        fields.filter(move |field| field.name() == name)
    }
}
