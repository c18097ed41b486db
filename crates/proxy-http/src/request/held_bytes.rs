//! The memory that a client's connection holds for peers that do not read, and the responses that wait for room.
//!
//! Every holder reports the allocated memory here, since a piece of a response allocates more than its bytes. The sum
//! counts towards `--pending-max`. The session counts what TLS holds for the client's socket.
//!
//! | who does not read | what is held |
//! |---|---|
//! | the client | pieces of responses that hyper has and has not framed; heads that it has not written |
//! | an upstream | heads of requests; their content; the state of a request |
//! | nobody yet | the beginning of a response's head |
//!
//! Above a limit, responses are read one after another as there is room. Bytes are then read shortly before they are
//! sent, while they are in the processor's caches.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;

use crate::runtime::written::LongPieces;
use crate::upstream::http1::read_buffer::READ_BYTES_MAX;

/// Memory for responses on a connection, over all streams, beyond which they wait.
const RESPONSE_BYTES_MAX: usize = 256 << 10;
/// This memory if the worker is short of memory. A client that reads fast holds little, and is not cut because of
/// others that do not.
const SCARCE_BYTES_MAX: usize = 64 << 10;
/// The most that is then read of a response at once, so that no stream waits for another.
const READ_BYTES_MIN: usize = 16 << 10;
/// Memory for heads and content of a connection's requests, beyond which no more is taken of content.
const CONTENT_BYTES_MAX: usize = 256 << 10;
/// Memory for the heads of a connection's requests, beyond which further requests are refused.
pub(crate) const HEAD_BYTES_MAX: usize = 1 << 20;
/// What hyper, h2 and a task hold of a request under way, besides its head and content.
pub(crate) const REQUEST_BYTES: usize = 4 << 10;
/// What h2 holds of a piece of a response, besides its bytes.
const PIECE_BYTES: usize = 512;
/// What a response's head takes in a map of fields, besides its bytes.
const HEAD_BYTES: usize = 2 << 10;

/// The memory that one connection holds, and the responses that wait.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes {
    /// Bytes held by pieces of responses.
    pieces: Cell<usize>,
    /// Heads of responses that hyper has got since it had last written everything.
    heads: Cell<usize>,
    /// Bytes held by heads of requests.
    request_heads: Cell<usize>,
    /// What exchanges hold: content that an upstream has not taken, and what is read of a response before its head is whole.
    exchanges: Cell<usize>,
    pub(crate) long_pieces: LongPieces,
    /// Whether hyper has framed some of a piece since that was last looked at.
    has_released: Cell<bool>,
    /// Since when hyper has framed none, as the client's windows are closed or its socket is full.
    stalled_since: Cell<Option<Instant>>,
    /// The response that has waited longest is the first.
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether a response was called that has not come since.
    is_called: Cell<bool>,
    /// Whether the worker is short of memory.
    is_scarce: Rc<Cell<bool>>,
}

/// What one exchange holds.
#[derive(Debug)]
pub(crate) struct ExchangeBytes {
    held: Rc<HeldBytes>,
    bytes: usize,
}

impl ExchangeBytes {
    pub(crate) fn new(held: &Rc<HeldBytes>) -> Self {
        Self { held: Rc::clone(held), bytes: 0 }
    }

    /// Notes how much memory it holds now.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.held.exchanges.set(self.held.exchanges.get() + bytes - before);
    }

    /// Whether more of its content may be taken from the client: in any case, if it holds none.
    pub(crate) fn may_take(&self) -> bool {
        self.bytes == 0 || self.held.exchanges.get() + self.held.request_heads.get() < CONTENT_BYTES_MAX
    }
}

impl Drop for ExchangeBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl HeldBytes {
    /// Creates the accounts of a connection. The worker sets `is_scarce` while it is short of memory.
    pub(crate) fn new(is_scarce: &Rc<Cell<bool>>) -> Self {
        Self { is_scarce: Rc::clone(is_scarce), ..Self::default() }
    }

    pub(crate) fn total(&self) -> usize {
        self.pieces.get() + self.heads.get() + self.request_heads.get() + self.exchanges.get()
    }

    /// Counts a piece that hyper has and has not framed.
    pub(crate) fn hold(&self, piece: &Bytes) {
        self.pieces.set(self.pieces.get() + piece.len() + PIECE_BYTES);
        self.long_pieces.add(piece);
    }

    /// Counts bytes of a piece that hyper has framed.
    pub(crate) fn release(&self, bytes: usize) {
        self.pieces.set(self.pieces.get() - bytes);
        self.has_released.set(true);
        if self.has_room() && !self.is_called.get() {
            self.call_next();
        }
    }

    /// Forgets a piece of which `rest` was not framed.
    pub(crate) fn drop_piece(&self, rest: &Bytes) {
        self.long_pieces.remove(rest);
        self.release(rest.len() + PIECE_BYTES);
    }

    /// Counts the head of a response, or its trailers, that hyper gets.
    pub(crate) fn hold_head(&self, bytes: usize) {
        self.heads.set(self.heads.get() + bytes + HEAD_BYTES);
    }

    /// Notes that hyper has written all heads.
    pub(crate) fn release_heads(&self) {
        if self.heads.take() > 0 && self.has_room() {
            self.call_next();
        }
    }

    pub(crate) fn hold_request(&self, bytes: usize) {
        self.request_heads.set(self.request_heads.get() + bytes);
    }

    pub(crate) fn release_request(&self, bytes: usize) {
        self.request_heads.set(self.request_heads.get() - bytes);
    }

    /// Whether the head of another request may be kept. That of the only one may.
    pub(crate) fn has_room_for_request(&self, bytes: usize) -> bool {
        let others = self.request_heads.get();
        others <= REQUEST_BYTES || others + bytes <= HEAD_BYTES_MAX
    }

    /// Updates the stall at the end of a turn, depending on whether the client has read something.
    pub(crate) fn update_stall(&self, now: Instant) {
        let since = self.stalled_since.get().filter(|_| !self.has_released.take()).unwrap_or(now);
        self.stalled_since.set((self.pieces.get() > 0).then_some(since));
    }

    /// Since when the client has read nothing of any waiting response.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.stalled_since.get()
    }

    /// How much of a response may be read at once. Responses that begin do not wait for room: what many of them have read
    /// behind their heads counts here.
    pub(crate) fn read_bytes_max(&self) -> usize {
        let has_room = self.has_room() && self.exchanges.get() < RESPONSE_BYTES_MAX;
        if has_room { READ_BYTES_MAX } else { READ_BYTES_MIN }
    }

    /// Whether more of a response may be read now; if not, `waker` is woken later.
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

    /// Wakes the response that has waited longest; false if none waits. Called if nothing held can be sent because the
    /// windows of streams are closed: the client may read another stream.
    pub(crate) fn call_next(&self) -> bool {
        let Some(waker) = self.waiting.borrow_mut().pop_front() else { return false };
        self.is_called.set(true);
        waker.wake();
        true
    }

    fn has_room(&self) -> bool {
        let bytes_max = if self.is_scarce.get() { SCARCE_BYTES_MAX } else { RESPONSE_BYTES_MAX };
        self.pieces.get() + self.heads.get() < bytes_max
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
        let held = HeldBytes::default();
        let calls: [Arc<WakeCounter>; 2] = Default::default();
        let [first, second] = calls.clone().map(Waker::from);
        let of = |at: usize| calls[at].0.load(Ordering::Relaxed);
        assert!(held.may_read(&first));
        assert_eq!(held.read_bytes_max(), READ_BYTES_MAX);
        held.hold(&vec![0; RESPONSE_BYTES_MAX - PIECE_BYTES].into());
        assert_eq!(held.read_bytes_max(), READ_BYTES_MIN);
        assert!(!held.may_read(&first) && !held.may_read(&second) && !held.may_read(&first));
        held.release(1);
        assert_eq!((of(0), of(1)), (1, 0));
        // The second is not called before the first has come.
        held.release(1);
        assert_eq!(of(1), 0);
        assert!(held.may_read(&first));
        held.release(1);
        assert_eq!((of(0), of(1)), (1, 1));
        assert!(held.may_read(&second));
    }

    #[test]
    fn what_is_read_behind_heads_leaves_less_to_read_at_once() {
        let held = Rc::new(HeldBytes::default());
        let mut exchanges: Vec<_> =
            (0..RESPONSE_BYTES_MAX / READ_BYTES_MAX).map(|_| ExchangeBytes::new(&held)).collect();
        for exchange in &mut exchanges {
            assert_eq!(held.read_bytes_max(), READ_BYTES_MAX);
            exchange.set(READ_BYTES_MAX);
        }
        assert_eq!(held.read_bytes_max(), READ_BYTES_MIN);
        exchanges.pop();
        assert_eq!(held.read_bytes_max(), READ_BYTES_MAX);
    }

    #[test]
    fn a_response_is_called_when_nothing_held_can_be_sent() {
        let held = HeldBytes::default();
        held.hold(&vec![0; 2 * RESPONSE_BYTES_MAX].into());
        assert!(!held.call_next());
        assert!(!held.may_read(Waker::noop()));
        assert!(held.call_next() && !held.call_next());
        assert!(held.may_read(Waker::noop()));
    }
}
