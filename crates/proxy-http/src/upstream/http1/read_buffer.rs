//! The buffers into which a worker reads from upstreams. Long reads are passed on without copying, and their memory is
//! reused while it is in the processor's caches.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

/// Most that is read at once.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// Reads from here on are handed on in the buffer itself; shorter ones would leave most of it unused, and are copied.
const LENT_BYTES_MIN: usize = READ_BYTES_MAX / 2;
/// Reads up to here share memory.
pub(in crate::upstream) const SMALL_BYTES_MAX: usize = 512;
/// The size of a shared buffer. HPACK's table may keep a value of a response, and the buffer with it.
const SHARED_BYTES: usize = 1 << 10;
/// Buffers that are kept for later reads.
const SPARE_MAX: usize = 32;

/// A buffer to read into, and what its bytes become.
#[derive(Debug)]
pub(in crate::upstream) struct ReadBuffer {
    buffer: Box<[u8]>,
    small: BytesMut,
    spare: SpareBuffers,
}

/// `Bytes` requires an owner that is `Send`, so there is a lock. No other thread ever takes it.
#[derive(Clone, Debug, Default)]
struct SpareBuffers(Arc<Mutex<Vec<Box<[u8]>>>>);

/// A shared buffer, returned to the pool when its last reader is dropped.
struct LentBuffer {
    buffer: Box<[u8]>,
    len: usize,
    spare: SpareBuffers,
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self { buffer: new_buffer(), small: BytesMut::new(), spare: SpareBuffers::default() }
    }
}

impl ReadBuffer {
    /// The room for a read.
    pub(in crate::upstream) fn room(&mut self, bytes_max: usize) -> &mut [u8] {
        let bytes_max = bytes_max.min(self.buffer.len());
        &mut self.buffer[..bytes_max]
    }

    /// The first `n` bytes that were read.
    pub(in crate::upstream) fn bytes(&self, n: usize) -> &[u8] {
        &self.buffer[..n]
    }

    /// The memory that [`ReadBuffer::take`] gives `n` bytes. Small reads share theirs.
    pub(in crate::upstream) fn memory(n: usize) -> usize {
        if n < LENT_BYTES_MIN { n } else { READ_BYTES_MAX }
    }

    /// Takes the first `n` bytes that were read.
    pub(in crate::upstream) fn take(&mut self, n: usize) -> Bytes {
        if n <= SMALL_BYTES_MAX {
            if self.small.capacity() < n {
                self.small.reserve(SHARED_BYTES);
            }
            self.small.extend_from_slice(&self.buffer[..n]);
            return self.small.split().freeze();
        }
        if n < LENT_BYTES_MIN {
            return Bytes::copy_from_slice(&self.buffer[..n]);
        }
        let next = self.spare.lock().pop().unwrap_or_else(new_buffer);
        let buffer = mem::replace(&mut self.buffer, next);
        Bytes::from_owner(LentBuffer { buffer, len: n, spare: self.spare.clone() })
    }
}

fn new_buffer() -> Box<[u8]> {
    vec![0; READ_BYTES_MAX].into_boxed_slice()
}

impl SpareBuffers {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_MAX {
            spare.push(mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &mut ReadBuffer, byte: u8, n: usize) -> Bytes {
        buffer.room(n).fill(byte);
        buffer.take(n)
    }

    #[test]
    fn reads_of_any_length_keep_their_bytes() {
        let mut buffer = ReadBuffer::default();
        let lengths =
            [1, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, LENT_BYTES_MIN - 1, LENT_BYTES_MIN, READ_BYTES_MAX];
        let read: Vec<Bytes> = lengths
            .iter()
            .cycle()
            .take(30)
            .enumerate()
            .map(|(i, n)| read(&mut buffer, i as u8, *n))
            .collect();
        for (i, (bytes, n)) in read.iter().zip(lengths.iter().cycle()).enumerate() {
            assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == i as u8)), (*n, true), "{i}");
        }
    }

    #[test]
    fn long_reads_use_the_buffers_of_former_ones() {
        let mut buffer = ReadBuffer::default();
        let held: Vec<Bytes> = (0..2 * SPARE_MAX).map(|_| read(&mut buffer, 1, READ_BYTES_MAX)).collect();
        let first = held[0].as_ptr();
        let mut held = held.into_iter();
        drop(held.next());
        let spare = buffer.spare.clone();
        assert_eq!(spare.lock().len(), 1);
        drop(read(&mut buffer, 2, READ_BYTES_MAX));
        assert_eq!(read(&mut buffer, 3, READ_BYTES_MAX).as_ptr(), first);
        drop(held);
        assert_eq!(spare.lock().len(), SPARE_MAX);
    }
}
