//! Selects entries by their fields.
//!
//! A journal file has a table of all field names, and for each name a list of its values. So files without the
//! selected fields are not read. In other files, the offsets of an entry's values show whether it matches; if few do, each
//! value's list of its entries has them.

use std::collections::HashSet;
use std::io;
use std::rc::Rc;

use super::data_reader::DataReader;
use super::entry::Entry;
use super::entry_scanner::EntryObject;
use super::object_reader::{ObjectHeader, ObjectReader};
use crate::hash;
use crate::layout::{FileHeader, INCOMPATIBLE_KEYED_HASH, kind, u64_at};

/// The most matching values of one file that are indexed. With more, every entry is decoded and its names
/// compared.
const VALUES_MAX: usize = 1 << 16;

/// The most names that share a bucket of the table; systemd has hundreds of buckets, and about as many names.
const CHAIN_MAX: usize = 10_000;

/// The offset of a FIELD object's link to the next one in its bucket.
const FIELD_NEXT_AT: usize = 24;
/// The offset of a FIELD object's link to its latest value.
const FIELD_VALUES_AT: usize = 32;
const FIELD_NAME_AT: usize = 40;
/// The offset of a DATA object's link to the previous value of its field.
const DATA_NEXT_OF_FIELD_AT: usize = 32;

/// Entries are read by their lists if they are at most one in so many, and so many in all.
const LISTED_SHARE: u64 = 2;
const LISTED_MAX: u64 = 1 << 20;

/// The selected fields; if empty, every entry matches.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldFilter(Rc<[FieldMatch]>);

#[derive(Clone, Debug)]
struct FieldMatch {
    name: Box<str>,
    /// `None` matches any value.
    value: Option<Box<str>>,
    /// Of each value, one entry of a file is enough.
    is_first_enough: bool,
}

impl FieldFilter {
    /// Parses `NAME` and `NAME=value`.
    pub(super) fn new(fields: &[&str]) -> Self {
        let parse = |field: &&str| match field.split_once('=') {
            None => FieldMatch::any(field),
            Some((name, value)) => FieldMatch { value: Some(value.into()), ..FieldMatch::any(name) },
        };
        Self(fields.iter().map(parse).collect())
    }

    /// Selects the first entry with each value of a field, too.
    pub(super) fn or_first_of(&self, name: &str) -> Self {
        let first = FieldMatch { is_first_enough: true, ..FieldMatch::any(name) };
        Self(self.0.iter().cloned().chain([first]).collect())
    }

    pub(super) fn matches(&self, entry: &Entry) -> bool {
        let has = |selected: &FieldMatch| match &selected.value {
            None => entry.has(&selected.name),
            Some(value) => entry.values(&selected.name).any(|found| found == value.as_bytes()),
        };
        self.0.is_empty() || self.0.iter().any(has)
    }
}

impl FieldMatch {
    fn any(name: &str) -> Self {
        Self { name: name.into(), value: None, is_first_enough: false }
    }

    /// Returns whether a value matches; `None` if it belongs to another field.
    fn matches(
        &self,
        (at, header): (u64, ObjectHeader),
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<Option<bool>> {
        let head = objects.fixed_size(kind::DATA);
        let (size, match_size) = (header.size.saturating_sub(head), self.size());
        let mut plain = Vec::new();
        if header.compression.is_none() {
            let bytes = objects.bytes_at(at + head, match_size, &mut plain)?;
            let value = bytes.strip_prefix(self.name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            return Ok(value.map(|value| match &self.value {
                None => true,
                Some(wanted_value) => size == match_size as u64 && value == wanted_value.as_bytes(),
            }));
        }
        let Some(wanted_value) = &self.value else { return Ok(Some(true)) };
        // A value is only compressed if that makes it smaller.
        if size >= match_size as u64 {
            return Ok(Some(false));
        }
        data.begin_entry();
        data.append(objects, at, &mut plain)?;
        let value = plain.strip_prefix(self.name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        Ok(Some(value == Some(wanted_value.as_bytes())))
    }

    /// The size of the name, its `=` and the value, if there is one.
    fn size(&self) -> usize {
        self.name.len() + 1 + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// The values of one file that match a filter.
#[derive(Debug)]
pub(super) struct MatchIndex {
    filter: FieldFilter,
    /// The index cannot be used: there is no filter, or a table is damaged.
    is_unknown: bool,
    /// The number of fields in the file when it was last searched for missing ones.
    n_fields_searched: Option<u64>,
    found: Vec<MatchedField>,
    /// The offsets of the matching values, sorted.
    values: Vec<u64>,
    /// Those of which one entry is enough.
    firsts: HashSet<u64>,
}

/// A selected field that the file has.
#[derive(Debug)]
struct MatchedField {
    match_index: usize,
    offset: u64,
    /// The latest value that is indexed.
    latest: u64,
}

/// A table of the file is damaged or too large.
struct TableError;

impl MatchIndex {
    pub(super) fn new(filter: FieldFilter) -> Self {
        let is_unknown = filter.0.is_empty();
        Self {
            filter,
            is_unknown,
            n_fields_searched: None,
            found: Vec::new(),
            values: Vec::new(),
            firsts: HashSet::new(),
        }
    }

    pub(super) fn filter(&self) -> &FieldFilter {
        &self.filter
    }

    /// Returns whether the file may have a matching entry.
    pub(super) fn may_match_any(&self) -> bool {
        self.is_unknown || !self.values.is_empty()
    }

    /// Returns whether an entry may match.
    pub(super) fn may_match(&self, entry: EntryObject<'_>) -> bool {
        self.is_unknown || entry.items().any(|offset| self.values.binary_search(&offset).is_ok())
    }

    /// Returns the offsets of the matching entries in the order of writing, if they are few and their lists are sound.
    pub(super) fn listed_entries(&self, objects: &ObjectReader) -> io::Result<Option<Vec<u64>>> {
        let FileHeader { n_entries, .. } = *objects.header();
        let entries_max = (n_entries / LISTED_SHARE).min(LISTED_MAX);
        if self.is_unknown || self.values.len() as u64 > entries_max {
            return Ok(None);
        }
        let (len_max, mut entries) = (entries_max as usize, Vec::new());
        for value in &self.values {
            let len = if self.firsts.contains(value) { 1 } else { usize::MAX };
            if !objects.list_entries(*value, (len, len_max), &mut entries)? {
                return Ok(None);
            }
        }
        entries.sort_unstable();
        entries.dedup();
        Ok(Some(entries))
    }

    /// Updates the index after the file's header was read again.
    pub(super) fn refresh(&mut self, objects: &ObjectReader, data: &mut DataReader) -> io::Result<()> {
        if !self.is_unknown && self.update(objects, data)?.is_err() {
            self.is_unknown = true;
            self.values = Vec::new();
        }
        Ok(())
    }

    fn update(
        &mut self,
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<Result<(), TableError>> {
        let header = objects.header();
        if self.n_fields_searched != Some(header.n_fields) || header.n_fields == 0 {
            for (match_index, FieldMatch { name, .. }) in self.filter.0.iter().enumerate() {
                if self.found.iter().any(|found| found.match_index == match_index) {
                    continue;
                }
                match find(objects, name.as_bytes())? {
                    Ok(None) => {}
                    Ok(Some(offset)) => self.found.push(MatchedField { match_index, offset, latest: 0 }),
                    Err(error) => return Ok(Err(error)),
                }
            }
            self.n_fields_searched = Some(header.n_fields);
        }
        let before = self.values.len();
        for found in &mut self.found {
            let field_match = &self.filter.0[found.match_index];
            let known = self.values.len();
            if let Err(error) = found.collect(objects, (field_match, data), &mut self.values)? {
                return Ok(Err(error));
            }
            if field_match.is_first_enough {
                self.firsts.extend(&self.values[known..]);
            }
        }
        if self.values.len() > before {
            self.values.sort_unstable();
        }
        Ok(Ok(()))
    }
}

impl MatchedField {
    /// Adds the new values; the list starts with the latest.
    fn collect(
        &mut self,
        objects: &ObjectReader,
        (field_match, data): (&FieldMatch, &mut DataReader),
        values: &mut Vec<u64>,
    ) -> io::Result<Result<(), TableError>> {
        let mut scratch = Vec::new();
        let Some((_, field)) = objects.fixed_part(self.offset, kind::FIELD, &mut scratch)? else {
            return Ok(Err(TableError));
        };
        let latest = u64_at(field, FIELD_VALUES_AT);
        let mut next = latest;
        while next != self.latest && next != 0 {
            let Some((header, bytes)) = objects.fixed_part(next, kind::DATA, &mut scratch)? else {
                return Ok(Err(TableError));
            };
            let (value, following) = (next, u64_at(bytes, DATA_NEXT_OF_FIELD_AT));
            let is_match = field_match.matches((value, header), objects, data)?;
            match is_match {
                None => return Ok(Err(TableError)),
                Some(true) => values.push(value),
                Some(false) => {}
            }
            if values.len() > VALUES_MAX {
                return Ok(Err(TableError));
            }
            next = following;
        }
        // A list that ends before its former start has lost values.
        if next != self.latest {
            return Ok(Err(TableError));
        }
        self.latest = latest;
        Ok(Ok(()))
    }
}

/// Returns the offset of the FIELD object of a name.
fn find(objects: &ObjectReader, name: &[u8]) -> io::Result<Result<Option<u64>, TableError>> {
    let header = objects.header();
    let is_keyed = header.incompatible_flags & INCOMPATIBLE_KEYED_HASH != 0;
    let hash = if is_keyed { hash::keyed(header.file_id, name) } else { hash::jenkins(name) };
    // A bucket holds the offsets of its first and last object.
    let Some(bucket) = hash.checked_rem(header.field_hash_table_size / 16) else {
        return Ok(Err(TableError));
    };
    let mut scratch = Vec::new();
    let bucket_at = header.field_hash_table_offset.saturating_add(bucket * 16);
    let bytes = objects.bytes_at(bucket_at, 8, &mut scratch)?;
    if bytes.len() < 8 {
        return Ok(Err(TableError));
    }
    let mut next = u64_at(bytes, 0);
    for _ in 0..CHAIN_MAX {
        if next == 0 {
            return Ok(Ok(None));
        }
        let Some((field, bytes)) = objects.fixed_part(next, kind::FIELD, &mut scratch)? else {
            return Ok(Err(TableError));
        };
        let following = u64_at(bytes, FIELD_NEXT_AT);
        if field.size == (FIELD_NAME_AT + name.len()) as u64 {
            let found = objects.bytes_at(next + FIELD_NAME_AT as u64, name.len(), &mut scratch)?;
            if found == name {
                return Ok(Ok(Some(next)));
            }
        }
        next = following;
    }
    Ok(Err(TableError))
}
