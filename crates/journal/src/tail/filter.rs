//! Which entries are wanted, by the fields that they have.
//!
//! A journal file has a table of all names of fields, and for each a list of its values. So a file that has none of the
//! wanted fields need not be read, and where there are some, entries are told by where their fields lie.

use std::io;
use std::rc::Rc;

use super::data_reader::DataReader;
use super::entry::Entry;
use super::entry_scanner::EntryObject;
use super::object_reader::{ObjectHeader, ObjectReader};
use crate::hash;
use crate::layout::{INCOMPATIBLE_KEYED_HASH, kind, u64_at};

/// The most values of wanted fields in one file by which entries are told; with more of them, entries are told by
/// the names of their fields, when they have been read.
const VALUES_MAX: usize = 1 << 16;

/// The most names that share a bucket of the table; systemd has hundreds of buckets and some hundred names.
const CHAIN_MAX: usize = 10_000;

/// Where an object has the next of its bucket.
const FIELD_NEXT_AT: usize = 24;
/// Where a FIELD object has the latest of its values.
const FIELD_VALUES_AT: usize = 32;
const FIELD_NAME_AT: usize = 40;
/// Where a DATA object has the value that its field had before.
const DATA_NEXT_OF_FIELD_AT: usize = 32;

/// The wanted fields; none if all entries are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter(Rc<[FieldMatch]>);

/// A wanted field.
#[derive(Debug)]
struct FieldMatch {
    name: Box<str>,
    /// Any value if there is none.
    value: Option<Box<str>>,
}

impl Filter {
    /// Understands `NAME` and `NAME=value`.
    pub(super) fn new(fields: &[&str]) -> Self {
        let wanted = |field: &&str| match field.split_once('=') {
            None => FieldMatch { name: Box::from(*field), value: None },
            Some((name, value)) => FieldMatch { name: name.into(), value: Some(value.into()) },
        };
        Self(fields.iter().map(wanted).collect())
    }

    /// Tells whether an entry is wanted by its fields.
    pub(super) fn matches(&self, entry: &Entry) -> bool {
        let has = |wanted: &FieldMatch| match &wanted.value {
            None => entry.has(&wanted.name),
            Some(value) => entry.values(&wanted.name).any(|found| found == value.as_bytes()),
        };
        self.0.is_empty() || self.0.iter().any(has)
    }
}

impl FieldMatch {
    /// Tells whether a value is wanted; `None` if it is none of this field.
    fn matches(
        &self,
        (at, header): (u64, ObjectHeader),
        objects: &ObjectReader,
        data: &mut DataReader,
    ) -> io::Result<Option<bool>> {
        let head = objects.fixed_size(kind::DATA);
        let (size, wanted) = (header.size.saturating_sub(head), self.size());
        let mut plain = Vec::new();
        if header.compression.is_none() {
            let bytes = objects.bytes_at(at + head, wanted, &mut plain)?;
            let value = bytes.strip_prefix(self.name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            return Ok(value.map(|value| match &self.value {
                None => true,
                Some(wanted_value) => size == wanted as u64 && value == wanted_value.as_bytes(),
            }));
        }
        let Some(wanted_value) = &self.value else { return Ok(Some(true)) };
        // What is not smaller is not compressed.
        if size >= wanted as u64 {
            return Ok(Some(false));
        }
        data.begin_entry();
        data.append(objects, at, &mut plain)?;
        let value = plain.strip_prefix(self.name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        Ok(Some(value == Some(wanted_value.as_bytes())))
    }

    /// Bytes of the name, its `=` and the value, if there is one.
    fn size(&self) -> usize {
        self.name.len() + 1 + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// What a file says of the wanted fields.
#[derive(Debug)]
pub(super) struct MatchIndex {
    filter: Filter,
    /// The file does not say, or something in it is damaged.
    is_unknown: bool,
    /// How many fields the file had when it was asked for those not found yet.
    n_fields_searched: Option<u64>,
    found: Vec<MatchedField>,
    /// Where their values lie, in order.
    values: Vec<u64>,
}

/// A wanted field that the file has.
#[derive(Debug)]
struct MatchedField {
    wanted: usize,
    offset: u64,
    /// The latest value that is known.
    latest: u64,
}

/// Something in the file is not as it should be.
struct TableError;

impl MatchIndex {
    pub(super) fn new(filter: Filter) -> Self {
        let is_unknown = filter.0.is_empty();
        Self { filter, is_unknown, n_fields_searched: None, found: Vec::new(), values: Vec::new() }
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Tells whether the file may have a wanted entry.
    pub(super) fn may_match_any(&self) -> bool {
        self.is_unknown || !self.values.is_empty()
    }

    /// Tells whether an entry may be wanted.
    pub(super) fn may_match(&self, entry: EntryObject<'_>) -> bool {
        self.is_unknown || entry.items().any(|offset| self.values.binary_search(&offset).is_ok())
    }

    /// Asks the file again, whose header was just read.
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
            for (wanted, FieldMatch { name, .. }) in self.filter.0.iter().enumerate() {
                if self.found.iter().any(|found| found.wanted == wanted) {
                    continue;
                }
                match find(objects, name.as_bytes())? {
                    Ok(None) => {}
                    Ok(Some(offset)) => self.found.push(MatchedField { wanted, offset, latest: 0 }),
                    Err(error) => return Ok(Err(error)),
                }
            }
            self.n_fields_searched = Some(header.n_fields);
        }
        for found in &mut self.found {
            let wanted = &self.filter.0[found.wanted];
            if let Err(error) = found.collect(objects, (wanted, data), &mut self.values)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}

impl MatchedField {
    /// Adds the values that are new, the latest of which come first.
    fn collect(
        &mut self,
        objects: &ObjectReader,
        (wanted, data): (&FieldMatch, &mut DataReader),
        values: &mut Vec<u64>,
    ) -> io::Result<Result<(), TableError>> {
        let mut scratch = Vec::new();
        let Some((_, field)) = objects.fixed_part(self.offset, kind::FIELD, &mut scratch)? else {
            return Ok(Err(TableError));
        };
        let latest = u64_at(field, FIELD_VALUES_AT);
        let mut next = latest;
        let before = values.len();
        while next != self.latest && next != 0 {
            let Some((header, bytes)) = objects.fixed_part(next, kind::DATA, &mut scratch)? else {
                return Ok(Err(TableError));
            };
            let (value, following) = (next, u64_at(bytes, DATA_NEXT_OF_FIELD_AT));
            let is_wanted = wanted.matches((value, header), objects, data)?;
            match is_wanted {
                None => return Ok(Err(TableError)),
                Some(true) => values.push(value),
                Some(false) => {}
            }
            if values.len() > VALUES_MAX {
                return Ok(Err(TableError));
            }
            next = following;
        }
        // A list that ends before what was its beginning has lost something.
        if next != self.latest {
            return Ok(Err(TableError));
        }
        if values.len() > before {
            values.sort_unstable();
        }
        self.latest = latest;
        Ok(Ok(()))
    }
}

/// Finds where the FIELD object of a name lies.
fn find(objects: &ObjectReader, name: &[u8]) -> io::Result<Result<Option<u64>, TableError>> {
    let header = objects.header();
    let is_keyed = header.incompatible_flags & INCOMPATIBLE_KEYED_HASH != 0;
    let hash = if is_keyed { hash::keyed(header.file_id, name) } else { hash::jenkins(name) };
    // A bucket is where its first object lies and where its last one does.
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
