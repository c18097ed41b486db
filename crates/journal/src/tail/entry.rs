//! An entry as it is read.

/// One entry that was read.
#[derive(Debug)]
pub struct Entry {
    inner: systemd_journal_reader::Entry,
}

impl Entry {
    pub(super) fn new(inner: systemd_journal_reader::Entry) -> Self {
        Self { inner }
    }

    /// Gives the time of the entry by the realtime clock, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.inner.realtime
    }

    /// Gives the value of a field.
    ///
    /// Bytes that are not UTF-8 were replaced by U+FFFD by the reader below. Of a field that appears more than once
    /// one of the values is given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.inner.fields.get(name).map(|value| &**value)
    }

    /// Gives the value of a field as bytes; see [`text`](Self::text) for what is not preserved.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.text(name).map(str::as_bytes)
    }

    /// Iterates over names and values of all fields, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.inner.fields.iter().map(|(name, value)| (&**name, value.as_bytes()))
    }
}
