//! What streams have received and nobody has read: the library keeps it, and the client's connection counts it.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

use h2::FlowControl;

use crate::request::held_bytes::ExchangeBytes;

/// Bytes that a stream may receive before its client's connection learns of them.
const STEP_BYTES: usize = 16 << 10;

/// What a stream has received and its exchange has not taken. A client that reads nothing has its exchange not polled: the
/// stream's connection looks then.
#[derive(Debug)]
pub(super) struct UnreadContent {
    flow: RefCell<FlowControl>,
    held: RefCell<ExchangeBytes>,
    counted_bytes: Cell<usize>,
    /// Wakes the client's connection.
    waker: RefCell<Waker>,
}

impl UnreadContent {
    pub(super) fn new(flow: &FlowControl, held: ExchangeBytes, cx: &Context<'_>) -> Self {
        Self {
            flow: RefCell::new(flow.clone()),
            held: RefCell::new(held),
            counted_bytes: Cell::new(0),
            waker: RefCell::new(cx.waker().clone()),
        }
    }

    /// Counts what there is, for the exchange that is polled.
    pub(super) fn settle(&self, cx: &Context<'_>) {
        self.waker.borrow_mut().clone_from(cx.waker());
        self.count(self.flow.borrow().used_capacity());
    }

    /// Counts what there is if that has grown, and has the client's connection look at it.
    pub(super) fn look(&self) {
        let bytes = self.flow.borrow().used_capacity();
        if bytes >= self.counted_bytes.get() + STEP_BYTES {
            self.count(bytes);
            self.waker.borrow().wake_by_ref();
        }
    }

    fn count(&self, bytes: usize) {
        self.counted_bytes.set(bytes);
        self.held.borrow_mut().set(bytes);
    }
}
