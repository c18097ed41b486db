//! A set of folders that are followed as one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::ReadError;

const SUBFOLDERS_MAX: usize = 1000;

#[derive(Debug)]
pub(in crate::tail) enum FolderSet {
    /// A folder that exists, and its subfolders as they were last listed.
    Tree { root: PathBuf, subfolders: Vec<PathBuf> },
    /// Folders that may appear and vanish.
    List(Vec<PathBuf>),
}

pub(in crate::tail) type ModificationTimes = Vec<(PathBuf, SystemTime)>;

impl FolderSet {
    /// Returns the set of a folder and its subfolders.
    pub(in crate::tail) fn tree(root: &Path) -> Self {
        Self::Tree { root: root.to_owned(), subfolders: Vec::new() }
    }

    /// Returns the index of a file's folder in a [`List`](Self::List).
    pub(in crate::tail) fn index_of(&self, file: &Path) -> Option<usize> {
        let Self::List(folders) = self else { return None };
        folders.iter().position(|folder| file.parent() == Some(folder))
    }

    /// Reads the modification times of the folders that exist.
    pub(in crate::tail) fn modification_times(&self) -> Result<ModificationTimes, ReadError> {
        let (root, others) = match self {
            Self::Tree { root, subfolders } => (Some(root), subfolders),
            Self::List(folders) => (None, folders),
        };
        let changed = |folder: &PathBuf| fs::metadata(folder).and_then(|metadata| metadata.modified());
        let mut modified = Vec::new();
        if let Some(root) = root {
            modified.push((root.clone(), changed(root).map_err(ReadError::io("inspect", root))?));
        }
        let others = others.iter().filter_map(|folder| Some((folder.clone(), changed(folder).ok()?)));
        modified.extend(others);
        Ok(modified)
    }

    pub(in crate::tail) fn refresh(&mut self) -> Result<(), ReadError> {
        let Self::Tree { root, subfolders } = self else { return Ok(()) };
        *subfolders = list_subfolders(root).map_err(ReadError::io("list", root))?;
        if subfolders.len() > SUBFOLDERS_MAX {
            let feature = format!("more than {SUBFOLDERS_MAX} folders in it");
            return Err(ReadError::Unsupported { path: root.clone(), feature });
        }
        Ok(())
    }

    /// Returns whether this is the root, without which nothing can be read.
    pub(in crate::tail) fn is_root(&self, folder: &Path) -> bool {
        matches!(self, Self::Tree { root, .. } if root == folder)
    }
}

fn list_subfolders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut subfolders = Vec::new();
    for file in fs::read_dir(root)? {
        let file = file?;
        let kind = file.file_type()?;
        let path = file.path();
        let is_hidden = file.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && (kind.is_dir() || kind.is_symlink() && path.is_dir()) {
            subfolders.push(path);
        }
        if subfolders.len() > SUBFOLDERS_MAX {
            break;
        }
    }
    subfolders.sort();
    Ok(subfolders)
}
