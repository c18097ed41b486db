//! The static table (RFC 7541, appendix A), and the dynamic table of a connection.

use std::collections::VecDeque;

/// The size of an entry beyond its name and value (RFC 7541, section 4.1).
pub const ENTRY_BYTES: usize = 32;

/// The fields that added ones are counted from.
pub const STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The dynamic table (RFC 7541, section 2.3.2): fields that the peer's blocks have added, newest first, each with a tag.
#[derive(Debug)]
pub(super) struct DynamicTable<T> {
    entries: VecDeque<TableEntry<T>>,
    /// The size of all entries as RFC 7541, section 4.1, counts it; at most `bytes_max`.
    bytes: usize,
    bytes_max: usize,
    /// Memory of an entry that has left, which the next one takes.
    spare: Vec<u8>,
}

pub(super) type TableField<'a, T> = (&'a [u8], &'a [u8], T);

#[derive(Debug)]
struct TableEntry<T> {
    /// The name, and behind it the value.
    text: Vec<u8>,
    name_len: usize,
    tag: T,
}

impl<T> TableEntry<T> {
    fn bytes(&self) -> usize {
        self.text.len() + ENTRY_BYTES
    }
}

impl<T: Copy> DynamicTable<T> {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, bytes_max, spare: Vec::new() }
    }

    pub(super) fn get(&self, index: usize) -> Option<TableField<'_, T>> {
        let entry = self.entries.get(index)?;
        let (name, value) = entry.text.split_at(entry.name_len);
        Some((name, value, entry.tag))
    }

    /// The tags of the entries, newest first.
    pub(super) fn tags_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.tag)
    }

    /// Adds a field, and evicts older ones for it. A field that is larger than the table empties it.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], tag: T) {
        let bytes = name.len() + value.len() + ENTRY_BYTES;
        self.shrink(self.bytes_max.saturating_sub(bytes));
        if bytes > self.bytes_max {
            return;
        }
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        text.extend_from_slice(name);
        text.extend_from_slice(value);
        self.bytes += bytes;
        self.entries.push_front(TableEntry { text, name_len: name.len(), tag });
    }

    pub(super) fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.shrink(bytes_max);
    }

    fn shrink(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.bytes -= entry.bytes();
            self.spare = entry.text;
        }
    }
}
