//! The state directory, where `--journal auto` keeps journal files, and the files in it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use journal::{FileOptions, FileWriter, WriteError};

/// The name of the first file that `--journal auto` takes.
const OWN_FILE: &str = "tlsdash.journal";
/// Size at which a file is archived and the next begun. Our values are short, so the hash table, whose size depends on
/// this limit, is full first: at about 19 MB, ten minutes of the demo. A reader of a growing file keeps its values in
/// memory, at some three times their size, until the next file begins, so this limits the memory of watching.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of all archives in the state directory: some ten hours of the demo, far more of a quiet proxy.
const ARCHIVES_BYTES_MAX: u64 = 1 << 30;
/// Age of its last record at which an archive is removed.
const ARCHIVES_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Age of its first record at which a file is archived, since archives are only removed whole.
const FILE_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Writers that may use the same state directory at once.
const WRITERS_MAX: u32 = 16;

/// A file changed within this time is being written: a run writes each interval.
const WRITTEN: Duration = Duration::from_secs(60);

/// Creates a file at a path that the user named. No archive is ever removed there.
pub(crate) fn create_named(path: &Path) -> Result<FileWriter, WriteError> {
    FileWriter::create(path, FileOptions { size_max: FILE_BYTES_MAX, ..FileOptions::default() })
}

/// Creates a file at a path that the user named, or, while another process writes that, the first of `NAME-2.journal`,
/// `NAME-3.journal` and so on that no process writes.
///
/// # Errors
/// When no file can be created.
pub(crate) fn create_beside(path: &Path) -> Result<FileWriter, WriteError> {
    let mut created = create_named(path);
    for n in 2..=WRITERS_MAX {
        if !matches!(created, Err(WriteError::Locked { .. })) {
            break;
        }
        created = create_named(&numbered(path, n));
    }
    created
}

/// The path, or, if the file exists, the first free one of `NAME-2.journal`, `NAME-3.journal` and so on.
pub(crate) fn free_beside(path: &Path) -> PathBuf {
    let others = (2..=u32::MAX).map(|n| numbered(path, n));
    std::iter::once(path.to_owned()).chain(others).find(|path| !path.exists()).unwrap_or_default()
}

/// The path with a number behind the file's name.
fn numbered(path: &Path, n: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{n}.journal"))
}

/// Returns the state directory, creating it if needed.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn make() -> anyhow::Result<PathBuf> {
    let folder = path().context("cannot tell where to write the journal; give --journal file:PATH")?;
    make_at(&folder)?;
    Ok(folder)
}

/// Creates a state directory if needed.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn make_at(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the state directory {}", folder.display()))
}

/// The first file that `--journal auto` takes; `None` without a folder.
pub(crate) fn own_file() -> Option<PathBuf> {
    path().ok().map(|folder| folder.join(OWN_FILE))
}

/// Creates the first of `tlsdash.journal`, `tlsdash-2.journal` and so on that no running tlsdash writes.
///
/// # Errors
/// When no file can be created in the folder.
pub(crate) fn begin_in(folder: &Path) -> anyhow::Result<FileWriter> {
    for n in 1..=WRITERS_MAX {
        let name = if n == 1 { OWN_FILE.to_owned() } else { format!("tlsdash-{n}.journal") };
        let options = FileOptions {
            size_max: FILE_BYTES_MAX,
            age_max: Some(FILE_AGE_MAX),
            archives_bytes_max: Some(ARCHIVES_BYTES_MAX),
            archives_age_max: Some(ARCHIVES_AGE_MAX),
            ..FileOptions::default()
        };
        match FileWriter::create(&folder.join(name), options) {
            Err(WriteError::Locked { .. }) => {}
            created => return Ok(created?),
        }
    }
    anyhow::bail!(
        "{WRITERS_MAX} running tlsdash write to {} already; give this one --journal file:PATH",
        folder.display()
    )
}

/// The file in which the dashboard keeps its columns and panes; `None` without a folder.
pub(crate) fn dashboard_file() -> Option<PathBuf> {
    path().ok().map(|folder| folder.join("dashboard.json"))
}

/// The state directory, which may not exist.
///
/// # Errors
/// If no variable leads to one.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
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
        .context("neither STATE_DIRECTORY nor XDG_STATE_HOME nor HOME is set")
}

/// The file written last, and whether it is being written.
///
/// # Errors
/// If there is none.
pub(crate) fn newest() -> anyhow::Result<(PathBuf, bool)> {
    let folder = path()?;
    let entries = std::fs::read_dir(&folder).with_context(|| {
        format!("no journal to watch: cannot read {}; start tlsdash, or name a SOURCE", folder.display())
    })?;
    let journal = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_live = name.ends_with(".journal") && !name.contains('@');
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
        is_live.then(|| (modified, entry.path()))
    };
    let newest = entries.filter_map(|entry| journal(entry.ok()?)).max();
    let (modified, path) = newest.with_context(|| {
        format!("no journal to watch in {}; start tlsdash, or name a SOURCE", folder.display())
    })?;
    let age = SystemTime::now().duration_since(modified).unwrap_or_default();
    Ok((path, age < WRITTEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_takes_the_next_file() {
        let folder = tempfile::tempdir().unwrap();
        let first = begin_in(folder.path()).unwrap();
        let second = begin_in(folder.path()).unwrap();
        assert_eq!(first.path().file_name().unwrap(), "tlsdash.journal");
        assert_eq!(second.path().file_name().unwrap(), "tlsdash-2.journal");
    }
}
