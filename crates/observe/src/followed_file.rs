//! A log file that is read as it grows, over rotations.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::line_health::{LineHealth, LogTransport};
use crate::lines::LineReader;
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
}

impl FollowedFile {
    /// Follows a file from its end.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let position = file.seek(SeekFrom::End(0))?;
        Ok(Self { path: path.to_owned(), file, lines: LineReader::default(), position, was_replaced: false })
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

    /// Whether another file has this name by now.
    fn is_replaced(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        // Between rename and create there is no file.
        let Ok(named) = fs::metadata(&self.path) else { return Ok(false) };
        Ok((named.dev(), named.ino()) != (own.dev(), own.ino()))
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
            self.file = File::open(&self.path)?;
            (self.position, self.was_replaced) = (0, false);
            return self.read_on(health, line);
        }
        self.was_replaced = self.is_replaced()? && fs::metadata(&self.path)?.len() > 0;
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
    fn a_truncated_file_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "a long line before\n").unwrap();
        let mut followed = FollowedFile::open(&path).unwrap();
        fs::write(&path, "new\n").unwrap();
        assert_eq!(read_all(&mut followed), ["new"]);
    }
}
