//! Which journal files a folder has, and which of them are new.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::source::{self, EMPTY};
use crate::ReadError;
use crate::layout::Header;

/// The most journal files in a folder.
const FILES_MAX: usize = 10_000;

/// So long after its last change a folder's time of change can be relied upon to show the next one.
const SETTLED: Duration = Duration::from_secs(2);

/// What makes a file the same under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId(u128);

impl FileId {
    pub(super) fn of(header: &Header) -> Self {
        Self(header.file_id)
    }
}

/// A file that was not there before.
pub(super) struct NewFile {
    pub(super) id: FileId,
    pub(super) header: Header,
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
}

/// The journal files of a folder.
pub(super) struct Listing {
    folder: PathBuf,
    /// When the folder was changed last, if that shows whether it was changed since it was listed.
    settled: Option<SystemTime>,
    /// The files under names that mean that more may be written to them.
    live: HashMap<FileId, OsString>,
    /// The other files. A name stays with its file: it has the file's first number, or a random one.
    archived: HashMap<OsString, FileId>,
    /// What cannot be read, so that it is counted once.
    refused: HashSet<OsString>,
    first_refusal: Option<ReadError>,
    skipped_bytes: u64,
}

impl Listing {
    /// Makes an empty listing.
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            settled: None,
            live: HashMap::new(),
            archived: HashMap::new(),
            refused: HashSet::new(),
            first_refusal: None,
            skipped_bytes: 0,
        }
    }

    /// Tells what kept us from reading anything at all, if there are files.
    pub(super) fn check_readable(&mut self) -> Result<(), ReadError> {
        match self.first_refusal.take() {
            Some(refusal) if self.live.is_empty() && self.archived.is_empty() => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Tells whether more may be written to this file.
    pub(super) fn is_live(&self, id: FileId) -> bool {
        self.live.contains_key(&id)
    }

    /// Gives the paths of all files.
    pub(super) fn paths(&self) -> HashMap<FileId, PathBuf> {
        let archived = self.archived.iter().map(|(name, id)| (id, name));
        archived.chain(&self.live).map(|(id, name)| (*id, self.folder.join(name))).collect()
    }

    /// Gives the bytes that cannot be read, as far as they were not given yet.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.skipped_bytes)
    }

    /// Counts bytes that cannot be read.
    pub(super) fn note_skipped(&mut self, bytes: u64) {
        self.skipped_bytes += bytes;
    }

    /// Makes the next refresh list the folder in any case.
    pub(super) fn outdate(&mut self) {
        self.settled = None;
    }

    /// Lists the folder if it may have changed, and gives the files that are new.
    pub(super) fn refresh(&mut self) -> Result<Option<Vec<NewFile>>, ReadError> {
        let changed = fs::metadata(&self.folder).and_then(|metadata| metadata.modified());
        let changed = changed.map_err(ReadError::io("inspect", &self.folder))?;
        if self.settled == Some(changed) {
            return Ok(None);
        }
        let is_settled = changed.elapsed().is_ok_and(|age| age > SETTLED);
        self.settled = None;

        let known: HashSet<FileId> = self.live.keys().chain(self.archived.values()).copied().collect();
        let mut new = HashMap::new();
        // Those that are written come first, and the folder is listed again for the others: then whatever was
        // rotated in between is among these.
        let (live, is_ready) = self.live_files(&known, &mut new)?;
        let archived = self.archived_files(&known, &mut new)?;
        // A file that was renamed in between is found twice.
        let archived_ids: HashSet<FileId> = archived.values().copied().collect();
        self.live = live.into_iter().filter(|(id, _)| !archived_ids.contains(id)).collect();
        self.archived = archived;
        // What was removed need not be remembered.
        self.refused.retain(|name| self.folder.join(name).exists());
        self.settled = (is_settled && is_ready).then_some(changed);
        Ok(Some(new.into_values().collect()))
    }

    /// Reads the headers of all files that may be written; tells too whether all of them could be read.
    fn live_files(
        &mut self,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<(HashMap<FileId, OsString>, bool), ReadError> {
        let mut live = HashMap::new();
        let mut is_ready = true;
        for name in self.names(is_live_name)? {
            match self.read_header(&name, known, new)? {
                Some(id) => drop(live.insert(id, name)),
                // It may be one that is just being made.
                None => is_ready = false,
            }
        }
        Ok((live, is_ready))
    }

    /// Reads the headers of the other files, as far as they are new.
    fn archived_files(
        &mut self,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<HashMap<OsString, FileId>, ReadError> {
        let mut archived = HashMap::new();
        for name in self.names(|name| !is_live_name(name))? {
            let id = match self.archived.get(&name) {
                Some(id) => Some(*id),
                None if self.refused.contains(&name) => None,
                None => self.read_header(&name, known, new)?,
            };
            archived.extend(id.map(|id| (name, id)));
        }
        Ok(archived)
    }

    /// Reads the header of a file, and adds it to `new` if it is not known.
    fn read_header(
        &mut self,
        name: &OsStr,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<Option<FileId>, ReadError> {
        let path = self.folder.join(name);
        let objects = match source::open(&path) {
            Ok(opened) => opened,
            Err(error @ ReadError::Io { .. }) => return Err(error),
            // An empty file is just being made, and has nothing to lose.
            Err(ReadError::NotFound { .. } | ReadError::NotAJournal { reason: EMPTY, .. }) => {
                return Ok(None);
            }
            Err(refusal) => {
                if self.refused.insert(name.to_owned()) {
                    self.skipped_bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
                    self.first_refusal.get_or_insert(refusal);
                }
                return Ok(None);
            }
        };
        let header = objects.header().clone();
        let id = FileId::of(&header);
        if !known.contains(&id) {
            let size_bytes = objects.file().metadata().map_or(0, |metadata| metadata.len());
            // A file that was renamed meanwhile lies under the later of the names.
            new.insert(id, NewFile { id, header, path, size_bytes });
        }
        Ok(Some(id))
    }

    /// Gives the names of journal files of a kind.
    fn names(&self, is_meant: impl Fn(&OsStr) -> bool) -> Result<Vec<OsString>, ReadError> {
        let listed = || ReadError::io("list", &self.folder);
        let mut names = Vec::new();
        for file in fs::read_dir(&self.folder).map_err(listed())? {
            let name = file.map_err(listed())?.file_name();
            if is_journal_name(&name) && is_meant(&name) {
                names.push(name);
            }
            if names.len() > FILES_MAX {
                let feature = format!("more than {FILES_MAX} files");
                return Err(ReadError::Unsupported { path: self.folder.clone(), feature });
            }
        }
        Ok(names)
    }
}

/// Tells whether a name is a journal's; hidden files are being made, or none of ours.
fn is_journal_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    !name.starts_with(b".") && (name.ends_with(b".journal") || name.ends_with(b".journal~"))
}

/// Tells whether a file of this name may be written, by the rule of journald: it renames a file when it is done.
fn is_live_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    !name.contains(&b'@') && !name.ends_with(b"~")
}
