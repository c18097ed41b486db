//! Buffers of pending bytes, and the pool of their memory.
//!
//! A connection owns memory only while its bytes wait to be written. Memory in the pool stays initialised, so
//! encrypting into a buffer neither allocates nor clears.

use std::mem;

/// Memory grows in steps of this many bytes: a small answer fits into one.
const STEP_BYTES: usize = 4 << 10;
/// Memory that the pool keeps, in bytes. The rest goes back to the kernel, which clears it before the next
/// connection gets it: with many slow clients that costs more than encrypting.
const POOL_BYTES_MAX: usize = 8 << 20;
/// Buffers that the pool keeps, so it stays small after thousands of small answers.
const POOL_BUFFERS_MAX: usize = 128;

/// Bytes that wait to be written: appended at the end, taken from the front.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// All of it is initialised; pending bytes are `head..tail`.
    memory: Vec<u8>,
    head: usize,
    tail: usize,
}

impl Buffer {
    pub(crate) fn len(&self) -> usize {
        self.tail - self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory[self.head..self.tail]
    }

    /// Takes `n` bytes from the front.
    pub(crate) fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "more was consumed than there is");
        self.head += n;
        if self.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Space for at least `n` bytes behind the end; [`Buffer::commit`] makes them part of the buffer.
    #[inline]
    pub(crate) fn room(&mut self, n: usize) -> &mut [u8] {
        if self.memory.len() - self.tail < n {
            self.grow(n);
        }
        &mut self.memory[self.tail..]
    }

    #[cold]
    fn grow(&mut self, n: usize) {
        self.memory.copy_within(self.head..self.tail, 0);
        (self.head, self.tail) = (0, self.len());
        let needed = (self.tail + n).next_multiple_of(STEP_BYTES);
        if self.memory.len() < needed {
            // Exactly: a client that does not read costs the buffer's limit and no more.
            self.memory.reserve_exact(needed - self.memory.len());
            self.memory.resize(needed, 0);
        }
    }

    /// Appends the first `n` bytes of the slice of [`Buffer::room`].
    pub(crate) fn commit(&mut self, n: usize) {
        assert!(n <= self.memory.len() - self.tail, "more was committed than there was room for");
        self.tail += n;
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Puts `bytes` before the pending bytes.
    pub(crate) fn prepend(&mut self, bytes: &[u8]) {
        self.room(bytes.len());
        self.memory.copy_within(self.head..self.tail, self.head + bytes.len());
        self.memory[self.head..self.head + bytes.len()].copy_from_slice(bytes);
        self.tail += bytes.len();
    }

    pub(crate) fn clear(&mut self) {
        (self.head, self.tail) = (0, 0);
    }

    /// Frees the memory of a buffer in which nothing waits: for one that is seldom needed.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.memory = Vec::new();
        }
    }

    /// How much memory it owns, in bytes.
    pub(crate) fn memory_len(&self) -> usize {
        self.memory.len()
    }
}

/// Memory that is not in use, for one worker.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

impl BufferPool {
    /// Gives memory to a buffer that has none.
    pub(crate) fn lend(&mut self, buffer: &mut Buffer) {
        if buffer.memory.is_empty() {
            buffer.memory = self.spare.pop().unwrap_or_default();
            self.spare_bytes -= buffer.memory.len();
        }
    }

    /// Takes the memory of a buffer back if nothing waits in it; returns how much it keeps, in bytes.
    pub(crate) fn reclaim(&mut self, buffer: &mut Buffer) -> usize {
        if !buffer.is_empty() {
            return buffer.memory.len();
        }
        if !buffer.memory.is_empty() {
            let memory = mem::take(&mut buffer.memory);
            if self.spare.len() < POOL_BUFFERS_MAX && self.spare_bytes + memory.len() <= POOL_BYTES_MAX {
                self.spare_bytes += memory.len();
                self.spare.push(memory);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn appended_bytes_are_consumed_in_order(steps in prop::collection::vec((0..20_000_usize, 0..20_000_usize), 1..40)) {
            let (mut buffer, mut model) = (Buffer::default(), VecDeque::<u8>::new());
            let mut next = 0_u8;
            for (append, consume) in steps {
                let bytes: Vec<u8> = (0..append).map(|_| { next = next.wrapping_add(7); next }).collect();
                buffer.extend(&bytes);
                model.extend(&bytes);
                let consume = consume.min(buffer.len());
                buffer.consume(consume);
                model.drain(..consume);
                prop_assert_eq!(buffer.as_slice(), &*model.make_contiguous());
            }
        }
    }

    #[test]
    fn prepended_bytes_are_consumed_first() {
        let mut buffer = Buffer::default();
        buffer.prepend(b"second");
        buffer.extend(b" third");
        buffer.consume(2);
        buffer.prepend(&[b'x'; STEP_BYTES]);
        assert_eq!(buffer.len(), STEP_BYTES + 10);
        assert!(buffer.as_slice().starts_with(b"xx") && buffer.as_slice().ends_with(b"xcond third"));
    }

    #[test]
    fn an_empty_buffer_gives_its_memory_back_and_a_full_one_keeps_it() {
        let (mut pool, mut buffer) = (BufferPool::default(), Buffer::default());
        buffer.extend(b"abc");
        pool.reclaim(&mut buffer);
        assert!(pool.spare.is_empty());
        buffer.consume(3);
        pool.reclaim(&mut buffer);
        assert_eq!((pool.spare.len(), buffer.memory.capacity()), (1, 0));
        pool.lend(&mut buffer);
        assert_eq!((pool.spare.len(), buffer.memory.len()), (0, STEP_BYTES));
    }

    #[test]
    fn the_memory_of_the_pool_is_bounded() {
        const BUFFER_BYTES: usize = 1 << 20;
        let mut pool = BufferPool::default();
        for _ in 0..20 {
            let mut buffer = Buffer::default();
            buffer.room(BUFFER_BYTES);
            pool.reclaim(&mut buffer);
        }
        let kept = POOL_BYTES_MAX / BUFFER_BYTES;
        assert_eq!((pool.spare.len(), pool.spare_bytes), (kept, POOL_BYTES_MAX));
        let mut buffer = Buffer::default();
        pool.lend(&mut buffer);
        assert_eq!((pool.spare.len(), pool.spare_bytes), (kept - 1, POOL_BYTES_MAX - BUFFER_BYTES));
        for _ in 0..2 * POOL_BUFFERS_MAX {
            let mut buffer = Buffer::default();
            buffer.room(1);
            pool.reclaim(&mut buffer);
        }
        assert_eq!(pool.spare.len(), POOL_BUFFERS_MAX);
    }

    #[test]
    fn a_buffer_takes_no_more_memory_than_a_step_above_its_need() {
        let mut buffer = Buffer::default();
        for _ in 0..130 {
            buffer.extend(&[0; 1000]);
        }
        assert!(buffer.memory.capacity() <= 130_000 + 2 * STEP_BYTES);
    }
}
