//! One file that is being read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use systemd_journal_reader::JournalReader;

use super::entry::Entry;
use super::feed::Feed;
use super::objects::{Objects, Passed, Refusal, Step};
use crate::ReadError;

/// What gives away a file that journald is just making: it has its name before its header.
pub(super) const EMPTY: &str = "it is empty";

/// A file, the walk over it, and the reader that makes entries of what the walk finds.
pub(super) struct Source {
    pub(super) objects: Objects,
    feed: Feed,
    reader: JournalReader<Feed>,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let (objects, start) = open(path)?;
        let feed = Feed::default();
        feed.extend(|bytes| *bytes = start);
        let reader = JournalReader::new(feed.clone()).map_err(ReadError::io("read", path))?;
        Ok(Self { objects, feed, reader })
    }

    /// Passes over the entries that are there now and earlier than the given time.
    pub(super) fn pass_before(&mut self, realtime_us: u64) {
        self.objects.pass_over(Passed::before(realtime_us, self.objects.header()));
    }

    /// Hands out at most `entries_max` entries of what the reader was given, and counts them.
    pub(super) fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry)) -> u64 {
        for entries in 0..entries_max {
            match self.reader.next_entry() {
                Some(entry) => each(&Entry::new(entry)),
                None => return entries,
            }
        }
        entries_max
    }

    pub(super) fn step(&mut self) -> io::Result<Step> {
        self.feed.extend(|bytes| self.objects.step(bytes))
    }
}

/// Opens a file that may be a journal; gives the walk over it and what the reader must be given first.
pub(super) fn open(path: &Path) -> Result<(Objects, Vec<u8>), ReadError> {
    // A pipe or a device would keep us waiting.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(ReadError::io("open", path))?;
    let metadata = file.metadata().map_err(ReadError::io("inspect", path))?;
    if !metadata.is_file() {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: "it is not a regular file" });
    }
    if metadata.len() == 0 {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: EMPTY });
    }
    let started = Objects::start(file).map_err(ReadError::io("read", path))?;
    started.map_err(|refusal| match refusal {
        Refusal::NotAJournal(reason) => ReadError::NotAJournal { path: path.to_owned(), reason },
        Refusal::Unsupported(feature) => ReadError::Unsupported { path: path.to_owned(), feature },
    })
}

/// Tells whether the file is the one at the path.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
