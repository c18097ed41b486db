//! The folders that are followed as one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::ReadError;

/// The most folders within a folder.
const WITHIN_MAX: usize = 1000;

/// The folders that are followed as one.
#[derive(Debug)]
pub(super) enum Places {
    /// A folder that is there, and the folders in it, as they were found last.
    Tree { root: PathBuf, within: Vec<PathBuf> },
    /// Folders each of which may come and go.
    Any(Vec<PathBuf>),
}

/// The folders that are there, and when each was changed last.
pub(super) type Stamps = Vec<(PathBuf, SystemTime)>;

impl Places {
    /// A folder and those in it.
    pub(super) fn tree(root: &Path) -> Self {
        Self::Tree { root: root.to_owned(), within: Vec::new() }
    }

    /// Gives the number of the folder in which a file lies, among those of [`Any`](Self::Any).
    pub(super) fn number(&self, file: &Path) -> Option<usize> {
        let Self::Any(folders) = self else { return None };
        folders.iter().position(|folder| file.parent() == Some(folder))
    }

    /// Looks when the folders were changed, as far as they are there.
    pub(super) fn stamps(&self) -> Result<Stamps, ReadError> {
        let (root, others) = match self {
            Self::Tree { root, within } => (Some(root), within),
            Self::Any(folders) => (None, folders),
        };
        let changed = |folder: &PathBuf| fs::metadata(folder).and_then(|metadata| metadata.modified());
        let mut stamps = Vec::new();
        if let Some(root) = root {
            stamps.push((root.clone(), changed(root).map_err(ReadError::io("inspect", root))?));
        }
        let others = others.iter().filter_map(|folder| Some((folder.clone(), changed(folder).ok()?)));
        stamps.extend(others);
        Ok(stamps)
    }

    /// Looks again which folders lie within the folder.
    pub(super) fn refresh(&mut self) -> Result<(), ReadError> {
        let Self::Tree { root, within } = self else { return Ok(()) };
        *within = folders_within(root).map_err(ReadError::io("list", root))?;
        if within.len() > WITHIN_MAX {
            let feature = format!("more than {WITHIN_MAX} folders in it");
            return Err(ReadError::Unsupported { path: root.clone(), feature });
        }
        Ok(())
    }

    /// Tells whether nothing can be read if this folder cannot.
    pub(super) fn is_root(&self, folder: &Path) -> bool {
        matches!(self, Self::Tree { root, .. } if root == folder)
    }
}

fn folders_within(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut within = Vec::new();
    for file in fs::read_dir(root)? {
        let file = file?;
        let kind = file.file_type()?;
        let path = file.path();
        let is_hidden = file.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && (kind.is_dir() || kind.is_symlink() && path.is_dir()) {
            within.push(path);
        }
        if within.len() > WITHIN_MAX {
            break;
        }
    }
    within.sort();
    Ok(within)
}
