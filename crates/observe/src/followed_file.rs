//! A log file that is read as it grows, over rotations.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lines::LineReader;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_observer::LineSource;

/// The time between two looks at a file that has not grown.
const POLL: Duration = Duration::from_millis(20);
/// Reads before the thread answers the collector.
const READS_EACH_TURN: usize = 16;

/// Follows a file by its name, as `tail -F` does: a file that was renamed is read to its end before the new one, and a
/// file that was cut (`copytruncate`) is read from its start.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    file: File,
    lines: LineReader,
    position: u64,
    /// The file was renamed or removed, and had been read to its end then.
    was_replaced: bool,
    /// Why the file that has the name cannot be opened.
    refusal: String,
}

/// Opens a file. Anything else that has its name, such as a named pipe, must not hold the thread.
fn open_regular(path: &Path) -> io::Result<File> {
    journal::open_regular(path)?.ok_or_else(|| io::Error::other("it is no regular file"))
}

impl FollowedFile {
    /// Follows a file from its end.
    ///
    /// # Errors
    /// When the file cannot be opened, or is no regular one.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open_regular(path)?;
        let position = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            lines: LineReader::default(),
            position,
            was_replaced: false,
            refusal: String::new(),
        })
    }

    /// Reads as much as there is within bounds. Gives the bytes read.
    fn read_on(
        &mut self,
        health: &mut LineHealth,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize> {
        let mut sum = 0;
        for _ in 0..READS_EACH_TURN {
            let read = self.lines.read(&mut self.file, |text| line(health, text))?;
            self.position += read as u64;
            sum += read;
            if read == 0 {
                break;
            }
        }
        Ok(sum)
    }

    /// Whether another file has this name by now, with something in it.
    fn is_replaced(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        // Between rename and create there is no file, or something else for a moment.
        let Ok(named) = fs::metadata(&self.path) else { return Ok(false) };
        let is_other = (named.dev(), named.ino()) != (own.dev(), own.ino());
        Ok(is_other && named.is_file() && named.len() > 0)
    }

    /// Opens the file that has the name now. If that fails, it is tried again.
    fn reopen(&mut self, health: &mut LineHealth) -> bool {
        self.was_replaced = false;
        match open_regular(&self.path) {
            Ok(file) => {
                (self.file, self.position) = (file, 0);
                self.refusal.clear();
                true
            }
            Err(error) => {
                let refusal = error.to_string();
                if refusal != self.refusal {
                    let path = self.path.display();
                    health.warn("log", &format!("cannot open the new {path}: {refusal}; it is tried again"));
                }
                self.refusal = refusal;
                false
            }
        }
    }
}

impl LineSource for FollowedFile {
    fn transport(&self) -> LogTransport {
        LogTransport::File
    }

    fn read(
        &mut self,
        health: &mut LineHealth,
        may_wait: bool,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize> {
        let read = self.read_on(health, line)?;
        if read > 0 {
            self.was_replaced = false;
            return Ok(read);
        }
        if self.file.metadata()?.len() < self.position {
            self.position = self.file.seek(SeekFrom::Start(0))?;
            self.lines = LineReader::default();
            return self.read_on(health, line);
        }
        if self.was_replaced {
            // The terminator may have written to the old file until it was told to reopen, and has had its time.
            self.lines.finish(|text| line(health, text));
            if self.reopen(health) {
                return self.read_on(health, line);
            }
        } else {
            self.was_replaced = self.is_replaced()?;
        }
        if may_wait && !self.was_replaced {
            std::thread::sleep(POLL);
        }
        Ok(usize::from(self.was_replaced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read_all(file: &mut FollowedFile) -> Vec<String> {
        let (mut health, mut lines) = (LineHealth::default(), Vec::new());
        let mut push =
            |_: &mut LineHealth, line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        while file.read(&mut health, false, &mut push).unwrap() > 0 {}
        lines
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end_and_then_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "before\n").unwrap();
        let mut old = File::options().append(true).open(&path).unwrap();
        let mut followed = FollowedFile::open(&path).unwrap();
        old.write_all(b"one\ntw").unwrap();
        assert_eq!(read_all(&mut followed), ["one"]);
        fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        old.write_all(b"o\n").unwrap();
        assert_eq!(read_all(&mut followed), ["two"]);
        fs::write(&path, "three\n").unwrap();
        old.write_all(b"late\n").unwrap();
        assert_eq!(read_all(&mut followed), ["late", "three"]);
    }

    #[test]
    fn what_is_no_file_for_a_moment_does_not_end_following() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "before\n").unwrap();
        let mut followed = FollowedFile::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("log"), "within\n").unwrap();
        assert!(FollowedFile::open(&path).unwrap_err().to_string().contains("no regular file"));
        assert_eq!(read_all(&mut followed), [""; 0]);
        fs::remove_dir_all(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(FollowedFile::open(&path).is_err());
        assert_eq!(read_all(&mut followed), [""; 0]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "after\n").unwrap();
        assert_eq!(read_all(&mut followed), ["after"]);
    }

    #[test]
    fn a_truncated_file_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "a long line before\n").unwrap();
        let mut followed = FollowedFile::open(&path).unwrap();
        fs::write(&path, "new\n").unwrap();
        assert_eq!(read_all(&mut followed), ["new"]);
    }
}
