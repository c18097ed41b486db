//! Files of certificates and keys: reading them, and noticing that they have been replaced.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};

/// Largest file that is read, in bytes; chains are a few kilobytes, bundles of authorities a few hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// In UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The contents of a file, and its permissions, both of the same open file.
pub(in crate::tls) struct FileContents {
    pub(in crate::tls) bytes: Zeroizing<Vec<u8>>,
    mode: u32,
}

/// Reads a file that must not be empty.
pub(in crate::tls) fn read(path: &Path) -> Result<FileContents, TlsFileError> {
    read_at_most(path, FILE_BYTES_MAX)
}

/// Reads a file that must not be empty, and not longer than `bytes_max`.
pub(in crate::tls) fn read_at_most(path: &Path, bytes_max: u64) -> Result<FileContents, TlsFileError> {
    let unreadable = |source| TlsFileError::Unreadable { path: path.to_owned(), source };
    let file = fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() > bytes_max {
        let problem = format!("it has {} bytes, more than {bytes_max}", metadata.len());
        return Err(TlsFileError::malformed(path, problem));
    }
    // Allocated at once: a growing vector leaves copies of a key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(bytes_max.min(metadata.len() + 1) as usize));
    file.take(bytes_max).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.is_empty() {
        return Err(TlsFileError::Empty(path.to_owned()));
    }
    Ok(FileContents { bytes, mode: metadata.permissions().mode() & 0o7777 })
}

/// Reads a file that must hold PEM.
pub(in crate::tls) fn read_pem(path: &Path) -> Result<FileContents, TlsFileError> {
    let mut contents = read(path)?;
    // Editors of Windows begin a file with it, and the first line of PEM must begin with a hyphen.
    if contents.bytes.starts_with(BYTE_ORDER_MARK) {
        contents.bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if contents.bytes.is_empty() {
        return Err(TlsFileError::Empty(path.to_owned()));
    }
    // Certificates and keys in DER are a SEQUENCE; text may begin with the same byte, a zero.
    if contents.bytes[0] == 0x30 && !contains(&contents.bytes, b"-----BEGIN") {
        return Err(TlsFileError::NotPem(path.to_owned()));
    }
    Ok(contents)
}

pub(in crate::tls) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

impl FileContents {
    /// Returns a warning if users other than the owner may read the secret.
    pub(in crate::tls) fn exposure(&self, path: &Path) -> Option<TlsFileWarning> {
        let exposed = self.mode & 0o077 != 0;
        exposed.then(|| TlsFileWarning::Exposed { path: path.to_owned(), mode: self.mode })
    }
}

/// Changes when a file is written to or replaced, also behind a symbolic link; `None`: there is no file.
type FileStamp = Option<(bool, u64, u64, u64, i64, i64, i64, i64)>;

fn stamp(path: &Path) -> FileStamp {
    let data = fs::metadata(path).ok()?;
    let times = (data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec());
    Some((data.is_file(), data.dev(), data.ino(), data.len(), times.0, times.1, times.2, times.3))
}

/// True for a pipe, a device or a folder: opening or reading one may wait for ever.
fn is_not_regular(stamp: FileStamp) -> bool {
    stamp.is_some_and(|(is_file, ..)| !is_file)
}

/// Where something was read from, and how the files were just before that.
#[derive(Clone, Debug)]
pub(in crate::tls) struct FileOrigin {
    paths: Vec<PathBuf>,
    stamps: Vec<FileStamp>,
}

impl FileOrigin {
    /// To be created before the files are read, so no change is missed.
    pub(in crate::tls) fn of(paths: &[&Path]) -> Self {
        let paths: Vec<PathBuf> = paths.iter().map(|&path| path.to_owned()).collect();
        let stamps = paths.iter().map(|path| stamp(path)).collect();
        Self { paths, stamps }
    }

    pub(in crate::tls) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The first path that was no regular file, such as a shell's `<(…)`: it was read to its end, and cannot be read
    /// again.
    fn pipe(&self) -> Option<&Path> {
        self.paths
            .iter()
            .zip(&self.stamps)
            .find_map(|(path, stamp)| is_not_regular(*stamp).then_some(&**path))
    }
}

/// A value that can be read from its files again.
pub(in crate::tls) trait FromFiles: Clone {
    /// Where it comes from; `None` if it was made in memory.
    fn origin(&self) -> Option<&FileOrigin>;
    fn read_again(&self) -> Result<Self, TlsFileError>;
}

/// A value from files that are checked regularly.
#[derive(Debug)]
pub(in crate::tls) struct WatchedFiles<T> {
    value: T,
    /// How the files were when they were last read, successfully or not.
    tried: Vec<FileStamp>,
    /// Their state at the last check.
    seen: Vec<FileStamp>,
    /// Why the files could not be read at the last attempt. The cause may be elsewhere, such as a shortage of
    /// descriptors, so reading is retried.
    unread: Option<String>,
}

impl<T: FromFiles> WatchedFiles<T> {
    pub(in crate::tls) fn new(value: T) -> Self {
        let stamps = value.origin().map(|origin| origin.stamps.clone()).unwrap_or_default();
        Self { value, seen: stamps.clone(), tried: stamps, unread: None }
    }

    /// The files; none if the value was made in memory.
    pub(in crate::tls) fn paths(&self) -> &[PathBuf] {
        self.value.origin().map_or(&[], FileOrigin::paths)
    }

    /// The file that can never be read again, if there is one: then [`check`](Self::check) does nothing.
    pub(in crate::tls) fn pipe(&self) -> Option<&Path> {
        self.value.origin()?.pipe()
    }

    /// Reads the files again if they have changed, and have then been stable since the last check, because a
    /// certificate and its key are replaced one after the other. With `at_once` they are read in any case. Returns the
    /// new content, or an error, which is reported once.
    pub(in crate::tls) fn check(&mut self, at_once: bool) -> Option<Result<T, TlsFileError>> {
        let origin = self.value.origin().filter(|origin| origin.pipe().is_none())?;
        let stamps: Vec<FileStamp> = origin.paths.iter().map(|path| stamp(path)).collect();
        // A file that has never existed is not yet due: a certificate has been ordered.
        if stamps.iter().chain(&origin.stamps).all(Option::is_none) {
            return None;
        }
        let has_settled = stamps == self.seen;
        self.seen.clone_from(&stamps);
        let is_due = has_settled && (stamps != self.tried || self.unread.is_some());
        if !at_once && !is_due {
            return None;
        }
        let not_regular = stamps.iter().position(|stamp| is_not_regular(*stamp));
        let not_regular = not_regular.map(|at| TlsFileError::not_regular(&origin.paths[at]));
        self.tried = stamps;
        let error = match not_regular.map_or_else(|| self.value.read_again(), Err) {
            Ok(new) => {
                self.unread = None;
                self.value = new.clone();
                return Some(Ok(new));
            }
            Err(error) => error,
        };
        let unread = matches!(error, TlsFileError::Unreadable { .. }).then(|| error.to_string());
        let is_said = unread.is_some() && unread == self.unread;
        self.unread = unread;
        (at_once || !is_said).then_some(Err(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first byte of a file; a file that begins with `!` is bad.
    #[derive(Clone)]
    struct FirstByte {
        byte: u8,
        origin: FileOrigin,
    }

    impl FirstByte {
        fn load(path: &Path) -> Result<Self, TlsFileError> {
            let origin = FileOrigin::of(&[path]);
            match read(path)?.bytes[0] {
                b'!' => Err(TlsFileError::malformed(path, "bad".into())),
                byte => Ok(Self { byte, origin }),
            }
        }
    }

    impl FromFiles for FirstByte {
        fn origin(&self) -> Option<&FileOrigin> {
            Some(&self.origin)
        }

        fn read_again(&self) -> Result<Self, TlsFileError> {
            Self::load(&self.origin.paths()[0])
        }
    }

    fn watched(path: &Path) -> WatchedFiles<FirstByte> {
        WatchedFiles::new(FirstByte::load(path).unwrap())
    }

    #[test]
    fn a_replaced_file_is_read_once_it_has_settled_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let mut watched = watched(&path);
        assert!(watched.check(false).is_none(), "nothing has changed");
        // As certbot and most editors do: written beside, and renamed over it.
        fs::write(folder.path().join("b"), "2").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        assert!(watched.check(false).is_none(), "it may not be whole yet");
        assert_eq!(watched.check(false).unwrap().unwrap().byte, b'2');
        assert!(watched.check(false).is_none());
        assert!(watched.check(true).is_some(), "who asks for it gets it read");
    }

    #[test]
    fn a_bad_file_is_told_once_and_a_good_one_taken_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let mut watched = watched(&path);
        fs::write(&path, "!!").unwrap();
        assert!(watched.check(false).is_none());
        assert!(watched.check(false).unwrap().is_err());
        assert!(watched.check(false).is_none(), "it was told before");
        fs::remove_file(&path).unwrap();
        assert!(watched.check(false).is_none());
        assert!(watched.check(false).unwrap().is_err());
        fs::write(&path, "3").unwrap();
        assert!(watched.check(false).is_none());
        assert_eq!(watched.check(false).unwrap().unwrap().byte, b'3');
    }

    #[test]
    fn what_cannot_be_read_is_told_once_and_tried_until_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let mut watched = watched(&path);
        fs::remove_file(&path).unwrap();
        assert!(watched.check(false).is_none());
        assert!(watched.check(false).unwrap().is_err());
        assert!(watched.check(false).is_none() && watched.unread.is_some(), "told once, and tried again");
        assert!(watched.check(true).unwrap().is_err(), "who asks is told");
        fs::write(&path, "2").unwrap();
        assert!(watched.check(false).is_none());
        assert!(watched.check(false).unwrap().is_ok());
        assert!(watched.check(false).is_none() && watched.unread.is_none());
    }

    #[test]
    fn what_is_no_regular_file_any_more_is_reported_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let mut watched = watched(&path);
        let make_pipe = || {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        };
        let make_link = || std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        for make in [&make_pipe as &dyn Fn(), &make_link, &|| fs::create_dir(&path).unwrap()] {
            fs::remove_file(&path).unwrap();
            make();
            let error = watched.check(true).unwrap().map(|new| new.byte).unwrap_err().to_string();
            assert!(error.ends_with("it is not a regular file"), "{error}");
            if path.is_dir() {
                fs::remove_dir(&path).unwrap();
                fs::write(&path, "2").unwrap();
            }
        }
        assert_eq!(watched.check(true).unwrap().unwrap().byte, b'2');
    }

    #[test]
    fn a_pipe_that_was_read_at_the_start_is_not_read_again() {
        let (ours, mut theirs) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut theirs, b"1").unwrap();
        drop(theirs);
        let path = PathBuf::from(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&ours)));
        let mut watched = watched(&path);
        assert_eq!(watched.pipe(), Some(&*path));
        assert!(watched.check(true).is_none());
    }

    #[test]
    fn a_symbolic_link_that_is_turned_shows() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // As Kubernetes mounts secrets: the file is a link into a folder that is itself behind a link.
        for (name, text) in [("one", "1"), ("two", "2")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("tls.crt"), text).unwrap();
        }
        std::os::unix::fs::symlink("one", at("..data")).unwrap();
        std::os::unix::fs::symlink("..data/tls.crt", at("tls.crt")).unwrap();
        let mut watched = watched(&at("tls.crt"));
        std::os::unix::fs::symlink("two", at("..new")).unwrap();
        fs::rename(at("..new"), at("..data")).unwrap();
        assert!(watched.check(false).is_none());
        assert_eq!(watched.check(false).unwrap().unwrap().byte, b'2');
    }
}
