//! Places in the entries of a writer.

use std::path::Path;

use crate::ReadError;
use crate::tail::open_header;

/// A place behind an entry of one writer, through all its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPosition {
    /// Shared by all files of the writer.
    pub seqnum_id: u128,
    /// The sequence number of the entry; 0 before the first one.
    pub seqnum: u64,
}

impl EntryPosition {
    /// Returns the place behind the last entry of the file at a path, as far as its header says.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no journal.
    pub fn end_of(path: &Path) -> Result<Self, ReadError> {
        let header = open_header(path)?;
        Ok(Self { seqnum_id: header.seqnum_id, seqnum: header.tail_entry_seqnum })
    }
}
