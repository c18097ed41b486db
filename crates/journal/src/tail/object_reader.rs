//! Reads the objects of a file within bounds.
//!
//! The file may be growing, damaged or hostile: no offset, size or count in it is trusted, and bytes beyond
//! its end do not exist.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::compression::Compression;
use crate::layout::{
    FileHeader, HEADER_BYTES, HEADER_BYTES_MIN, INCOMPATIBLE_COMPACT, INCOMPATIBLE_KEYED_HASH,
    OBJECT_HEADER_BYTES, kind, offset_in, u64_at,
};

/// The part of the file that is read in one step.
const WINDOW_BYTES: u64 = 256 << 10;

/// All known headers are much smaller than this.
const HEADER_BYTES_MAX: u64 = 4096;

/// A damaged header may count any number of bytes; no compact file is larger than this.
const MISSING_BYTES_MAX: u64 = u32::MAX as u64;

const INCOMPATIBLE_KNOWN: u32 = INCOMPATIBLE_KEYED_HASH
    | INCOMPATIBLE_COMPACT
    | Compression::Xz.file_flag()
    | Compression::Lz4.file_flag()
    | Compression::Zstd.file_flag();

/// The offset of the items in an `ENTRY_ARRAY` object.
const ARRAY_ITEMS_AT: usize = 24;
/// Each array holds twice as many entries as the one before, so there are few.
const ARRAYS_MAX: usize = 1000;

/// The offsets of a DATA object's links to its entries, and of their number.
const DATA_FIRST_ENTRY_AT: usize = 40;
const DATA_ENTRY_ARRAY_AT: usize = 48;
const DATA_N_ENTRIES_AT: usize = 56;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileHeaderError {
    NotAJournal(&'static str),
    Unsupported(String),
}

#[derive(Debug)]
pub(super) struct ObjectReader {
    file: File,
    header: FileHeader,
    is_compact: bool,
    /// The end of the last object, or of the file if that comes first.
    end: u64,
    /// The bytes that the header counts and the file does not have.
    missing_bytes: u64,
    /// The part of the file in memory, and its offset.
    window: Vec<u8>,
    window_start: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectHeader {
    pub(super) kind: u8,
    pub(super) compression: Option<Compression>,
    pub(super) size: u64,
    /// The size with padding.
    pub(super) padded_size: u64,
}

impl ObjectReader {
    /// Reads the header of a file that may be a journal.
    pub(super) fn new(file: File) -> io::Result<Result<Self, FileHeaderError>> {
        let mut bytes = [0; HEADER_BYTES];
        let len = read_at_most(&file, &mut bytes, 0)?;
        let header = match check(&bytes[..len]) {
            Ok(header) => header,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let is_compact = header.incompatible_flags & INCOMPATIBLE_COMPACT != 0;
        Ok(Ok(Self {
            file,
            header,
            is_compact,
            end: 0,
            missing_bytes: 0,
            window: Vec::new(),
            window_start: 0,
        }))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the header as it was last read.
    pub(super) fn header(&self) -> &FileHeader {
        &self.header
    }

    pub(super) fn is_compact(&self) -> bool {
        self.is_compact
    }

    /// Returns the end of the last object, or of the file if that comes first, as of the last refresh.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns how many bytes the header counts that were cut off the file, as of the last refresh.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// Reads the header again: it says how far a growing file extends.
    pub(super) fn refresh(&mut self) -> io::Result<()> {
        // The window may be outdated: a field gets new values, and a bucket its first field.
        self.window.clear();
        // A header that has become damaged is ignored in favour of the former one.
        if let Some(header) = self.read_header()? {
            self.header = header;
        }
        let file_size = self.file.metadata()?.len();
        let file_end = file_size & !7;
        let tail = self.header.tail_object_offset;
        let mut object = [0; OBJECT_HEADER_BYTES as usize];
        let is_whole = read_at_most(&self.file, &mut object, tail)? == object.len();
        let tail_end = tail.saturating_add(u64_at(&object, 8)).checked_next_multiple_of(8);
        self.end = match tail_end {
            Some(end) if is_whole => end.min(file_end),
            _ => file_end,
        };
        let is_cut = !is_whole || tail_end.is_none_or(|end| end > file_size);
        self.missing_bytes = if is_cut { self.count_missing_bytes(file_size)? } else { 0 };
        Ok(())
    }

    fn read_header(&self) -> io::Result<Option<FileHeader>> {
        let mut bytes = [0; HEADER_BYTES];
        let len = read_at_most(&self.file, &mut bytes, 0)?;
        Ok(FileHeader::parse(&bytes[..len]))
    }

    fn count_missing_bytes(&self, file_size: u64) -> io::Result<u64> {
        let arena = |header: &FileHeader| (header.header_size, header.arena_size);
        let missing =
            self.header.header_size.saturating_add(self.header.arena_size).saturating_sub(file_size);
        // A writer that grows or shrinks the file meanwhile changes the header too.
        let is_settled =
            missing > 0 && self.read_header()?.is_some_and(|now| arena(&now) == arena(&self.header));
        Ok(if is_settled { missing.min(MISSING_BYTES_MAX) } else { 0 })
    }

    /// Reads the objects from `offset` on into memory, up to the window size.
    pub(super) fn load_window(&mut self, offset: u64) -> io::Result<()> {
        let len = self.end.saturating_sub(offset).min(WINDOW_BYTES) as usize;
        if self.window.capacity() > len.saturating_mul(4) {
            self.window = Vec::new();
        }
        self.window.resize(len, 0);
        self.window_start = offset;
        let read = read_at_most(&self.file, &mut self.window, offset)?;
        self.window.truncate(read);
        Ok(())
    }

    /// Frees the part of the file that is in memory.
    pub(super) fn drop_window(&mut self) {
        self.window = Vec::new();
    }

    /// Returns the bytes in memory from `offset` on.
    pub(super) fn in_window(&self, offset: u64) -> &[u8] {
        let skipped = offset.checked_sub(self.window_start).and_then(|skipped| usize::try_from(skipped).ok());
        skipped.and_then(|skipped| self.window.get(skipped..)).unwrap_or_default()
    }

    /// Returns the bytes at `offset`, from memory or read into `scratch`; fewer than `len` at the end of the
    /// file.
    pub(super) fn bytes_at<'a>(
        &'a self,
        offset: u64,
        len: usize,
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        if let Some(bytes) = self.in_window(offset).get(..len) {
            return Ok(bytes);
        }
        scratch.resize(len, 0);
        let read = read_at_most(&self.file, scratch, offset)?;
        Ok(&scratch[..read])
    }

    /// Parses the header of an object at `offset`; `None` if no object there can end before `end`.
    pub(super) fn parse(&self, bytes: &[u8], offset: u64, end: u64) -> Option<ObjectHeader> {
        if bytes.len() < OBJECT_HEADER_BYTES as usize {
            return None;
        }
        let (kind, flags, reserved, size) = (bytes[0], bytes[1], &bytes[2..8], u64_at(bytes, 8));
        let padded_size = size.checked_next_multiple_of(8)?;
        let compression = Compression::of_object(flags)
            .filter(|by| kind == kind::DATA && self.header.incompatible_flags & by.file_flag() != 0);
        let is_sound = (flags == 0 || compression.is_some())
            && reserved.iter().all(|byte| *byte == 0)
            && size >= self.fixed_size(kind)
            && offset.is_multiple_of(8)
            && offset >= self.header.header_size
            && padded_size <= end.checked_sub(offset)?;
        is_sound.then_some(ObjectHeader { kind, compression, size, padded_size })
    }

    /// Returns the size of an object without its payload or items.
    pub(super) fn fixed_size(&self, kind: u8) -> u64 {
        match kind {
            kind::DATA if self.is_compact => 72,
            kind::DATA | kind::ENTRY | kind::TAG => 64,
            kind::FIELD => 40,
            kind::ENTRY_ARRAY => ARRAY_ITEMS_AT as u64,
            _ => OBJECT_HEADER_BYTES,
        }
    }

    /// Returns the object at `offset` without its payload or items, if it is of this kind.
    ///
    /// It may lie beyond the end as of the last refresh.
    pub(super) fn fixed_part<'a>(
        &'a self,
        offset: u64,
        kind: u8,
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<Option<(ObjectHeader, &'a [u8])>> {
        let len = self.fixed_size(kind) as usize;
        let bytes = self.bytes_at(offset, len, scratch)?;
        let object = self.parse(bytes, offset, u64::MAX);
        let object = object.filter(|object| object.kind == kind && bytes.len() == len);
        Ok(object.map(|object| (object, bytes)))
    }

    /// Adds the offsets of the entries that have the value at `offset`, the first `len` of them; returns false if there are
    /// more than `len_max` in all then, or the list is damaged.
    pub(super) fn list_entries(
        &self,
        offset: u64,
        (len, len_max): (usize, usize),
        entries: &mut Vec<u64>,
    ) -> io::Result<bool> {
        let mut scratch = Vec::new();
        let Some((_, data)) = self.fixed_part(offset, kind::DATA, &mut scratch)? else { return Ok(false) };
        let (first, mut array) = (u64_at(data, DATA_FIRST_ENTRY_AT), u64_at(data, DATA_ENTRY_ARRAY_AT));
        let count = usize::try_from(u64_at(data, DATA_N_ENTRIES_AT)).unwrap_or(usize::MAX).min(len);
        // A writer links a value to its entry last.
        if first == 0 || count == 0 {
            return Ok(true);
        }
        if count > len_max.saturating_sub(entries.len()) {
            return Ok(false);
        }
        let begin = entries.len();
        entries.push(first);
        while entries.len() - begin < count {
            let Some((object, bytes)) = self.fixed_part(array, kind::ENTRY_ARRAY, &mut scratch)? else {
                return Ok(false);
            };
            let next = u64_at(bytes, 16);
            let item_bytes = if self.is_compact { 4 } else { 8 };
            let items = (object.size - ARRAY_ITEMS_AT as u64) / item_bytes;
            let items = items.min((count - (entries.len() - begin)) as u64);
            let items_at = array + ARRAY_ITEMS_AT as u64;
            let bytes = self.bytes_at(items_at, (items * item_bytes) as usize, &mut scratch)?;
            if bytes.is_empty() {
                return Ok(false);
            }
            entries.extend(bytes.chunks_exact(item_bytes as usize).map(offset_in));
            array = next;
        }
        let listed = &entries[begin..];
        if !listed.is_sorted_by(|a, b| a < b) {
            return Ok(false);
        }
        for entry in listed {
            if self.fixed_part(*entry, kind::ENTRY, &mut scratch)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the offset of an entry by its number in the file, from the entry arrays.
    pub(super) fn entry_offset(&self, mut number: u64) -> io::Result<Option<u64>> {
        let item_bytes = if self.is_compact { 4 } else { 8 };
        let mut offset = self.header.entry_array_offset;
        let mut scratch = Vec::new();
        for _ in 0..ARRAYS_MAX {
            let found = self.fixed_part(offset, kind::ENTRY_ARRAY, &mut scratch)?;
            let Some((array, bytes)) = found else { return Ok(None) };
            let items = (array.size - ARRAY_ITEMS_AT as u64) / item_bytes;
            if number >= items {
                number -= items;
                offset = u64_at(bytes, 16);
                continue;
            }
            let item_at = offset + ARRAY_ITEMS_AT as u64 + number * item_bytes;
            let mut item = [0; 8];
            let read = read_at_most(&self.file, &mut item[..item_bytes as usize], item_at)?;
            let entry = u64::from_le_bytes(item);
            let is_entry =
                read as u64 == item_bytes && self.fixed_part(entry, kind::ENTRY, &mut scratch)?.is_some();
            return Ok(is_entry.then_some(entry));
        }
        Ok(None)
    }
}

/// Checks whether a file with this header can be read.
fn check(bytes: &[u8]) -> Result<FileHeader, FileHeaderError> {
    if bytes.len() < HEADER_BYTES_MIN {
        return Err(FileHeaderError::NotAJournal("it is too short"));
    }
    let header = FileHeader::parse(bytes).ok_or(FileHeaderError::NotAJournal("its header is invalid"))?;
    let unknown = header.incompatible_flags & !INCOMPATIBLE_KNOWN;
    if unknown != 0 {
        return Err(FileHeaderError::Unsupported(format!("a newer format (flags {unknown:#x})")));
    }
    if !(HEADER_BYTES_MIN as u64..=HEADER_BYTES_MAX).contains(&header.header_size)
        || !header.header_size.is_multiple_of(8)
    {
        return Err(FileHeaderError::NotAJournal("its header size is invalid"));
    }
    Ok(header)
}

/// Reads until the buffer is full or the file ends.
fn read_at_most(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Offsets above the kernel's limit come from damaged headers: nothing is there.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::{EntryBuf, FileOptions, FileWriter, Timestamps};

    #[test]
    fn refresh_makes_changes_to_the_file_visible() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
        let mut entry = EntryBuf::new();
        entry.push("A", b"1");
        writer.append(&entry, Timestamps::now()).unwrap();
        writer.flush().unwrap();
        let mut objects = ObjectReader::new(File::open(&path).unwrap()).unwrap().unwrap();
        objects.refresh().unwrap();
        let at = objects.header().header_size;
        objects.load_window(at).unwrap();
        let mut scratch = Vec::new();
        let before = objects.bytes_at(at, 8, &mut scratch).unwrap().to_vec();
        let changed: Vec<u8> = before.iter().map(|byte| !byte).collect();
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&changed, at).unwrap();
        objects.refresh().unwrap();
        assert_eq!(objects.bytes_at(at, 8, &mut scratch).unwrap(), changed);
    }
}
