//! An entry as it is read.

use std::hash::{BuildHasher as _, Hasher as _};
use std::rc::Rc;

use foldhash::fast::FixedState;

use super::walk::Stored;

/// One entry that was read.
#[derive(Debug)]
pub struct Entry {
    head: Head,
    /// In the order of the file.
    fields: Vec<Item>,
}

/// What an entry says of itself, besides its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    seqnum: u64,
    realtime_us: u64,
    monotonic_us: u64,
    boot_id: u128,
    xor_hash: u64,
}

/// A field, which many entries may have.
#[derive(Debug)]
pub(super) struct Field {
    /// `NAME=value`; what is not UTF-8 in the value is replaced.
    text: Box<str>,
    name_len: usize,
    name_hash: u64,
    /// The value byte for byte, if it is no text.
    bytes: Option<Box<[u8]>>,
}

impl Field {
    /// A field that is text, whose name has so many bytes.
    pub(super) fn of_text(text: &str, name_len: usize) -> Self {
        Self { text: text.into(), name_len, name_hash: name_hash(&text[..name_len]), bytes: None }
    }

    /// A field of which this is what the reader made.
    pub(super) fn decoded(name: &str, value: &str, field: &[u8]) -> Self {
        let of_text = Self::of_text(&[name, "=", value].concat(), name.len());
        let bytes = field.get(name.len() + 1..).filter(|bytes| *bytes != value.as_bytes());
        Self { bytes: bytes.map(Box::from), ..of_text }
    }

    /// Gives what it takes, in bytes, besides what is of the same size for all.
    pub(super) fn kept_bytes(&self) -> usize {
        self.text.len() + self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    fn name(&self) -> &str {
        &self.text[..self.name_len]
    }

    fn text(&self) -> &str {
        &self.text[self.name_len + 1..]
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_else(|| self.text().as_bytes())
    }
}

/// A field of an entry, with the hash of its name beside it: an entry is asked for dozens of names, and most of its
/// fields are none of them.
#[derive(Debug)]
pub(super) struct Item {
    name_hash: u64,
    field: Rc<Field>,
}

impl Item {
    pub(super) fn of(field: &Rc<Field>) -> Self {
        Self { name_hash: field.name_hash, field: Rc::clone(field) }
    }
}

/// The hash by which names are told apart at first; they are compared where it is the same.
fn name_hash(name: &str) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl Head {
    pub(super) fn of(stored: Stored<'_>) -> Self {
        Self {
            seqnum: stored.seqnum(),
            realtime_us: stored.realtime_us(),
            monotonic_us: stored.monotonic_us(),
            boot_id: stored.boot_id(),
            xor_hash: stored.xor_hash(),
        }
    }
}

impl Entry {
    pub(super) fn new(head: Head, fields: Vec<Item>) -> Self {
        Self { head, fields }
    }

    /// Gives the time of the entry by the realtime clock, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.head.realtime_us
    }

    /// Gives the time of the entry by the monotonic clock of its [boot](Self::boot_id), in microseconds.
    pub fn monotonic_us(&self) -> u64 {
        self.head.monotonic_us
    }

    /// Gives the id of the boot in which the entry was written, as in `_BOOT_ID` and sd-id128(3).
    pub fn boot_id(&self) -> u128 {
        self.head.boot_id
    }

    /// Gives the sequence number, which counts the entries of one writer through all its files.
    pub fn seqnum(&self) -> u64 {
        self.head.seqnum
    }

    /// Gives what an entry and its copy in another file have in common.
    pub(super) fn identity(&self) -> impl std::hash::Hash {
        let Head { boot_id, monotonic_us, realtime_us, xor_hash, .. } = self.head;
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
        self.fields.iter().map(|item| (item.field.name(), item.field.bytes()))
    }

    fn fields_named(&self, name: &str) -> impl DoubleEndedIterator<Item = &Field> {
        let hash = name_hash(name);
        let items = self.fields.iter().filter(move |item| item.name_hash == hash);
        items.map(|item| &*item.field).filter(move |field| field.name() == name)
    }
}
