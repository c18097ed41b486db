//! The layout of a journal file, as far as both the writer and the tail need it.
//!
//! Source: the systemd project's document "Journal File Format". All numbers are little-endian; all objects
//! begin at multiples of eight bytes.

/// The first bytes of every journal file.
pub(crate) const SIGNATURE: &[u8; 8] = b"LPKSHHRH";

/// The size of the header that we write, as in systemd 254. Older readers parse a prefix of it.
pub(crate) const HEADER_BYTES: usize = 272;

/// The part of the header that every revision has.
pub(crate) const HEADER_BYTES_MIN: usize = 208;

/// The hash tables use siphash24, keyed with the file id.
pub(crate) const INCOMPATIBLE_KEYED_HASH: u32 = 1 << 2;
/// Offsets in entries and entry arrays are 32 bits wide.
pub(crate) const INCOMPATIBLE_COMPACT: u32 = 1 << 4;

/// The size of the header of every object: its kind, its flags, and at byte 8 its size.
pub(crate) const OBJECT_HEADER_BYTES: u64 = 16;

/// The kinds of objects.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 1;
    pub(crate) const FIELD: u8 = 2;
    pub(crate) const ENTRY: u8 = 3;
    pub(crate) const DATA_HASH_TABLE: u8 = 4;
    pub(crate) const FIELD_HASH_TABLE: u8 = 5;
    pub(crate) const ENTRY_ARRAY: u8 = 6;
    pub(crate) const TAG: u8 = 7;
}

/// The state of a journal file, from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Closed.
    Offline,
    /// Being written, or its writer was killed.
    Online,
    /// Complete: a later file continues it.
    Archived,
}

impl FileState {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Offline),
            1 => Some(Self::Online),
            2 => Some(Self::Archived),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) compatible_flags: u32,
    pub(crate) incompatible_flags: u32,
    pub(crate) state: FileState,
    pub(crate) file_id: u128,
    pub(crate) machine_id: u128,
    pub(crate) tail_entry_boot_id: u128,
    pub(crate) seqnum_id: u128,
    pub(crate) header_size: u64,
    pub(crate) arena_size: u64,
    pub(crate) data_hash_table_offset: u64,
    pub(crate) data_hash_table_size: u64,
    pub(crate) field_hash_table_offset: u64,
    pub(crate) field_hash_table_size: u64,
    pub(crate) tail_object_offset: u64,
    pub(crate) n_objects: u64,
    pub(crate) n_entries: u64,
    pub(crate) tail_entry_seqnum: u64,
    pub(crate) head_entry_seqnum: u64,
    pub(crate) entry_array_offset: u64,
    pub(crate) head_entry_realtime: u64,
    pub(crate) tail_entry_realtime: u64,
    pub(crate) tail_entry_monotonic: u64,
    pub(crate) n_data: u64,
    pub(crate) n_fields: u64,
    pub(crate) n_entry_arrays: u64,
    pub(crate) tail_entry_array_offset: u32,
    pub(crate) tail_entry_array_n_entries: u32,
    pub(crate) tail_entry_offset: u64,
}

impl FileHeader {
    /// Encodes the header as it is stored in a file.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(SIGNATURE);
        bytes[8..12].copy_from_slice(&self.compatible_flags.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.incompatible_flags.to_le_bytes());
        bytes[16] = self.state as u8;
        let ids = [self.file_id, self.machine_id, self.tail_entry_boot_id, self.seqnum_id];
        for (place, id) in bytes[24..88].chunks_exact_mut(16).zip(ids) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        let numbers = [
            self.header_size,
            self.arena_size,
            self.data_hash_table_offset,
            self.data_hash_table_size,
            self.field_hash_table_offset,
            self.field_hash_table_size,
            self.tail_object_offset,
            self.n_objects,
            self.n_entries,
            self.tail_entry_seqnum,
            self.head_entry_seqnum,
            self.entry_array_offset,
            self.head_entry_realtime,
            self.tail_entry_realtime,
            self.tail_entry_monotonic,
            self.n_data,
            self.n_fields,
            0, // n_tags: only sealed files have tags.
            self.n_entry_arrays,
            0, // Depth of the data hash chains: a hint for writers that open existing files.
            0, // Depth of the field hash chains.
            u64::from(self.tail_entry_array_n_entries) << 32 | u64::from(self.tail_entry_array_offset),
            self.tail_entry_offset,
        ];
        for (place, number) in bytes[88..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Parses a header. Fields that an older, shorter header lacks are zero.
    ///
    /// Returns `None` if these are not the first bytes of a journal file. The numbers are not validated.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER_BYTES_MIN || !bytes.starts_with(SIGNATURE) {
            return None;
        }
        let header_size = u64_at(bytes, 88);
        let known = bytes.len().min(usize::try_from(header_size).unwrap_or(usize::MAX));
        let number = |offset: usize| if offset + 8 <= known { u64_at(bytes, offset) } else { 0 };
        Some(Self {
            compatible_flags: number(8) as u32,
            incompatible_flags: (number(8) >> 32) as u32,
            state: FileState::from_byte(bytes[16])?,
            file_id: id_at(bytes, 24),
            machine_id: id_at(bytes, 40),
            tail_entry_boot_id: id_at(bytes, 56),
            seqnum_id: id_at(bytes, 72),
            header_size,
            arena_size: number(96),
            data_hash_table_offset: number(104),
            data_hash_table_size: number(112),
            field_hash_table_offset: number(120),
            field_hash_table_size: number(128),
            tail_object_offset: number(136),
            n_objects: number(144),
            n_entries: number(152),
            tail_entry_seqnum: number(160),
            head_entry_seqnum: number(168),
            entry_array_offset: number(176),
            head_entry_realtime: number(184),
            tail_entry_realtime: number(192),
            tail_entry_monotonic: number(200),
            n_data: number(208),
            n_fields: number(216),
            n_entry_arrays: number(232),
            tail_entry_array_offset: number(256) as u32,
            tail_entry_array_n_entries: (number(256) >> 32) as u32,
            tail_entry_offset: number(264),
        })
    }
}

/// Rounds up to the next offset at which an object may begin.
pub(crate) const fn align8(offset: u64) -> u64 {
    offset.next_multiple_of(8)
}

/// Returns the offset that an item of an entry, or of an array of entries, begins with: four bytes in compact files, else
/// eight.
pub(crate) fn offset_in(item: &[u8]) -> u64 {
    match *item {
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => u64_at(item, 0),
    }
}

/// Reads a number; the caller has checked that it lies within `bytes`.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(number)
}

fn id_at(bytes: &[u8], offset: usize) -> u128 {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[offset..offset + 16]);
    u128::from_be_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        let mut bytes: Vec<u8> = (0..HEADER_BYTES as u8 as usize).map(|i| i as u8).collect();
        bytes.resize(HEADER_BYTES, 7);
        bytes[..8].copy_from_slice(SIGNATURE);
        bytes[16] = 1;
        bytes[88..96].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
        FileHeader::parse(&bytes).unwrap()
    }

    #[test]
    fn a_header_round_trips() {
        let header = header();
        assert_ne!(header.tail_entry_offset, 0);
        assert_eq!(FileHeader::parse(&header.encode()), Some(header));
    }

    #[test]
    fn an_older_header_has_zero_for_later_fields() {
        let older = FileHeader { header_size: 240, ..header() };
        let read = FileHeader::parse(&older.encode()).unwrap();
        assert_eq!((read.tail_entry_offset, read.tail_entry_array_offset), (0, 0));
        assert_eq!(read.n_entry_arrays, older.n_entry_arrays);
    }

    #[test]
    fn parse_refuses_short_or_invalid_headers() {
        let good = header().encode();
        assert_eq!(FileHeader::parse(&good[..HEADER_BYTES_MIN - 1]), None);
        let mut state = good;
        state[16] = 3;
        assert_eq!(FileHeader::parse(&state), None);
        assert_eq!(FileHeader::parse(&[0; HEADER_BYTES]), None);
    }
}
