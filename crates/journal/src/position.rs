//! Places in the entries of a writer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::tail::open_header;
use crate::{ReadError, archive};

/// A place behind an entry of one writer, through all its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPosition {
    /// Shared by all files of the writer.
    pub seqnum_id: u128,
    /// The sequence number of the entry.
    pub seqnum: u64,
}

/// The sequence number of an entry of each writer, by the id that its files share.
pub type WriterPlaces = BTreeMap<u128, u64>;

/// Returns the last entry of each writer of a file and its archives, as far as their headers say; 0 for none.
///
/// # Errors
///
/// If the file cannot be read, or is no journal. Archives that cannot be read are left out.
pub fn last_entries(path: &Path) -> Result<WriterPlaces, ReadError> {
    let archives = archive::list(path).map_err(ReadError::io("list the folder of", path))?;
    let archives = archives.iter().filter_map(|(_, archive)| open_header(archive).ok());
    let mut last = WriterPlaces::new();
    for header in archives.chain([open_header(path)?]) {
        let seqnum = last.entry(header.seqnum_id).or_default();
        *seqnum = header.tail_entry_seqnum.max(*seqnum);
    }
    Ok(last)
}

/// Returns the id that the file at a path shares with the other files of its writer.
///
/// # Errors
///
/// If it cannot be read, or is no journal.
pub fn file_writer(path: &Path) -> Result<u128, ReadError> {
    Ok(open_header(path)?.seqnum_id)
}
