//! Output files for users: reports, tables, exports. A file is written completely or not at all, only its owner may
//! read a new one, and recordings are never replaced.
//!
//! The text goes into a temporary file of mode 0600 in the same folder, which is synced and then renamed. Symbolic
//! links are not followed. Other kinds of files, such as a pipe or `/dev/null`, are written directly.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Access, Gid, OFlags};
use tempfile::NamedTempFile;

/// How every journal begins.
const JOURNAL_SIGNATURE: [u8; 8] = *b"LPKSHHRH";
/// In a folder with this bit others may put files beside ours.
const STICKY: u32 = 0o1000;
/// Reports name clients: only the owner may read a new one.
const MODE: u32 = 0o600;
const GROUP_BITS: u32 = 0o070;
const PERMISSION_BITS: u32 = 0o777;

/// Why a file is not written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The path is a symbolic link.
    #[error("it is a symbolic link, and links are not followed; name the file itself")]
    Link,
    /// The path is a folder.
    #[error("it is a folder")]
    Folder,
    /// The path is a recording.
    #[error("it is a journal, and recordings are never overwritten; name another file")]
    Journal,
    /// The name is reserved for recordings.
    #[error("a name that ends in .journal is that of a recording; name another file")]
    JournalName,
    /// Another user may have created it to read the output.
    #[error("it is a pipe of another user")]
    ForeignPipe,
    /// Only a new file was wanted.
    #[error("it exists and is left as it is")]
    Exists,
    /// It cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl OutputError {
    /// True if another path has to be named; false if this one could be written in other circumstances.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Io(_))
    }
}

/// One file, identified independently of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileIdentity {
    /// Device and inode of a file that exists.
    Existing(u64, u64),
    /// Device and inode of the folder, and the name there, of a file that does not.
    New(u64, u64, OsString),
}

impl FileIdentity {
    /// The file at the path, links followed.
    ///
    /// # Errors
    /// If neither it nor its folder can be found.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) => Ok(Self::Existing(found.dev(), found.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = fs::metadata(folder_of(path))?;
                Ok(Self::New(folder.dev(), folder.ino(), path.file_name().unwrap_or_default().to_owned()))
            }
            Err(error) => Err(error),
        }
    }
}

/// What exists at an output path.
enum OutputPathKind {
    /// Nothing, or a regular file that is replaced.
    File(Option<Metadata>),
    /// Something else, which takes bytes as they come.
    Stream,
}

/// True if the path means standard output: `-`, or the kernel's names for it.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// True if the output can be read afterwards, so a second output would replace it.
pub fn is_kept(path: &Path) -> bool {
    matches!(look(path), Ok(OutputPathKind::File(_)))
}

/// Checks that the file may and can be written, without changing it.
///
/// # Errors
/// If it may not or cannot be written.
pub fn check(path: &Path) -> Result<(), OutputError> {
    // A pipe would wait for its reader.
    if let OutputPathKind::File(_) = look(path)? {
        drop(temporary(path)?);
    }
    Ok(())
}

/// Writes the file, or replaces a regular file. The new file has the mode of the replaced one, unless that was another
/// user's.
///
/// # Errors
/// If it may not or cannot be written; an existing file is then unchanged.
pub fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    let replaced = match look(path)? {
        OutputPathKind::File(replaced) => replaced,
        OutputPathKind::Stream => return write_straight(path, text),
    };
    let file = filled(path, text)?;
    if let Some(replaced) = replaced {
        keep_mode(file.as_file(), &replaced)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes the file if there is nothing at the path.
///
/// # Errors
/// If there is, or it cannot be written.
pub fn write_new(path: &Path, text: &str) -> Result<(), OutputError> {
    let file = filled(path, text)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => OutputError::Exists,
        _ => OutputError::Io(error.error),
    })?;
    Ok(())
}

fn look(path: &Path) -> Result<OutputPathKind, OutputError> {
    if is_own_descriptor(path) {
        return Ok(OutputPathKind::Stream);
    }
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Some(found?),
    };
    let Some(found) = found else {
        return if is_journal_name(path) {
            Err(OutputError::JournalName)
        } else {
            Ok(OutputPathKind::File(None))
        };
    };
    let kind = found.file_type();
    if kind.is_symlink() {
        Err(OutputError::Link)
    } else if kind.is_dir() {
        Err(OutputError::Folder)
    } else if kind.is_file() {
        // A file that may not be written may not be replaced either.
        rustix::fs::access(path, Access::WRITE_OK).map_err(io::Error::from)?;
        if begins_as_journal(path)? {
            return Err(OutputError::Journal);
        }
        if is_journal_name(path) {
            Err(OutputError::JournalName)
        } else {
            Ok(OutputPathKind::File(Some(found)))
        }
    } else if kind.is_fifo() && may_be_planted(&Owners::of(path, &found)?) {
        Err(OutputError::ForeignPipe)
    } else {
        Ok(OutputPathKind::Stream)
    }
}

/// True for the names under which the kernel and shells pass descriptors. They are links to files that are already
/// open.
fn is_own_descriptor(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/stderr"];
    let folders = ["/dev/fd", "/proc/self/fd"];
    names.iter().any(|name| path == Path::new(name))
        || folders.iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

fn is_journal_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

/// An unreadable file is treated as a journal: its content is unknown.
fn begins_as_journal(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    // In case it was exchanged: a link is not followed, and a pipe's other end not waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    file.take(JOURNAL_SIGNATURE.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning == JOURNAL_SIGNATURE)
}

/// The owners of a file and of its folder.
struct Owners {
    ours: u32,
    file: u32,
    folder: u32,
    folder_mode: u32,
}

impl Owners {
    fn of(path: &Path, found: &Metadata) -> io::Result<Self> {
        let folder = fs::metadata(folder_of(path))?;
        let ours = rustix::process::geteuid().as_raw();
        Ok(Self { ours, file: found.uid(), folder: folder.uid(), folder_mode: folder.mode() })
    }
}

/// True for a file of another user in a folder that everybody may write to.
fn may_be_planted(owners: &Owners) -> bool {
    owners.folder_mode & STICKY != 0 && ![owners.ours, owners.folder].contains(&owners.file)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// A file of mode 0600 beside the path, removed unless it takes its place.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    if path.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The library's own errors name the temporary file, which means nothing to the user.
    let open = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    tempfile::Builder::new().prefix(".tlsdash-").make_in(folder_of(path), open)
}

fn filled(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = temporary(path)?;
    file.as_file_mut().write_all(text.as_bytes())?;
    Ok(file)
}

/// Gives a file the mode of the replaced one. Another user's file may be readable for that user's purposes, and a
/// group that we cannot set is not the group that may read it.
fn keep_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    let ours = file.metadata()?;
    if replaced.uid() != ours.uid() {
        return Ok(());
    }
    let mut mode = replaced.mode() & PERMISSION_BITS;
    let is_of_group = || rustix::fs::fchown(file, None, Some(Gid::from_raw(replaced.gid()))).is_ok();
    if replaced.gid() != ours.gid() && !is_of_group() {
        mode &= !GROUP_BITS;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

fn write_straight(path: &Path, text: &str) -> Result<(), OutputError> {
    // A descriptor may refer to a file that another process writes too.
    let mut file = OpenOptions::new().append(true).open(path)?;
    if file.metadata()?.is_file() && !is_own_descriptor(path) {
        return Err(io::Error::other("it was exchanged meanwhile").into());
    }
    Ok(file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests;
