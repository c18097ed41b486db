//! Lists the journal files of a set of folders, and finds the new ones.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file_reader::{self, EMPTY};
use super::folder::set::{FolderSet, ModificationTimes};
use crate::ReadError;
use crate::layout::FileHeader;

/// The most journal files in all folders together.
const FILES_MAX: usize = 10_000;

/// A folder's modification time is only reliable once it is this old: a later change within the clock's
/// granularity would not alter it.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Identifies a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId(u128);

impl FileId {
    pub(super) fn of(header: &FileHeader) -> Self {
        Self(header.file_id)
    }
}

/// A file that was not listed before.
pub(super) struct NewFile {
    pub(super) id: FileId,
    pub(super) header: FileHeader,
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
}

pub(super) struct Listing {
    folders: FolderSet,
    /// The modification times at the last listing, if they are old enough to reveal a change.
    settled: Option<ModificationTimes>,
    /// Files whose names mean that they may still be written.
    live: HashMap<FileId, PathBuf>,
    /// The other files. Such a name never moves to another file: it contains a sequence number or a random
    /// number.
    archived: HashMap<PathBuf, FileId>,
    /// Unreadable files and folders, so that each is counted once.
    refused: HashSet<PathBuf>,
    /// Why the first of these cannot be read. An error about permission takes precedence, since the user can
    /// fix it.
    refusal: Option<ReadError>,
    skipped_bytes: u64,
}

impl Listing {
    pub(super) fn of(folders: FolderSet) -> Self {
        Self {
            folders,
            settled: None,
            live: HashMap::new(),
            archived: HashMap::new(),
            refused: HashSet::new(),
            refusal: None,
            skipped_bytes: 0,
        }
    }

    pub(super) fn folders(&self) -> &FolderSet {
        &self.folders
    }

    /// Fails if there are files and none can be read.
    pub(super) fn check_readable(&mut self) -> Result<(), ReadError> {
        let is_any = !self.live.is_empty() || !self.archived.is_empty();
        self.refusal.take_if(|_| !is_any).map_or(Ok(()), Err)
    }

    /// Returns why one of the files or folders cannot be read.
    pub(super) fn refusal(&self) -> Option<&ReadError> {
        self.refusal.as_ref()
    }

    /// Returns whether this file may still be written.
    pub(super) fn is_live(&self, id: FileId) -> bool {
        self.live.contains_key(&id)
    }

    pub(super) fn paths(&self) -> HashMap<FileId, PathBuf> {
        let archived = self.archived.iter().map(|(path, id)| (id, path));
        archived.chain(&self.live).map(|(id, path)| (*id, path.clone())).collect()
    }

    /// Returns the unreadable bytes since the last call.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.skipped_bytes)
    }

    pub(super) fn count_skipped(&mut self, bytes: u64) {
        self.skipped_bytes += bytes;
    }

    /// Forces the next refresh to list the folders.
    pub(super) fn invalidate(&mut self) {
        self.settled = None;
    }

    /// Lists the folders if they may have changed, and returns the new files.
    pub(super) fn refresh(&mut self) -> Result<Option<Vec<NewFile>>, ReadError> {
        if self.settled.is_some() && self.settled == Some(self.folders.modification_times()?) {
            return Ok(None);
        }
        self.settled = None;
        self.folders.refresh()?;
        let modified = self.folders.modification_times()?;
        let is_settled =
            modified.iter().all(|(_, changed)| changed.elapsed().is_ok_and(|age| age > SETTLE_TIME));

        let known: HashSet<FileId> = self.live.keys().chain(self.archived.values()).copied().collect();
        let mut new = HashMap::new();
        // Files that are being written are listed first, and the folders again for the others, so that a file
        // rotated in between is found.
        let (live, is_ready) = self.live_files(&modified, &known, &mut new)?;
        let archived = self.archived_files(&modified, &known, &mut new)?;
        // A file renamed in between is found twice.
        let archived_ids: HashSet<FileId> = archived.values().copied().collect();
        self.live = live.into_iter().filter(|(id, _)| !archived_ids.contains(id)).collect();
        self.archived = archived;
        // Forget removed files.
        self.refused.retain(|path| path.exists());
        self.settled = (is_settled && is_ready).then_some(modified);
        Ok(Some(new.into_values().collect()))
    }

    /// Reads the headers of all files that may be written; also returns whether all could be read.
    fn live_files(
        &mut self,
        modified: &ModificationTimes,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<(HashMap<FileId, PathBuf>, bool), ReadError> {
        let mut live = HashMap::new();
        let mut is_ready = true;
        for path in self.paths_of(modified, is_live_name)? {
            match self.read_header(&path, known, new)? {
                Some(id) => drop(live.insert(id, path)),
                // It may be a file that is being created.
                None => is_ready = false,
            }
        }
        Ok((live, is_ready))
    }

    /// Reads the headers of the other files that are new.
    fn archived_files(
        &mut self,
        modified: &ModificationTimes,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<HashMap<PathBuf, FileId>, ReadError> {
        let mut archived = HashMap::new();
        for path in self.paths_of(modified, |name| !is_live_name(name))? {
            let id = match self.archived.get(&path) {
                Some(id) => Some(*id),
                None if self.refused.contains(&path) => None,
                None => self.read_header(&path, known, new)?,
            };
            archived.extend(id.map(|id| (path, id)));
        }
        Ok(archived)
    }

    /// Reads the header of a file, and adds the file to `new` if it is not known.
    fn read_header(
        &mut self,
        path: &Path,
        known: &HashSet<FileId>,
        new: &mut HashMap<FileId, NewFile>,
    ) -> Result<Option<FileId>, ReadError> {
        let objects = match file_reader::open(path) {
            Ok(opened) => opened,
            Err(error @ ReadError::Io { .. }) => return Err(error),
            // An empty file is being created, and loses nothing.
            Err(ReadError::NotFound { .. } | ReadError::NotAJournal { reason: EMPTY, .. }) => {
                return Ok(None);
            }
            Err(refusal) => {
                self.refuse(path, refusal);
                return Ok(None);
            }
        };
        let header = objects.header().clone();
        let id = FileId::of(&header);
        if !known.contains(&id) {
            let size_bytes = objects.file().metadata().map_or(0, |metadata| metadata.len());
            // The later name replaces the earlier one if a file was renamed.
            new.insert(id, NewFile { id, header, path: path.to_owned(), size_bytes });
        }
        Ok(Some(id))
    }

    /// Counts an unreadable file or folder, once.
    fn refuse(&mut self, path: &Path, why: ReadError) {
        if !self.refused.insert(path.to_owned()) {
            return;
        }
        let file_bytes = |metadata: fs::Metadata| if metadata.is_file() { metadata.len() } else { 0 };
        self.skipped_bytes += fs::metadata(path).map_or(0, file_bytes);
        let is_forbidden = |error: &ReadError| matches!(error, ReadError::PermissionDenied { .. });
        if self.refusal.as_ref().is_none_or(|first| is_forbidden(&why) && !is_forbidden(first)) {
            self.refusal = Some(why);
        }
    }

    /// Returns the paths of the journal files whose names are selected.
    fn paths_of(
        &mut self,
        modified: &ModificationTimes,
        is_selected: impl Fn(&OsStr) -> bool,
    ) -> Result<Vec<PathBuf>, ReadError> {
        let mut paths = Vec::new();
        for (folder, _) in modified {
            match add_paths(folder, &is_selected, &mut paths).map_err(ReadError::io("list", folder)) {
                Err(error) if self.folders.is_root(folder) => return Err(error),
                // It was just removed.
                Ok(()) | Err(ReadError::NotFound { .. }) => {}
                Err(error) => self.refuse(folder, error),
            }
            if paths.len() > FILES_MAX {
                let feature = format!("more than {FILES_MAX} files");
                return Err(ReadError::Unsupported { path: folder.clone(), feature });
            }
        }
        Ok(paths)
    }
}

/// Adds the journal files of a folder whose names are selected.
fn add_paths(
    folder: &Path,
    is_selected: impl Fn(&OsStr) -> bool,
    paths: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let name = file?.file_name();
        if is_journal_name(&name) && is_selected(&name) {
            paths.push(folder.join(name));
        }
        if paths.len() > FILES_MAX {
            break;
        }
    }
    Ok(())
}

/// Returns whether a name is that of a journal. Hidden files are being created, or are not journald's.
fn is_journal_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    !name.starts_with(b".") && (name.ends_with(b".journal") || name.ends_with(b".journal~"))
}

/// Returns whether a file of this name may still be written: journald renames a file when it is complete.
fn is_live_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    !name.contains(&b'@') && !name.ends_with(b"~")
}
