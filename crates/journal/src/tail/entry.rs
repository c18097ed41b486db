//! An entry that was read.

use std::hash::{BuildHasher as _, Hasher as _};
use std::rc::Rc;

use foldhash::fast::FixedState;

use super::entry_scanner::EntryObject;
use crate::EntryPosition;

#[derive(Clone, Debug)]
pub struct Entry {
    header: EntryHeader,
    /// The fields in the order of the file.
    fields: Vec<EntryField>,
}

#[derive(Clone, Copy, Debug)]
struct EntryHeader {
    position: EntryPosition,
    realtime_us: u64,
    monotonic_us: u64,
    boot_id: u128,
    xor_hash: u64,
}

/// A field of an entry, as a part of a text that several fields share.
#[derive(Clone, Debug)]
pub(super) struct EntryField {
    text: Rc<str>,
    span: FieldSpan,
    /// The exact value, if it is not UTF-8.
    bytes: Option<Rc<[u8]>>,
}

/// The range of a field in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldSpan {
    /// The hash of the name. Callers look up dozens of names in each entry, and most fields match none of
    /// them.
    name_hash: u64,
    start: u32,
    /// The offset of its `=`.
    equals: u32,
    end: u32,
}

impl FieldSpan {
    /// Appends a field, and returns its range.
    pub(super) fn append(name: &str, value: &str, text: &mut String) -> Self {
        let start = text.len() as u32;
        text.push_str(name);
        let equals = text.len() as u32;
        text.push('=');
        text.push_str(value);
        Self { name_hash: name_hash(name), start, equals, end: text.len() as u32 }
    }
}

impl EntryField {
    pub(super) fn new(text: &Rc<str>, span: FieldSpan, bytes: Option<Rc<[u8]>>) -> Self {
        Self { text: Rc::clone(text), span, bytes }
    }

    /// Whether it has this name, of which this is the hash.
    fn has_name(&self, name: &str, hash: u64) -> bool {
        self.span.name_hash == hash && self.name() == name
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

/// Hashes a name; names with the same hash are compared.
fn name_hash(name: &str) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl EntryHeader {
    fn of(object: EntryObject<'_>, seqnum_id: u128) -> Self {
        Self {
            position: EntryPosition { seqnum_id, seqnum: object.seqnum() },
            realtime_us: object.realtime_us(),
            monotonic_us: object.monotonic_us(),
            boot_id: object.boot_id(),
            xor_hash: object.xor_hash(),
        }
    }
}

impl Entry {
    /// Makes an entry that comes from no file: its [monotonic clock](Self::monotonic_us) and
    /// [sequence number](Self::seqnum) are 0, and its boot is that of its field `_BOOT_ID`.
    ///
    /// The names and values must be shorter than 4 GiB together.
    pub fn from_fields<'a>(
        realtime_us: u64,
        fields: impl IntoIterator<Item = (&'a str, &'a str), IntoIter: Clone>,
    ) -> Self {
        let all = fields.into_iter();
        let (n, bytes) = all
            .clone()
            .fold((0, 0), |(n, bytes), (name, value)| (n + 1, bytes + name.len() + value.len() + 1));
        let (mut text, mut spans) = (String::with_capacity(bytes), Vec::with_capacity(n));
        spans.extend(all.map(|(name, value)| FieldSpan::append(name, value, &mut text)));
        let text = Rc::from(text);
        let fields = spans.into_iter().map(|span| EntryField::new(&text, span, None)).collect();
        let position = EntryPosition { seqnum_id: 0, seqnum: 0 };
        let header = EntryHeader { position, realtime_us, monotonic_us: 0, boot_id: 0, xor_hash: 0 };
        let mut entry = Self { header, fields };
        let boot_id = entry.text("_BOOT_ID").and_then(|id| u128::from_str_radix(id, 16).ok());
        entry.header.boot_id = boot_id.unwrap_or_default();
        entry
    }

    /// Puts a field in place of each one with the name `of`.
    pub fn replace(&mut self, of: &str, (name, value): (&str, &str)) {
        let hash = name_hash(of);
        let mut text = String::new();
        let span = FieldSpan::append(name, value, &mut text);
        let text = Rc::from(text);
        for field in self.fields.iter_mut().filter(|field| field.has_name(of, hash)) {
            *field = EntryField::new(&text, span, None);
        }
    }

    /// Removes the fields with this name.
    pub fn remove(&mut self, name: &str) {
        let hash = name_hash(name);
        self.fields.retain(|field| !field.has_name(name, hash));
    }

    /// Moves it to an earlier time of its monotonic clock, in microseconds.
    pub fn move_back_to(&mut self, monotonic_us: u64) {
        let earlier_us = self.header.monotonic_us.saturating_sub(monotonic_us);
        self.header.monotonic_us -= earlier_us;
        self.header.realtime_us = self.header.realtime_us.saturating_sub(earlier_us);
    }

    pub(super) fn of_object(object: EntryObject<'_>, seqnum_id: u128, fields: Vec<EntryField>) -> Self {
        Self { header: EntryHeader::of(object, seqnum_id), fields }
    }

    /// Returns the emptied buffer of its fields.
    pub(super) fn into_buffer(mut self) -> Vec<EntryField> {
        self.fields.clear();
        self.fields
    }

    /// Returns the realtime clock at the entry, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.header.realtime_us
    }

    /// Returns the monotonic clock of its [boot](Self::boot_id) at the entry, in microseconds.
    pub fn monotonic_us(&self) -> u64 {
        self.header.monotonic_us
    }

    /// Returns the id of the boot in which the entry was written, as in `_BOOT_ID` and sd-id128(3).
    pub fn boot_id(&self) -> u128 {
        self.header.boot_id
    }

    /// Returns the sequence number, which counts the entries of one writer through all its files.
    pub fn seqnum(&self) -> u64 {
        self.header.position.seqnum
    }

    /// Returns the place behind the entry.
    pub fn position(&self) -> EntryPosition {
        self.header.position
    }

    /// Returns a key that an entry and its copy in another file share.
    pub(super) fn copy_key(&self) -> impl std::hash::Hash {
        let EntryHeader { boot_id, monotonic_us, realtime_us, xor_hash, .. } = self.header;
        (boot_id, monotonic_us, realtime_us, xor_hash)
    }

    /// Returns whether it has a field of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields_named(name).next().is_some()
    }

    /// Returns the value of a field as text; bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// If a field is repeated, it returns the last value in the order of the file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields_named(name).next_back().map(EntryField::text)
    }

    /// Returns the exact value of a field; the last one if the field is repeated.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.fields_named(name).next_back().map(EntryField::bytes)
    }

    /// Iterates over all values of a field, in the order of the file, which may differ from that of the
    /// writer.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields_named(name).map(EntryField::bytes)
    }

    /// Iterates over the names and values of all fields, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|field| (field.name(), field.bytes()))
    }

    fn fields_named(&self, name: &str) -> impl DoubleEndedIterator<Item = &EntryField> {
        let hash = name_hash(name);
        self.fields.iter().filter(move |field| field.has_name(name, hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_no_file_keeps_order_repeats_and_its_boot() {
        let fields =
            [("A", "1=2"), ("_BOOT_ID", "d27b8501be984d02a15d65fffc6d18d5"), ("A", ""), ("B", "ä\n")];
        let entry = Entry::from_fields(7, fields);
        assert_eq!((entry.realtime_us(), entry.monotonic_us(), entry.seqnum()), (7, 0, 0));
        assert_eq!(entry.boot_id(), 0xd27b_8501_be98_4d02_a15d_65ff_fc6d_18d5);
        let read: Vec<_> = entry.iter().collect();
        assert_eq!(read, fields.map(|(name, value)| (name, value.as_bytes())));
        assert_eq!((entry.text("A"), entry.text("C")), (Some(""), None));
        let mut other = entry.clone();
        other.replace("B", ("C", "2"));
        other.replace("D", ("E", "3"));
        let read: Vec<_> = other.iter().skip(2).collect();
        assert_eq!(read, [("A", &b""[..]), ("C", b"2")]);
        assert_eq!((entry.text("B"), other.text("B")), (Some("ä\n"), None));
    }
}
