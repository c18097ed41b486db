//! Follows the file at a path and its archives.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::entry_scanner::SkippedEntries;
use super::field_cache::CACHE_BYTES_MAX;
use super::file_reader::{EMPTY, FileReader, ReadStep, is_at};
use super::filter::FieldFilter;
use super::{PollProgress, Start};
use crate::archive::{self, ArchiveName};
use crate::{FileState, ReadError, WriterPlaces};

/// Follows the file at a path, and the files that replace it.
pub(super) struct FileFollower {
    path: PathBuf,
    current: FileReader,
    archives: Archives,
    /// Another file is at the path: the current one gets no more entries.
    is_replaced: bool,
}

/// The archives of the followed file.
struct Archives {
    /// Archives that were read, or that lie before the start position.
    done: HashSet<ArchiveName>,
    filter: FieldFilter,
    /// The sizes of archives that could not be read.
    skipped_bytes: u64,
    /// Archives that end before this time are not read, and earlier entries of others are skipped.
    since_us: u64,
    /// Entries up to these are skipped.
    places: WriterPlaces,
}

impl FileFollower {
    /// Opens the file at a path, or the oldest of its archives; of these the first that has entries behind the places.
    pub(super) fn open(path: &Path, start: Start, places: WriterPlaces) -> Result<Self, ReadError> {
        // Opened before the archives are listed, so that a rotation in between is not missed.
        let filter = FieldFilter::default();
        let live = FileReader::open(path, &filter);
        let archives = archive::list(path).map_err(ReadError::io("list the folder of", path))?;
        let since_us = start.since_us();
        let mut beside = Archives { done: HashSet::new(), filter, skipped_bytes: 0, since_us, places };
        let oldest = match start {
            Start::Oldest | Start::Since(_) => beside.open_first(&archives, None)?,
            Start::File | Start::End => None,
        };
        if let Some(current) = oldest {
            return Ok(Self { path: path.to_owned(), current, archives: beside, is_replaced: true });
        }
        let mut current = live?;
        beside.skip_in_last(&mut current);
        let begin = ArchiveName::of(current.header());
        let is_later = |name: &ArchiveName| {
            name.seqnum_id == begin.seqnum_id && name.head_seqnum > begin.head_seqnum && begin.head_seqnum > 0
        };
        beside.done.extend(archives.into_iter().map(|(name, _)| name).filter(|name| !is_later(name)));
        Ok(Self { path: path.to_owned(), current, archives: beside, is_replaced: false })
    }

    /// Returns only entries that match the filter from now on.
    pub(super) fn set_filter(&mut self, filter: FieldFilter) {
        self.current.set_filter(&filter);
        self.archives.filter = filter;
    }

    /// Returns the file that is being read.
    pub(super) fn current(&mut self) -> &mut FileReader {
        &mut self.current
    }

    /// Returns the state in the header of the file that is being read.
    pub(super) fn writer(&self) -> FileState {
        self.current.header().state
    }

    /// Reads on in the current file, or switches to the next; returns whether there may be more.
    pub(super) fn step(&mut self, progress: &mut PollProgress) -> Result<bool, ReadError> {
        let step = self.current.step(CACHE_BYTES_MAX).map_err(ReadError::io("read", &self.path))?;
        progress.skipped_bytes += self.current.take_skipped_bytes();
        progress.walked_bytes += self.current.take_walked_bytes();
        progress.skipped_bytes += std::mem::take(&mut self.archives.skipped_bytes);
        match step {
            ReadStep::Advanced => Ok(true),
            ReadStep::CaughtUp => self.advance(progress),
        }
    }

    /// Switches to the next file, at the end of the current one; returns whether there may be more.
    fn advance(&mut self, progress: &mut PollProgress) -> Result<bool, ReadError> {
        if self.is_replaced {
            let Some(next) = self.open_next()? else { return Ok(false) };
            self.current = next;
            self.is_replaced = !is_at(self.current.file(), &self.path);
            progress.rotations += 1;
            return Ok(true);
        }
        // Entries may have been written between the last read and the replacement: read them first.
        self.is_replaced = self.path.exists() && !is_at(self.current.file(), &self.path);
        Ok(self.is_replaced)
    }

    /// Opens the oldest unread file: an archive, else the file at the path.
    fn open_next(&mut self) -> Result<Option<FileReader>, ReadError> {
        // The file at the path is opened before the archives are listed, so the list contains every file
        // between the current one and that.
        let live = FileReader::open(&self.path, &self.archives.filter);
        let archives = archive::list(&self.path).map_err(ReadError::io("list the folder of", &self.path))?;
        let current = self.current.file();
        if let Some(next) = self.archives.open_first(&archives, Some(current))? {
            return Ok(Some(next));
        }
        match live {
            Ok(mut live) => {
                self.archives.skip_in_last(&mut live);
                Ok(Some(live))
            }
            // The next file does not exist yet, or is being created.
            Err(ReadError::NotFound { .. } | ReadError::NotAJournal { reason: EMPTY, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Archives {
    /// Skips entries before the start in the last of the existing files.
    fn skip_in_last(&mut self, live: &mut FileReader) {
        live.skip_before(std::mem::take(&mut self.since_us));
        self.skip_places(live);
    }

    /// Skips the entries of a file up to its writer's place; returns whether it has others.
    fn skip_places(&self, file: &mut FileReader) -> bool {
        let header = file.header();
        let Some(&seqnum) = self.places.get(&header.seqnum_id) else { return true };
        let has_others = header.tail_entry_seqnum > seqnum;
        let skipped = SkippedEntries::up_to(seqnum, header);
        file.skip(skipped);
        has_others
    }

    /// Opens the first listed archive that was not read yet and is not the current file.
    fn open_first(
        &mut self,
        archives: &[(ArchiveName, PathBuf)],
        current: Option<&File>,
    ) -> Result<Option<FileReader>, ReadError> {
        // Forget archives that were removed.
        let names: HashSet<_> = archives.iter().map(|(name, _)| *name).collect();
        self.done.retain(|name| names.contains(name));
        for (name, path) in archives {
            if self.done.contains(name) {
                continue;
            }
            let opened = match current {
                Some(current) if is_at(current, path) => None,
                _ => match FileReader::open(path, &self.filter) {
                    Ok(reader) if reader.header().tail_entry_realtime < self.since_us => None,
                    Ok(mut reader) => {
                        reader.skip_before(self.since_us);
                        self.skip_places(&mut reader).then_some(reader)
                    }
                    Err(error @ ReadError::Io { .. }) => return Err(error),
                    // An unreadable archive must not block those that follow it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntryBuf, FileOptions, FileWriter, Timestamps};

    #[test]
    fn entries_written_just_before_a_rotation_are_read_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut writer =
            FileWriter::create(&path, FileOptions { size_max: 0, ..FileOptions::default() }).unwrap();
        let mut tail = FileFollower::open(&path, Start::File, WriterPlaces::new()).unwrap();
        assert_eq!(tail.current.step(CACHE_BYTES_MAX).unwrap(), ReadStep::CaughtUp);

        let mut written = Vec::new();
        let mut entry = EntryBuf::new();
        while fs::read_dir(dir.path()).unwrap().count() == 1 {
            entry.clear();
            entry.push_display("NUMBER", written.len());
            writer.append(&entry, Timestamps::now()).unwrap();
            written.push(written.len().to_string());
        }
        writer.flush().unwrap();

        let mut progress = PollProgress::new(FileState::Online);
        assert!(tail.advance(&mut progress).unwrap());
        assert_eq!(progress.rotations, 0);
        let mut read = Vec::new();
        loop {
            tail.current().read(u64::MAX, &mut |entry| {
                read.extend(entry.text("NUMBER").map(str::to_owned));
                true
            });
            if !tail.step(&mut progress).unwrap() {
                break;
            }
        }
        assert_eq!(read, written);
    }

    #[test]
    fn reading_is_resumed_behind_each_entry_of_archives_and_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut entry = EntryBuf::new();
        let mut number = 0;
        for _ in 0..2 {
            let options = FileOptions { size_max: 0, ..FileOptions::default() };
            let mut writer = FileWriter::create(&path, options).unwrap();
            let archives = || fs::read_dir(dir.path()).unwrap().count();
            let before = archives();
            while archives() < before + 2 {
                number += 1;
                entry.clear();
                entry.push_display("NUMBER", number);
                writer.append(&entry, Timestamps::now()).unwrap();
            }
        }
        let read = |mut tail: FileFollower| {
            let (mut progress, mut read) = (PollProgress::new(FileState::Online), Vec::new());
            loop {
                tail.current().read(u64::MAX, &mut |entry| {
                    read.push((entry.position(), entry.text("NUMBER").unwrap().to_owned()));
                    true
                });
                if !tail.step(&mut progress).unwrap() {
                    return read;
                }
            }
        };
        let all = read(FileFollower::open(&path, Start::Oldest, WriterPlaces::new()).unwrap());
        assert_eq!(all.len(), number);
        let mut places = WriterPlaces::new();
        for (at, (position, _)) in all.iter().enumerate() {
            places.insert(position.seqnum_id, position.seqnum);
            if at % 97 == 0 || at + 3 > number {
                assert_eq!(
                    read(FileFollower::open(&path, Start::Oldest, places.clone()).unwrap()),
                    all[at + 1..],
                    "{at}"
                );
            }
        }
        assert_eq!(crate::last_entries(&path).unwrap(), places);
        // Of one writer nothing was read, and the archive with the place of the other one is gone.
        let other = all[number - 1].0.seqnum_id;
        places.insert(all[0].0.seqnum_id, 1);
        let (_, first) = archive::list(&path).unwrap().swap_remove(0);
        fs::remove_file(first).unwrap();
        let left = read(FileFollower::open(&path, Start::Oldest, WriterPlaces::new()).unwrap());
        let expected: Vec<_> = left.iter().filter(|(at, _)| at.seqnum_id != other).cloned().collect();
        assert!(!expected.is_empty() && left.len() < all.len());
        assert_eq!(read(FileFollower::open(&path, Start::Oldest, places).unwrap()), expected);
    }
}
