//! The fields of one entry that is to be written.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;

/// The longest field name that journald accepts, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The most bytes that the fields of one entry may have together, names and `=` signs included.
///
/// [`FileWriter::append`](crate::FileWriter::append) refuses a larger entry.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The most fields that one entry may have, as in journald.
pub const ENTRY_FIELDS_MAX: usize = 1024;

/// The fields of one entry, reusable between entries.
///
/// All fields share one buffer, so a warm `EntryBuf` does not allocate. A name may appear more than once, as
/// in the journal. `push` does not fail on a bad field (an invalid name, more than [`ENTRY_BYTES_MAX`]
/// bytes): the buffer keeps the first such fault, and `append` and `send` return it instead of dropping the
/// field silently.
#[derive(Clone, Debug, Default)]
pub struct EntryBuf {
    /// `NAME=value` of all fields, one after the other.
    bytes: Vec<u8>,
    fields: Vec<FieldRange>,
    fault: Option<EntryFault>,
}

/// The range of one field in the buffer.
#[derive(Clone, Debug)]
struct FieldRange {
    payload: Range<usize>,
    name_len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// A field name that journald does not accept from a client.
    #[error("\"{0}\" is not a field name (A-Z, 0-9 and _, at most 64 bytes, no digit or _ in front)")]
    FieldName(String),
    /// More than [`ENTRY_BYTES_MAX`] bytes of fields.
    #[error("its fields exceed {ENTRY_BYTES_MAX} bytes")]
    TooLarge,
    /// More than [`ENTRY_FIELDS_MAX`] fields.
    #[error("it has more than {ENTRY_FIELDS_MAX} fields")]
    TooManyFields,
    /// No field at all.
    #[error("it has no field")]
    Empty,
}

impl EntryBuf {
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all fields and any fault, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.fault = None;
    }

    /// Adds a field; the value may be any bytes.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        if is_client_name(name) {
            self.add(name, |bytes| bytes.extend_from_slice(value));
        } else {
            self.refuse_name(name);
        }
    }

    /// Adds a field with the text that `value` displays.
    pub fn push_display(&mut self, name: &str, value: impl fmt::Display) {
        if is_client_name(name) {
            // Writing to a `Vec` cannot fail. If a `Display` fails, the text it wrote before is kept.
            self.add(name, |bytes| drop(write!(bytes, "{value}")));
        } else {
            self.refuse_name(name);
        }
    }

    /// Adds a trusted field (`_PID`, `_BOOT_ID`), whose name begins with an underscore.
    ///
    /// journald adds these itself and accepts them from no client. In our own files, we add them.
    pub fn push_trusted(&mut self, name: &str, value: &[u8]) {
        if name.strip_prefix('_').is_some_and(is_client_name) && name.len() <= NAME_BYTES_MAX {
            self.add(name, |bytes| bytes.extend_from_slice(value));
        } else {
            self.refuse_name(name);
        }
    }

    /// Iterates over names and values in the order of `push`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().filter_map(|field| {
            let payload = &self.bytes[field.payload.clone()];
            let name = std::str::from_utf8(&payload[..field.name_len]).ok()?;
            Some((name, &payload[field.name_len + 1..]))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns the first reason why this entry cannot be written.
    pub fn fault(&self) -> Option<&EntryFault> {
        self.fault.as_ref()
    }

    /// Iterates over the fields as `NAME=value`, with the length of the name.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.fields.iter().map(|field| (&self.bytes[field.payload.clone()], field.name_len))
    }

    /// Returns the size of all fields, in bytes.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn add(&mut self, name: &str, write_value: impl FnOnce(&mut Vec<u8>)) {
        if self.fields.len() == ENTRY_FIELDS_MAX {
            self.fault.get_or_insert(EntryFault::TooManyFields);
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'=');
        write_value(&mut self.bytes);
        if self.bytes.len() > ENTRY_BYTES_MAX {
            self.bytes.truncate(start);
            self.fault.get_or_insert(EntryFault::TooLarge);
            return;
        }
        self.fields.push(FieldRange { payload: start..self.bytes.len(), name_len: name.len() });
    }

    fn refuse_name(&mut self, name: &str) {
        self.fault.get_or_insert_with(|| EntryFault::FieldName(name.escape_debug().take(80).collect()));
    }
}

/// Returns whether a client may use this field name, by the rule of journald's `journal_field_valid`.
fn is_client_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let [first, ..] = bytes else { return false };
    bytes.len() <= NAME_BYTES_MAX
        && first.is_ascii_uppercase()
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iter_keeps_order_repeats_and_any_bytes() {
        let mut entry = EntryBuf::new();
        entry.push("A", b"x\n\0\xff=");
        entry.push_display("B_2", 42);
        entry.push("A", b"");
        entry.push_trusted("_PID", b"7");
        let fields: Vec<_> = entry.iter().collect();
        let expected: Vec<(&str, &[u8])> =
            vec![("A", b"x\n\0\xff="), ("B_2", b"42"), ("A", b""), ("_PID", b"7")];
        assert_eq!(fields, expected);
        assert_eq!(entry.fault(), None);
    }

    #[test]
    fn an_invalid_field_name_becomes_a_fault() {
        let long = "A".repeat(65);
        for name in ["", "a", "1A", "_A", "A-B", "A B", "A=B", "Ä", "A\n", &long] {
            let mut entry = EntryBuf::new();
            entry.push(name, b"x");
            assert!(matches!(entry.fault(), Some(EntryFault::FieldName(_))), "{name:?}");
            assert!(entry.is_empty());
        }
        for name in ["A", "_", "__A", "_1"] {
            let mut entry = EntryBuf::new();
            entry.push_trusted(name, b"x");
            assert!(entry.fault().is_some(), "{name:?}");
        }
        let mut entry = EntryBuf::new();
        entry.push(&"A".repeat(64), b"x");
        assert_eq!(entry.fault(), None);
    }

    #[test]
    fn a_field_above_the_size_limit_becomes_a_fault_and_is_dropped() {
        let mut entry = EntryBuf::new();
        entry.push("A", b"1");
        entry.push("B", &vec![0; ENTRY_BYTES_MAX]);
        assert_eq!(entry.fault(), Some(&EntryFault::TooLarge));
        assert_eq!(entry.payload_bytes(), 3);
        entry.clear();
        assert_eq!(entry.fault(), None);
    }
}
