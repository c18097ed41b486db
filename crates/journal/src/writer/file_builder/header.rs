//! The header of a new file.

use super::{FileIds, INCOMPATIBLE_WRITTEN};
use crate::layout::{FileHeader, FileState, HEADER_BYTES};
use crate::writer::hash_table::HashTable;

/// Returns the header of a file without entries.
pub(super) fn empty(ids: FileIds, data_table: &HashTable, field_table: &HashTable) -> FileHeader {
    FileHeader {
        // `TAIL_ENTRY_BOOT_ID` would be true, but `journalctl --verify` of systemd 252 does not know this
        // flag and fails.
        compatible_flags: 0,
        incompatible_flags: INCOMPATIBLE_WRITTEN,
        state: FileState::Online,
        file_id: ids.file,
        machine_id: ids.machine,
        tail_entry_boot_id: ids.boot,
        seqnum_id: ids.seqnum,
        header_size: HEADER_BYTES as u64,
        arena_size: 0,
        data_hash_table_offset: data_table.buckets_offset(),
        data_hash_table_size: data_table.buckets_bytes(),
        field_hash_table_offset: field_table.buckets_offset(),
        field_hash_table_size: field_table.buckets_bytes(),
        tail_object_offset: field_table.end(),
        n_objects: 2,
        n_entries: 0,
        tail_entry_seqnum: 0,
        head_entry_seqnum: 0,
        entry_array_offset: 0,
        head_entry_realtime: 0,
        tail_entry_realtime: 0,
        tail_entry_monotonic: 0,
        n_data: 0,
        n_fields: 0,
        n_entry_arrays: 0,
        tail_entry_array_offset: 0,
        tail_entry_array_n_entries: 0,
        tail_entry_offset: 0,
    }
}
