//! `--journal`: where records go, and where they are read back.

use std::path::{Path, PathBuf};

use anyhow::Context;
use journal::{FileOptions, FileWriter, WriteError};

use crate::args::usage;
use crate::privileges;

/// Size that a file may reach before it is archived and the next begun. Our values are short, so that its hash table,
/// which grows with this, is full first: at about 19 MB, ten minutes of the demo. Whoever follows a file keeps its
/// values in memory, at some three times their size, until the next begins: this bounds what watching takes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// What the archives in the state directory may take together: some ten hours of the demo, far more of a quiet proxy.
const ARCHIVES_BYTES_MAX: u64 = 1 << 30;
/// Writers that may use the same state directory at once.
const WRITERS_MAX: u32 = 16;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalChoice {
    /// A file under the state directory.
    Auto,
    /// A file in this folder, which is the state directory as it was before root was given up.
    Folder(PathBuf),
    /// This file.
    File(PathBuf),
    /// Nowhere: to measure what watching costs.
    Off,
}

impl JournalChoice {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "off" => Ok(Self::Off),
            Some(("file", path)) if path.ends_with(".journal") => Ok(Self::File(path.into())),
            Some(("file", path)) => Err(usage(format!(
                "--journal file:{path}: the file's name must end in .journal, so that journalctl reads it"
            ))),
            _ => Err(usage(format!("--journal {text}: expected auto, file:PATH.journal or off"))),
        }
    }

    /// Opens the journal for writing; `None` if there is to be none.
    pub(crate) fn open(&self) -> anyhow::Result<Option<FileWriter>> {
        match self {
            Self::Off => Ok(None),
            // A place that was named is the user's: nothing is removed there.
            Self::File(path) => Ok(Some(create(path, None)?)),
            Self::Folder(folder) => create_in(folder).map(Some),
            Self::Auto => create_in(&make_state_directory()?).map(Some),
        }
    }

    /// Makes sure that `owner`, whom the program is about to become, finds the state directory and can write to it.
    pub(crate) fn hand_to(self, owner: &privileges::Target) -> anyhow::Result<Self> {
        if self != Self::Auto {
            return Ok(self);
        }
        let folder = make_state_directory()?;
        owner.give(&folder)?;
        Ok(Self::Folder(folder))
    }
}

fn create(path: &Path, archives_bytes_max: Option<u64>) -> anyhow::Result<FileWriter> {
    let options = FileOptions { size_max: FILE_BYTES_MAX, archives_bytes_max, ..FileOptions::default() };
    Ok(FileWriter::create(path, options)?)
}

/// Begins the first of `tlsdash.journal`, `tlsdash-2.journal` and so on that no running tlsdash is writing.
fn create_in(folder: &Path) -> anyhow::Result<FileWriter> {
    for n in 1..=WRITERS_MAX {
        let name = if n == 1 { "tlsdash.journal".to_owned() } else { format!("tlsdash-{n}.journal") };
        match create(&folder.join(name), Some(ARCHIVES_BYTES_MAX)) {
            Err(error) if matches!(error.downcast_ref(), Some(WriteError::Locked { .. })) => {}
            created => return created,
        }
    }
    anyhow::bail!(
        "{WRITERS_MAX} running tlsdash write to {} already; give this one --journal file:PATH",
        folder.display()
    )
}

fn make_state_directory() -> anyhow::Result<PathBuf> {
    let folder = state_directory()?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the state directory {}", folder.display()))?;
    Ok(folder)
}

/// The folder that `auto` writes to.
fn state_directory() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("STATE_DIRECTORY") {
        // systemd separates several directories of a unit by colons; the first is ours.
        let first = folder.to_string_lossy().split(':').next().unwrap_or_default().to_owned();
        return Ok(first.into());
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/tlsdash".into());
    }
    set("XDG_STATE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("tlsdash"))
        .context("cannot tell where to write the journal: neither XDG_STATE_HOME nor HOME is set; give --journal file:PATH")
}

/// The journal that `auto` wrote to last.
pub(crate) fn newest_auto() -> anyhow::Result<PathBuf> {
    let folder = state_directory()?;
    let entries = std::fs::read_dir(&folder).with_context(|| {
        format!("no journal to watch: cannot read {}; start tlsdash, or name a SOURCE", folder.display())
    })?;
    let journal = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_live = name.ends_with(".journal") && !name.contains('@');
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
        is_live.then(|| (modified, entry.path()))
    };
    entries.filter_map(|entry| journal(entry.ok()?)).max().map(|(_, path)| path).with_context(|| {
        format!("no journal to watch in {}; start tlsdash, or name a SOURCE", folder.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_journal_are_understood() {
        assert_eq!(JournalChoice::parse("auto").unwrap(), JournalChoice::Auto);
        assert_eq!(JournalChoice::parse("off").unwrap(), JournalChoice::Off);
        let file = JournalChoice::parse("file:/tmp/a:b.journal").unwrap();
        assert_eq!(file, JournalChoice::File("/tmp/a:b.journal".into()));
        for text in ["", "file:", "file:/tmp/x", "systemd", "off:1"] {
            assert!(JournalChoice::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_second_writer_takes_the_next_file() {
        let folder = tempfile::tempdir().unwrap();
        let first = create_in(folder.path()).unwrap();
        let second = create_in(folder.path()).unwrap();
        assert_eq!(first.path().file_name().unwrap(), "tlsdash.journal");
        assert_eq!(second.path().file_name().unwrap(), "tlsdash-2.journal");
    }
}
