//! A log file that is read as it grows, over rotations.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lines::LineReader;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_observer::LineSource;

/// The time between two looks at a file that has not grown.
const POLL: Duration = Duration::from_millis(20);
/// How long a file that was replaced must not grow until it is closed: processes reopen their log one after the other.
const REPLACED_PATIENCE: Duration = Duration::from_secs(1);
/// The most files that are read at once: that with the name, and those that it replaced.
const FILES_MAX: usize = 8;
/// Reads before the thread answers the collector.
const READS_EACH_TURN: usize = 16;

/// Follows a file by its name, as `tail -F` does: a file that was renamed is read, before the new one, until nobody
/// writes to it any more, and a file that was cut (`copytruncate`) is read from its start.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    /// The files that had the name, the oldest first, and the one that has it. Never empty.
    files: Vec<OpenFile>,
    patience: Duration,
    /// Why the file that has the name cannot be opened.
    refusal: String,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    lines: LineReader,
    position: u64,
    /// When it grew last, or was replaced.
    changed_at: Instant,
}

/// Opens a file. Anything else that has its name, such as a named pipe, must not hold the thread.
fn open_regular(path: &Path) -> io::Result<File> {
    journal::open_regular(path)?.ok_or_else(|| io::Error::other("it is no regular file"))
}

impl OpenFile {
    fn new(file: File, position: u64) -> Self {
        Self { file, lines: LineReader::default(), position, changed_at: Instant::now() }
    }

    /// Reads as much as there is within bounds. Gives the bytes read.
    fn read(
        &mut self,
        health: &mut LineHealth,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize> {
        if self.file.metadata()?.len() < self.position {
            self.position = self.file.seek(SeekFrom::Start(0))?;
            self.lines = LineReader::default();
        }
        let mut sum = 0;
        for _ in 0..READS_EACH_TURN {
            let read = self.lines.read(&mut self.file, |text| line(health, text))?;
            self.position += read as u64;
            sum += read;
            if read == 0 {
                break;
            }
        }
        if sum > 0 {
            self.changed_at = Instant::now();
        }
        Ok(sum)
    }
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
            files: vec![OpenFile::new(file, position)],
            patience: REPLACED_PATIENCE,
            refusal: String::new(),
        })
    }

    /// Whether another file has this name by now, with something in it.
    fn is_replaced(&self) -> io::Result<bool> {
        let Some(last) = self.files.last() else { return Ok(true) };
        let own = last.file.metadata()?;
        // Between rename and create there is no file, or something else for a moment.
        let Ok(named) = fs::metadata(&self.path) else { return Ok(false) };
        let is_other = (named.dev(), named.ino()) != (own.dev(), own.ino());
        Ok(is_other && named.is_file() && named.len() > 0)
    }

    /// Opens the file that has the name now. If that fails, it is tried again.
    fn reopen(&mut self, health: &mut LineHealth) {
        match open_regular(&self.path) {
            Ok(file) => {
                if let Some(replaced) = self.files.last_mut() {
                    replaced.changed_at = Instant::now();
                }
                self.files.push(OpenFile::new(file, 0));
                self.refusal.clear();
            }
            Err(error) => {
                let refusal = error.to_string();
                if refusal != self.refusal {
                    let path = self.path.display();
                    health.warn("log", &format!("cannot open the new {path}: {refusal}; it is tried again"));
                }
                self.refusal = refusal;
            }
        }
    }

    /// Stops reading the file in this place.
    fn close(&mut self, place: usize, health: &mut LineHealth, line: &mut dyn FnMut(&mut LineHealth, &[u8])) {
        self.files.remove(place).lines.finish(|text| line(health, text));
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
        if self.is_replaced()? {
            self.reopen(health);
        }
        if self.files.len() > FILES_MAX {
            let path = self.path.display();
            let text = format!(
                "{path} was replaced {FILES_MAX} times while the oldest file was still written or read; the rest of that file is not read"
            );
            health.warn("log", &text);
            self.close(0, health, line);
        }
        for file in &mut self.files {
            let read = file.read(health, line)?;
            if read > 0 {
                return Ok(read);
            }
        }
        // At the end of the run nobody waits for what may still come.
        let patience = if may_wait { self.patience } else { Duration::ZERO };
        let is_over = |file: &OpenFile| file.changed_at.elapsed() >= patience;
        while let Some((_, replaced)) = self.files.split_last()
            && let Some(place) = replaced.iter().position(is_over)
        {
            self.close(place, health, line);
        }
        if may_wait {
            std::thread::sleep(POLL);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The lines up to the end of a run.
    fn read_all(file: &mut FollowedFile) -> Vec<String> {
        read(file, false).0
    }

    /// The lines that there are, and the notices about them.
    fn read(file: &mut FollowedFile, may_wait: bool) -> (Vec<String>, usize) {
        let (mut health, mut lines) = (LineHealth::default(), Vec::new());
        let mut push =
            |_: &mut LineHealth, line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        while file.read(&mut health, may_wait, &mut push).unwrap() > 0 {}
        (lines, health.take_notices().len())
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
    fn a_rotated_file_is_read_while_a_process_still_writes_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "before\n").unwrap();
        let mut old = File::options().append(true).open(&path).unwrap();
        let mut followed = FollowedFile { patience: Duration::MAX, ..FollowedFile::open(&path).unwrap() };
        fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        fs::write(&path, "one\n").unwrap();
        assert_eq!(read(&mut followed, true).0, ["one"]);
        assert_eq!(read(&mut followed, true).0, [""; 0]);
        old.write_all(b"two\nthr").unwrap();
        assert_eq!(read(&mut followed, true).0, ["two"]);
        followed.patience = Duration::ZERO;
        assert_eq!(read(&mut followed, true).0, ["thr"]);
        assert_eq!(followed.files.len(), 1);
    }

    #[test]
    fn a_file_replaced_too_often_gives_up_the_oldest_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "before\n").unwrap();
        let mut old = File::options().append(true).open(&path).unwrap();
        let mut followed = FollowedFile { patience: Duration::MAX, ..FollowedFile::open(&path).unwrap() };
        for nth in 1..=FILES_MAX {
            fs::rename(&path, folder.path().join(nth.to_string())).unwrap();
            fs::write(&path, "new\n").unwrap();
            old.write_all(b"old\n").unwrap();
            let expected: &[&str] = if nth < FILES_MAX { &["old", "new"] } else { &["new"] };
            let (lines, notices) = read(&mut followed, true);
            assert_eq!(
                (lines, notices),
                (expected.iter().map(|&line| line.into()).collect(), usize::from(nth == FILES_MAX))
            );
        }
        assert_eq!(followed.files.len(), FILES_MAX);
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
