//! Cuts what a log file or a pipe gives into lines, within a bound.

pub(crate) mod health;
mod numbers;

use std::io::{self, Read};

/// The longest line that is read, in bytes; what is longer is one bad line.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Cuts bytes into lines. Holds the beginning of a line whose end has not come.
#[derive(Debug)]
pub struct LineReader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The line was too long: its rest is passed over.
    is_skipping: bool,
}

impl Default for LineReader {
    fn default() -> Self {
        Self { buffer: vec![0; 2 * LINE_BYTES_MAX], start: 0, end: 0, is_skipping: false }
    }
}

impl LineReader {
    /// Reads once, and passes each whole line to `line`. Gives the bytes read: 0 at the end of the file.
    ///
    /// # Errors
    /// As those of the reader.
    pub fn read(&mut self, from: &mut impl Read, mut line: impl FnMut(&[u8])) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = from.read(&mut self.buffer[self.end..])?;
        let mut seen = self.end;
        self.end += read;
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[seen..self.end]) {
            if !std::mem::take(&mut self.is_skipping) {
                line(&self.buffer[self.start..seen + at]);
            }
            (self.start, seen) = (seen + at + 1, seen + at + 1);
        }
        if self.end - self.start >= LINE_BYTES_MAX {
            if !self.is_skipping {
                line(&self.buffer[self.start..self.end]);
            }
            (self.start, self.is_skipping) = (self.end, true);
        }
        Ok(read)
    }

    /// Passes on the last line, which has no end.
    pub fn finish(&mut self, line: impl FnOnce(&[u8])) {
        if self.start < self.end && !self.is_skipping {
            line(&self.buffer[self.start..self.end]);
        }
        (self.start, self.end, self.is_skipping) = (0, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut reader = LineReader::default();
        let mut lines = Vec::new();
        for mut piece in bytes.chunks(piece) {
            while reader.read(&mut piece, |line| lines.push(line.to_vec())).unwrap() > 0 {}
        }
        reader.finish(|line| lines.push(line.to_vec()));
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        for piece in [1, 2, 3, 100] {
            assert_eq!(lines(b"ab\n\nc\nd", piece), [&b"ab"[..], b"", b"c", b"d"], "{piece}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_one_line_and_takes_bounded_memory() {
        let mut long = vec![b'x'; 5 * LINE_BYTES_MAX];
        long.extend_from_slice(b"\nnext\n");
        let lines = lines(&long, 10_000);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], b"next");
    }
}
