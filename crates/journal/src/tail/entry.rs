//! An entry as it is read.

use super::stream::Head;

/// One entry that was read.
#[derive(Debug)]
pub struct Entry {
    inner: systemd_journal_reader::Entry,
    head: Head,
    /// All its fields, if `inner` does not preserve them.
    exact: Option<Vec<(String, Vec<u8>)>>,
}

impl Entry {
    pub(super) fn new(
        head: Head,
        inner: systemd_journal_reader::Entry,
        exact: Option<Vec<(String, Vec<u8>)>>,
    ) -> Self {
        Self { inner, head, exact }
    }

    /// Gives the time of the entry by the realtime clock, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.inner.realtime
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
        (self.head.boot_id, self.head.monotonic_us, self.inner.realtime, self.head.xor_hash)
    }

    /// Gives the value of a field as text: bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// Of a field that appears more than once the last value is given, by the order of the file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.inner.fields.get(name).map(|value| &**value)
    }

    /// Gives the value of a field, byte for byte, of a field that appears more than once the last one.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        match &self.exact {
            None => self.text(name).map(str::as_bytes),
            Some(_) => self.values(name).last(),
        }
    }

    /// Iterates over all values of a field, in the order of the file, which need not be that of the writer.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let only = if self.exact.is_none() { self.text(name).map(str::as_bytes) } else { None };
        let all = self.exact.iter().flatten().filter(move |(other, _)| other == name);
        only.into_iter().chain(all.map(|(_, value)| &**value))
    }

    /// Iterates over names and values of all fields, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let fields = if self.exact.is_none() { Some(&self.inner.fields) } else { None };
        let read = fields.into_iter().flatten().map(|(name, value)| (&**name, value.as_bytes()));
        read.chain(self.exact.iter().flatten().map(|(name, value)| (&**name, &**value)))
    }
}
