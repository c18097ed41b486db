//! Bytes of responses that a client's connection holds: taken from upstreams, and not framed yet.
//!
//! Above a limit, responses are read one after another as there is room. Bytes are then read shortly before they are
//! sent, while they are in the processor's caches.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;

use crate::upstream::read_buffer::READ_BYTES_MAX;
use crate::written::LongPieces;

/// Bytes on a connection, over all streams, beyond which responses wait.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// Most that is read then to find a response's head.
const READ_BYTES_MIN: usize = 4 << 10;

/// The bytes that one connection holds, and the responses that wait.
#[derive(Debug, Default)]
pub(crate) struct UnsentBytes {
    bytes: Cell<usize>,
    /// Those of them that are long.
    pub(crate) pieces: LongPieces,
    /// Whether hyper has framed some of them since that was last looked at.
    has_released: Cell<bool>,
    /// Since when hyper has framed none, as the client's windows are closed or its socket is full.
    stalled_since: Cell<Option<Instant>>,
    /// The response that has waited longest is the first.
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether a response was called that has not come since.
    is_called: Cell<bool>,
}

impl UnsentBytes {
    /// Counts bytes that hyper has and has not framed.
    pub(crate) fn hold(&self, bytes: &Bytes) {
        self.bytes.set(self.bytes.get() + bytes.len());
        self.pieces.add(bytes);
    }

    /// Counts bytes that hyper has framed, or dropped.
    pub(crate) fn release(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.has_released.set(true);
        if self.has_room() && !self.is_called.get() {
            self.call_next();
        }
    }

    /// Since when the client takes nothing of any response that waits for it.
    pub(crate) fn stalled_since(&self, now: Instant) -> Option<Instant> {
        let since = self.stalled_since.get().filter(|_| !self.has_released.take()).unwrap_or(now);
        self.stalled_since.set((self.bytes.get() > 0).then_some(since));
        self.stalled_since.get()
    }

    /// How much may be read to find a response's head, which cannot wait.
    pub(crate) fn head_read_bytes_max(&self) -> usize {
        if self.has_room() { READ_BYTES_MAX } else { READ_BYTES_MIN }
    }

    /// Whether more of a response may be read now; otherwise it is called later.
    pub(crate) fn may_read(&self, waker: &Waker) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        if self.is_called.take() || (self.has_room() && waiting.is_empty()) {
            return true;
        }
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push_back(waker.clone());
        }
        false
    }

    /// Calls the response that has waited longest; false if none waits. That is for when nothing of what is held can be
    /// sent, as windows of streams are closed: the client may read another stream.
    pub(crate) fn call_next(&self) -> bool {
        let Some(waker) = self.waiting.borrow_mut().pop_front() else { return false };
        self.is_called.set(true);
        waker.wake();
        true
    }

    fn has_room(&self) -> bool {
        self.bytes.get() < UNSENT_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn responses_wait_in_order_while_much_is_held() {
        let unsent = UnsentBytes::default();
        let calls: [Arc<WakeCounter>; 2] = Default::default();
        let [first, second] = calls.clone().map(Waker::from);
        let of = |at: usize| calls[at].0.load(Ordering::Relaxed);
        assert!(unsent.may_read(&first));
        assert_eq!(unsent.head_read_bytes_max(), READ_BYTES_MAX);
        unsent.hold(&vec![0; UNSENT_BYTES_MAX].into());
        assert_eq!(unsent.head_read_bytes_max(), READ_BYTES_MIN);
        assert!(!unsent.may_read(&first) && !unsent.may_read(&second) && !unsent.may_read(&first));
        unsent.release(1);
        assert_eq!((of(0), of(1)), (1, 0));
        // The second is not called before the first has come.
        unsent.release(1);
        assert_eq!(of(1), 0);
        assert!(unsent.may_read(&first));
        unsent.release(1);
        assert_eq!((of(0), of(1)), (1, 1));
        assert!(unsent.may_read(&second));
    }

    #[test]
    fn a_response_is_called_when_nothing_held_can_be_sent() {
        let unsent = UnsentBytes::default();
        unsent.hold(&vec![0; 2 * UNSENT_BYTES_MAX].into());
        assert!(!unsent.call_next());
        assert!(!unsent.may_read(Waker::noop()));
        assert!(unsent.call_next() && !unsent.call_next());
        assert!(unsent.may_read(Waker::noop()));
    }
}
