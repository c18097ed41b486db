//! The bytes of a capture, block by block.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

use super::{BLOCK_BYTES_MAX, CaptureError};

/// What is buffered, in bytes: a block and more, so that bytes are moved once for many blocks.
const BUFFER_BYTES: usize = 4 * BLOCK_BYTES_MAX;

/// A reader with a look ahead of one block.
pub(super) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// The bytes that have been read and not consumed.
    ahead: Range<usize>,
    /// The bytes that were consumed last.
    last: Range<usize>,
    /// The offset of the bytes ahead in the capture.
    offset: u64,
    is_over: bool,
    is_cut: bool,
}

impl Input {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { reader, buffer, ahead: 0..0, last: 0..0, offset: 0, is_over: false, is_cut: false }
    }

    /// The next `len` bytes, at most `BLOCK_BYTES_MAX`, which stay ahead. `None` at the end; if there were fewer, the input is
    /// cut.
    pub(super) fn peek(&mut self, len: usize) -> io::Result<Option<&[u8]>> {
        if self.ahead.start + len > self.buffer.len() {
            self.buffer.copy_within(self.ahead.clone(), 0);
            self.ahead = 0..self.ahead.len();
        }
        while self.ahead.len() < len && !self.is_over {
            self.read_on()?;
        }
        if self.ahead.len() < len {
            self.is_cut |= !self.ahead.is_empty();
            return Ok(None);
        }
        Ok(Some(&self.buffer[self.ahead.start..][..len]))
    }

    /// Consumes bytes that `peek` has shown.
    pub(super) fn consume(&mut self, len: usize) {
        self.last = self.ahead.start..self.ahead.start + len;
        self.ahead.start += len;
        self.offset += len as u64;
    }

    /// The bytes that were consumed last, until the next `peek`.
    pub(super) fn last(&self) -> &[u8] {
        &self.buffer[self.last.clone()]
    }

    /// Passes over bytes, however many.
    pub(super) fn skip(&mut self, len: u32) -> io::Result<()> {
        let mut rest = len as usize;
        while rest > 0 {
            let part = rest.min(BLOCK_BYTES_MAX);
            if self.peek(part)?.is_none() {
                self.is_cut = true;
                self.consume(self.ahead.len());
                return Ok(());
            }
            self.consume(part);
            rest -= part;
        }
        Ok(())
    }

    /// The bytes ahead are not what they should be.
    pub(super) fn damaged(&self) -> CaptureError {
        CaptureError::Damaged { offset: self.offset }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn read_on(&mut self) -> io::Result<()> {
        match self.reader.read(&mut self.buffer[self.ahead.end..]) {
            Ok(0) => self.is_over = true,
            Ok(len) => self.ahead.end += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // So decompressors say that their input has no end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                (self.is_over, self.is_cut) = (true, true);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("offset", &self.offset)
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}
