//! The folder of a comparison: its plan, and every cell as soon as it is measured.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use output_file;
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;
use tempfile::TempDir;

use super::CellResult;
use crate::run::{PLAN_FORMAT, RunPlan};

/// The plan: scenario, seed, rates.
const PLAN: &str = "scenario.json";
/// A line for each cell.
const CELLS: &str = "cells.jsonl";
/// The journal of each cell.
const JOURNALS: &str = "cells";
/// The beginning of the name of a journal whose cell has no result yet.
const NEW: &str = "new-";
const COMPARISON: &str = "bench.json";
/// Scenarios name hosts and paths: only the owner may read the folder.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder has a comparison.
    #[error("{} holds a comparison; go on with it by --resume, or name another folder", .0.display())]
    Taken(PathBuf),
    /// The folder has other files.
    #[error("{} is not empty; name a new folder", .0.display())]
    NotEmpty(PathBuf),
    #[error("{} holds no comparison: it has no scenario.json; --save begins one", .0.display())]
    NoComparison(PathBuf),
    /// Another process writes there.
    #[error("{} is in use: another tlsdash bench writes there; wait until it ends", .0.display())]
    InUse(PathBuf),
    /// A file has invalid content.
    #[error("cannot read {}: {reason}; it was damaged, or written by another version", .path.display())]
    Damaged {
        /// The file, with the line if it has lines.
        path: PathBuf,
        reason: String,
    },
    /// The comparison is of another version, whose figures have other meanings.
    #[error(
        "{} was written by another version of bench (format {format} and not {PLAN_FORMAT}): begin a new comparison",
        .path.display()
    )]
    OtherFormat { path: PathBuf, format: u32 },
    #[error("cannot {what} {}: {error}", .path.display())]
    Io { what: &'static str, path: PathBuf, error: io::Error },
}

/// The part of a plan that says how to read the others.
#[derive(Deserialize)]
struct PlanFormat {
    format: u32,
}

#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    /// Locked, so only one process writes.
    lines: File,
    cells: Vec<CellResult>,
    /// Set if the folder goes with this value.
    temporary: Option<TempDir>,
}

impl ResultsFolder {
    /// Begins a comparison in a new or empty folder, or without a path in a temporary one.
    ///
    /// # Errors
    /// If the folder holds files, or cannot be written.
    pub fn create(path: Option<&Path>, plan: &RunPlan) -> Result<Self, FolderError> {
        let (path, temporary) = if let Some(path) = path {
            (claim(path)?, None)
        } else {
            let made = tempfile::Builder::new().prefix("tlsdash-bench-").tempdir();
            let made = made.map_err(failed("make", Path::new("a temporary folder")))?;
            (made.path().to_owned(), Some(made))
        };
        let journals = path.join(JOURNALS);
        fs::create_dir(&journals).map_err(failed("make", &journals))?;
        let folder = Self { lines: open_lines(&path)?, cells: Vec::new(), temporary, path };
        folder.write_plan(plan)?;
        Ok(folder)
    }

    /// Opens the folder of a comparison to resume it. A last line that was truncated by an interruption is dropped;
    /// the second value says so.
    ///
    /// # Errors
    /// If it has no comparison, is in use, or cannot be read or written.
    pub fn resume(path: &Path) -> Result<(Self, RunPlan, Option<String>), FolderError> {
        if !path.join(PLAN).exists() {
            return Err(FolderError::NoComparison(path.to_owned()));
        }
        let path = absolute(path)?;
        // The lock comes first: another process may still write the plan.
        let lines = open_lines(&path)?;
        let plan_path = path.join(PLAN);
        let text = fs::read_to_string(&plan_path).map_err(failed("read", &plan_path))?;
        let PlanFormat { format } = serde_json::from_str(&text).map_err(damaged(&plan_path))?;
        if format != PLAN_FORMAT {
            return Err(FolderError::OtherFormat { path, format });
        }
        let plan: RunPlan = serde_json::from_str(&text).map_err(damaged(&plan_path))?;
        // Journals without a line are of cells that were cut off: they are written again.
        let cells_path = path.join(CELLS);
        let bytes = fs::read(&cells_path).map_err(failed("read", &cells_path))?;
        // The last line may be cut off within a character.
        let kept_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(kept_bytes);
        let not_text = |error| failed("read", &cells_path)(io::Error::new(io::ErrorKind::InvalidData, error));
        let whole = std::str::from_utf8(whole).map_err(not_text)?;
        let mut cells: Vec<CellResult> = Vec::new();
        for (number, line) in (1..).zip(whole.lines()) {
            let line_path = cells_path.with_file_name(format!("{CELLS} line {number}"));
            add(&mut cells, serde_json::from_str(line).map_err(damaged(&line_path))?);
        }
        let dropped = (!rest.is_empty()).then(|| {
            format!("{CELLS}: the last line was cut off and is dropped; its round is measured again")
        });
        if dropped.is_some() {
            lines.set_len(kept_bytes as u64).map_err(failed("shorten", &cells_path))?;
        }
        Ok((Self { path, lines, cells, temporary: None }, plan, dropped))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if it goes when the comparison ends.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The measured cells, in the order of measurement.
    pub fn cells(&self) -> &[CellResult] {
        &self.cells
    }

    /// Adds a cell with its journal, and returns when it is on the disk. A cell that was measured again replaces the
    /// former one. `journal` is the path that [`Self::new_journal`] gave; a cell that failed may have none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, mut cell: CellResult, journal: &Path) -> Result<(), FolderError> {
        cell.journal = Self::keep_journal(journal)?;
        let path = self.path.join(CELLS);
        let mut line = serde_json::to_vec(&cell).map_err(damaged(&path))?;
        line.push(b'\n');
        self.lines.write_all(&line).map_err(failed("write", &path))?;
        self.lines.sync_data().map_err(failed("write", &path))?;
        add(&mut self.cells, cell);
        Ok(())
    }

    /// Writes the plan, for example after a rate was found.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_plan(&self, plan: &RunPlan) -> Result<(), FolderError> {
        let path = self.path.join(PLAN);
        let text = serde_json::to_string_pretty(plan).map_err(damaged(&path))? + "\n";
        write(&path, &text)
    }

    /// Writes the comparison.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_comparison(&self, json: &str) -> Result<(), FolderError> {
        write(&self.path.join(COMPARISON), json)
    }

    /// The path of the journal of a cell that is measured, by its round, the index of its case, and its position. A file
    /// that an interrupted measurement left there is removed; the journal of an earlier result stays.
    ///
    /// # Errors
    /// If such a file cannot be removed.
    pub fn new_journal(
        &self,
        (round, case, position): (u32, usize, u32),
        target: &str,
    ) -> Result<PathBuf, FolderError> {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = target.chars().map(safe).take(100).collect();
        let name = format!("{NEW}{round:03}-{:03}-{position:02}-{name}.journal", case + 1);
        let path = self.path.join(JOURNALS).join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path)(error)),
            _ => Ok(path),
        }
    }

    /// Replaces the journal of an earlier result by a new one, and returns its path relative to the folder; `None` if
    /// there is no new one.
    fn keep_journal(new: &Path) -> Result<Option<String>, FolderError> {
        let name = new.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(NEW));
        let Some(name) = name else { return Ok(None) };
        match fs::rename(new, new.with_file_name(name)) {
            Ok(()) => Ok(Some(format!("{JOURNALS}/{name}"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("rename", new)(error)),
        }
    }
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        // While a process is started it has a copy of every descriptor, and closing alone leaves it the lock.
        let _ = flock(&self.lines, FlockOperation::Unlock);
    }
}

/// Adds a cell, in place of a former result.
fn add(cells: &mut Vec<CellResult>, cell: CellResult) {
    cells.retain(|former| former.key() != cell.key());
    cells.push(cell);
}

/// Creates the folder, or uses an empty one.
fn claim(path: &Path) -> Result<PathBuf, FolderError> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if path.join(PLAN).exists() {
                return Err(FolderError::Taken(path.to_owned()));
            }
            if fs::read_dir(path).map_err(failed("read", path))?.next().is_some() {
                return Err(FolderError::NotEmpty(path.to_owned()));
            }
        }
        Err(error) => return Err(failed("make", path)(error)),
    }
    absolute(path)
}

/// The folder's absolute path: children get paths in it, and run in other folders.
fn absolute(path: &Path) -> Result<PathBuf, FolderError> {
    path.canonicalize().map_err(failed("find", path))
}

fn open_lines(folder: &Path) -> Result<File, FolderError> {
    let path = folder.join(CELLS);
    let opened = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(&path);
    let file = opened.map_err(failed("open", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| FolderError::InUse(folder.to_owned()))?;
    Ok(file)
}

fn write(path: &Path, text: &str) -> Result<(), FolderError> {
    output_file::write(path, text).map_err(|error| failed("write", path)(io::Error::other(error)))
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Io { what, path, error }
}

fn damaged(path: &Path) -> impl FnOnce(serde_json::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Damaged { path, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell without a journal.
    const NONE: &str = "/none";

    fn cell(round: u32) -> CellResult {
        CellResult { round, target: "a".to_owned(), case: "c".to_owned(), ..CellResult::default() }
    }

    #[test]
    fn cells_survive_an_interruption_and_a_cut_off_line_is_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("saved");
        let plan = RunPlan::example();
        let mut folder = ResultsFolder::create(Some(&path), &plan).unwrap();
        folder.append(cell(1), NONE.as_ref()).unwrap();
        folder.append(cell(2), NONE.as_ref()).unwrap();
        drop(folder);
        let text = fs::read_to_string(path.join(CELLS)).unwrap();
        fs::write(path.join(CELLS), &text[..text.len() - 5]).unwrap();
        let (mut folder, read, dropped) = ResultsFolder::resume(&path).unwrap();
        assert_eq!((read, folder.cells()), (plan, &[cell(1)][..]));
        assert!(dropped.unwrap().contains("the last line was cut off"));
        folder.append(cell(3), NONE.as_ref()).unwrap();
        drop(folder);
        let (folder, _, dropped) = ResultsFolder::resume(&path).unwrap();
        assert_eq!((folder.cells(), dropped), (&[cell(1), cell(3)][..], None));
    }

    #[test]
    fn a_cell_that_was_measured_again_replaces_the_former_one() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("saved");
        let mut folder = ResultsFolder::create(Some(&path), &RunPlan::example()).unwrap();
        for rate in [10.0, 20.0] {
            folder.append(CellResult { rate: Some(rate), ..cell(1) }, NONE.as_ref()).unwrap();
        }
        assert_eq!(folder.cells(), [CellResult { rate: Some(20.0), ..cell(1) }]);
        drop(folder);
        let (folder, ..) = ResultsFolder::resume(&path).unwrap();
        assert_eq!(folder.cells(), [CellResult { rate: Some(20.0), ..cell(1) }]);
    }

    #[test]
    fn a_line_may_be_cut_off_within_a_character() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("saved");
        let mut folder = ResultsFolder::create(Some(&path), &RunPlan::example()).unwrap();
        folder.append(cell(1), NONE.as_ref()).unwrap();
        drop(folder);
        let mut lines = fs::read(path.join(CELLS)).unwrap();
        lines.extend(&"{\"target\":\"ä".as_bytes()[.."{\"target\":\"ä".len() - 1]);
        fs::write(path.join(CELLS), lines).unwrap();
        let (folder, _, dropped) = ResultsFolder::resume(&path).unwrap();
        assert_eq!((folder.cells(), dropped.is_some()), (&[cell(1)][..], true));
    }

    #[test]
    fn each_cell_has_a_journal_of_its_own_whose_name_a_file_can_have() {
        let folder = ResultsFolder::create(None, &RunPlan::example()).unwrap();
        let journal = |position, target: &str| folder.new_journal((1, 0, position), target).unwrap();
        assert_ne!(journal(1, "a b"), journal(2, "a_b"));
        let longest = journal(1, &"ß".repeat(100));
        assert!(fs::write(longest, "").is_ok());
    }

    #[test]
    fn the_journal_of_a_result_stays_until_there_is_a_new_one() {
        let mut folder = ResultsFolder::create(None, &RunPlan::example()).unwrap();
        let path = folder.new_journal((1, 0, 1), "a").unwrap();
        fs::write(&path, "first").unwrap();
        folder.append(cell(1), &path).unwrap();
        let kept = folder.cells()[0].journal.clone().unwrap();
        assert_eq!(kept, "cells/001-001-01-a.journal");
        let read = |folder: &ResultsFolder| fs::read_to_string(folder.path().join(&kept)).unwrap();
        // The second measurement is interrupted, the third is not.
        let path = folder.new_journal((1, 0, 1), "a").unwrap();
        fs::write(&path, "second").unwrap();
        assert_eq!(read(&folder), "first");
        let path = folder.new_journal((1, 0, 1), "a").unwrap();
        assert!(!path.exists());
        fs::write(&path, "third").unwrap();
        folder.append(cell(1), &path).unwrap();
        assert_eq!((read(&folder), folder.cells()[0].journal.as_deref()), ("third".to_owned(), Some(&*kept)));
    }

    #[test]
    fn a_comparison_of_another_version_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("saved");
        drop(ResultsFolder::create(Some(&path), &RunPlan::example()).unwrap());
        let plan = fs::read_to_string(path.join(PLAN)).unwrap();
        fs::write(path.join(PLAN), plan.replace("\"format\": 2", "\"format\": 1")).unwrap();
        let refused = ResultsFolder::resume(&path).unwrap_err();
        assert!(matches!(refused, FolderError::OtherFormat { format: 1, .. }), "{refused}");
    }

    #[test]
    fn a_folder_is_neither_overwritten_nor_shared() {
        let parent = tempfile::tempdir().unwrap();
        let plan = RunPlan::example();
        let path = parent.path().join("saved");
        let folder = ResultsFolder::create(Some(&path), &plan).unwrap();
        assert!(matches!(ResultsFolder::create(Some(&path), &plan), Err(FolderError::Taken(_))));
        assert!(matches!(ResultsFolder::resume(&path), Err(FolderError::InUse(_))));
        drop(folder);
        assert!(matches!(ResultsFolder::create(Some(parent.path()), &plan), Err(FolderError::NotEmpty(_))));
        assert!(matches!(ResultsFolder::resume(parent.path()), Err(FolderError::NoComparison(_))));
        fs::write(path.join(CELLS), "{}\n{\n").unwrap();
        let damaged = ResultsFolder::resume(&path).unwrap_err().to_string();
        assert!(damaged.contains("cells.jsonl line 1"), "{damaged}");
    }

    #[test]
    fn a_temporary_folder_goes_with_its_value() {
        let folder = ResultsFolder::create(None, &RunPlan::example()).unwrap();
        let path = folder.path().to_owned();
        assert!(folder.is_temporary() && path.join(PLAN).exists());
        drop(folder);
        assert!(!path.exists());
    }
}
