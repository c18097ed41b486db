//! The pipe between the walk over a file and the reader that makes entries of its objects.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes on their way to the reader, which owns one end and takes them as from a stream.
///
/// When it is empty the reader meets the end of the stream, and goes on where it was once there is more.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed(Rc<RefCell<Buffer>>);

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    read: usize,
}

impl Feed {
    /// Lets `write` add bytes behind those that wait to be read.
    pub(super) fn extend<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut buffer = self.0.borrow_mut();
        let read = std::mem::take(&mut buffer.read);
        buffer.bytes.drain(..read);
        write(&mut buffer.bytes)
    }
}

impl Read for Feed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffer = self.0.borrow_mut();
        let waiting = &buffer.bytes[buffer.read..];
        let len = waiting.len().min(out.len());
        out[..len].copy_from_slice(&waiting[..len]);
        buffer.read += len;
        Ok(len)
    }
}
