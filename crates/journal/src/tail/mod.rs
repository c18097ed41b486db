//! The tail: entries of a journal file as they are written, through its rotations.

mod compressed;
mod entry;
mod feed;
mod objects;
mod shifts;

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use systemd_journal_reader::JournalReader;

pub use entry::Entry;
use feed::Feed;
use objects::{Objects, Refusal, Step};

use crate::archive::{self, ArchiveName};
use crate::{FileState, ReadError};

/// The most entries that one poll hands out.
const ENTRIES_PER_POLL_MAX: u64 = 4096;

/// The most steps over the file that one poll takes, each of 256 KiB or one object.
const STEPS_PER_POLL_MAX: u32 = 64;

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest archive beside the file.
    Oldest,
    /// With the first entry of the file.
    File,
    /// With what is written from now on.
    End,
}

/// What one poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries that were handed out.
    pub entries: u64,
    /// There is more to read now; the poll ended because it had done enough.
    pub more: bool,
    /// How often the tail went on to a later file.
    pub rotations: u64,
    /// Bytes of files that could not be read: damaged, of an unknown kind, a value above 16 MiB (above 1 MiB if it is
    /// compressed), or compressed values beyond 256 MiB in one file.
    pub skipped_bytes: u64,
    /// The state of the file that is being read, as its header says.
    pub writer: FileState,
}

/// Follows a journal file from one end to the other, and on to the files that replace it.
///
/// It never writes and takes no lock. Its memory is bounded by a small multiple of the size of one file, and of 256 MiB
/// if values are compressed: all distinct values of the file that is being read are kept, some 200 bytes each more than
/// their length. It is not `Send`: it
/// lives on the thread that opened it.
pub struct Tail {
    path: PathBuf,
    current: Source,
    archives: Archives,
    /// The file at the path is another one: the current one gets no more entries.
    is_replaced: bool,
}

/// The files beside the one that is followed.
struct Archives {
    /// Those that were read, or that lie before the beginning.
    done: HashSet<ArchiveName>,
    /// The sizes of those that could not be read at all.
    skipped_bytes: u64,
}

/// One file that is being read.
struct Source {
    objects: Objects,
    feed: Feed,
    reader: JournalReader<Feed>,
}

impl Tail {
    /// Opens a journal file.
    ///
    /// # Errors
    ///
    /// If there is no such file, it may not be read, or it is not a journal that this crate can read.
    pub fn open(path: &Path, start: Start) -> Result<Self, ReadError> {
        // Before the archives are listed, so that a rotation in between is not taken for something older.
        let live = Source::open(path);
        let archives = archive::list(path).map_err(ReadError::io("list the folder of", path))?;
        let mut beside = Archives { done: HashSet::new(), skipped_bytes: 0 };
        let oldest = match start {
            Start::Oldest => beside.first_readable(&archives, None)?,
            Start::File | Start::End => None,
        };
        if let Some(current) = oldest {
            return Ok(Self { path: path.to_owned(), current, archives: beside, is_replaced: true });
        }
        let mut current = live?;
        if start == Start::End {
            current.objects.skip_existing_entries();
        }
        let begin = ArchiveName::of(current.objects.header());
        let is_later = |name: &ArchiveName| {
            name.seqnum_id == begin.seqnum_id && name.head_seqnum > begin.head_seqnum && begin.head_seqnum > 0
        };
        beside.done.extend(archives.into_iter().map(|(name, _)| name).filter(|name| !is_later(name)));
        Ok(Self { path: path.to_owned(), current, archives: beside, is_replaced: false })
    }

    /// Hands out the entries that are complete now, in the order they were written, and never waits for more.
    ///
    /// One call does a bounded amount of work, and says by [`Progress::more`] that it should be called again at once.
    ///
    /// # Errors
    ///
    /// If the file, or the one that replaced it, cannot be read. Polling again tries again. When something was found
    /// before the error, that is told first, and the error by the next poll.
    pub fn poll(&mut self, mut each: impl FnMut(&Entry)) -> Result<Progress, ReadError> {
        let mut progress = Progress {
            entries: 0,
            more: true,
            rotations: 0,
            skipped_bytes: 0,
            writer: self.current.objects.header().state,
        };
        for _ in 0..STEPS_PER_POLL_MAX {
            progress.entries += self.current.read(ENTRIES_PER_POLL_MAX - progress.entries, &mut each);
            if progress.entries >= ENTRIES_PER_POLL_MAX {
                break;
            }
            match self.step(&mut progress) {
                Ok(more) => progress.more = more,
                Err(error) if progress.entries + progress.rotations + progress.skipped_bytes == 0 => {
                    return Err(error);
                }
                Err(_) => break,
            }
            if !progress.more {
                break;
            }
        }
        progress.writer = self.current.objects.header().state;
        Ok(progress)
    }

    /// Goes on in the current file, or to the next one; tells whether there may be more.
    fn step(&mut self, progress: &mut Progress) -> Result<bool, ReadError> {
        let step = self.current.step().map_err(ReadError::io("read", &self.path))?;
        progress.skipped_bytes += self.current.objects.take_skipped_bytes();
        progress.skipped_bytes += std::mem::take(&mut self.archives.skipped_bytes);
        match step {
            Step::Moved => Ok(true),
            Step::CaughtUp => self.go_on(progress),
        }
    }

    /// Goes on to the next file if there is one, at the end of the current one; tells whether there may be more.
    fn go_on(&mut self, progress: &mut Progress) -> Result<bool, ReadError> {
        if self.is_replaced {
            let Some(next) = self.next_source()? else { return Ok(false) };
            self.current = next;
            self.is_replaced = !is_at(self.current.objects.file(), &self.path);
            progress.rotations += 1;
            return Ok(true);
        }
        // What was written between the last look at the file and its replacement has still to be read.
        self.is_replaced = self.path.exists() && !is_at(self.current.objects.file(), &self.path);
        Ok(self.is_replaced)
    }

    /// Opens the oldest file that was not read yet: an archive, else the one at the path.
    fn next_source(&mut self) -> Result<Option<Source>, ReadError> {
        // The file at the path is opened before the archives are listed: then whatever came between the current
        // file and that one is in the list.
        let live = Source::open(&self.path);
        let archives = archive::list(&self.path).map_err(ReadError::io("list the folder of", &self.path))?;
        let current = self.current.objects.file();
        if let Some(next) = self.archives.first_readable(&archives, Some(current))? {
            return Ok(Some(next));
        }
        match live {
            Ok(live) => Ok(Some(live)),
            // The next file is not there yet.
            Err(ReadError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Archives {
    /// Opens the first of the listed archives that is not done yet, nor is the current file.
    fn first_readable(
        &mut self,
        archives: &[(ArchiveName, PathBuf)],
        current: Option<&File>,
    ) -> Result<Option<Source>, ReadError> {
        // What was removed need not be remembered.
        let names: HashSet<_> = archives.iter().map(|(name, _)| *name).collect();
        self.done.retain(|name| names.contains(name));
        for (name, path) in archives {
            if self.done.contains(name) {
                continue;
            }
            let opened = match current {
                Some(current) if is_at(current, path) => None,
                _ => match Source::open(path) {
                    Ok(source) => Some(source),
                    Err(error @ ReadError::Io { .. }) => return Err(error),
                    // One that is no journal, or may not be read, must not keep us from those that follow it.
                    Err(_) => {
                        self.skipped_bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
                        None
                    }
                },
            };
            self.done.insert(*name);
            if opened.is_some() {
                return Ok(opened);
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, ReadError> {
        // A pipe or a device would keep us waiting.
        let nonblocking = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
        let file = file.map_err(ReadError::io("open", path))?;
        if !file.metadata().map_err(ReadError::io("inspect", path))?.is_file() {
            return Err(ReadError::NotAJournal { path: path.to_owned(), reason: "it is not a regular file" });
        }
        let started = Objects::start(file).map_err(ReadError::io("read", path))?;
        let (objects, start) = started.map_err(|refusal| match refusal {
            Refusal::NotAJournal(reason) => ReadError::NotAJournal { path: path.to_owned(), reason },
            Refusal::Unsupported(feature) => ReadError::Unsupported { path: path.to_owned(), feature },
        })?;
        let feed = Feed::default();
        feed.extend(|bytes| *bytes = start);
        let reader = JournalReader::new(feed.clone()).map_err(ReadError::io("read", path))?;
        Ok(Self { objects, feed, reader })
    }

    /// Hands out at most `entries_max` entries of what the reader was given, and counts them.
    fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry)) -> u64 {
        for entries in 0..entries_max {
            match self.reader.next_entry() {
                Some(entry) => each(&Entry::new(entry)),
                None => return entries,
            }
        }
        entries_max
    }

    fn step(&mut self) -> io::Result<Step> {
        self.feed.extend(|bytes| self.objects.step(bytes))
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntryBuf, FileOptions, FileWriter, Timestamps};

    #[test]
    fn what_is_written_between_the_last_look_and_a_rotation_is_read_before_the_next_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut writer =
            FileWriter::create(&path, FileOptions { size_max: 0, ..FileOptions::default() }).unwrap();
        let mut tail = Tail::open(&path, Start::File).unwrap();
        assert_eq!(tail.current.step().unwrap(), Step::CaughtUp);

        let mut written = Vec::new();
        let mut entry = EntryBuf::new();
        while fs::read_dir(dir.path()).unwrap().count() == 1 {
            entry.clear();
            entry.push_display("NUMBER", written.len());
            writer.append(&entry, Timestamps::now()).unwrap();
            written.push(written.len().to_string());
        }
        writer.flush().unwrap();

        let mut progress =
            Progress { entries: 0, more: false, rotations: 0, skipped_bytes: 0, writer: FileState::Online };
        assert!(tail.go_on(&mut progress).unwrap());
        assert_eq!(progress.rotations, 0);
        let mut read = Vec::new();
        while tail.poll(|entry| read.extend(entry.text("NUMBER").map(str::to_owned))).unwrap().more {}
        assert_eq!(read, written);
    }
}
