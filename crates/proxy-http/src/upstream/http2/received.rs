//! The content of a response that a stream receives.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use hyper::HeaderMap;

use crate::request::held_bytes::ExchangeBytes;

/// Pieces up to here are joined: each keeps all that was read with it.
const SHORT_BYTES_MAX: usize = 4 << 10;
/// Joined pieces that are passed on at once.
const JOINED_BYTES_MAX: usize = 16 << 10;
/// Bytes that may arrive before the client's connection learns of them.
const STEP_BYTES: usize = 16 << 10;

/// What a stream has received and its exchange has not taken. A client that reads nothing has its exchange not polled: the
/// stream's connection looks then, and takes the pieces out of the library, which bounds how many short ones it keeps of
/// all streams.
#[derive(Clone, Debug)]
pub(super) struct ReceivedContent(pub(super) Rc<RefCell<Received>>);

#[derive(Debug)]
pub(super) struct Received {
    body: RecvStream,
    joined: BytesMut,
    held: ExchangeBytes,
    /// Whether something has waited in the library since the last look.
    has_waited: bool,
    /// Wakes the client's connection.
    waker: Waker,
}

impl ReceivedContent {
    pub(super) fn new(body: RecvStream, held: ExchangeBytes, cx: &Context<'_>) -> Self {
        let waker = cx.waker().clone();
        Self(Rc::new(RefCell::new(Received {
            body,
            joined: BytesMut::new(),
            held,
            has_waited: false,
            waker,
        })))
    }

    /// The next data; `None` before the trailers.
    pub(super) fn poll_data(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let received = &mut *self.0.borrow_mut();
        received.waker.clone_from(cx.waker());
        let polled = received.poll_joined(cx);
        if let Poll::Ready(Some(Ok(data))) = &polled {
            // The stream may have ended meanwhile, and needs no window then.
            let _ = received.body.flow_control().release_capacity(data.len());
        }
        received.count();
        polled
    }

    pub(super) fn poll_trailers(&self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
        self.0.borrow_mut().body.poll_trailers(cx)
    }

    /// Whether nothing follows what was taken.
    pub(super) fn is_end(&self) -> bool {
        let received = self.0.borrow();
        received.joined.is_empty() && received.body.is_end_stream()
    }
}

impl Received {
    fn poll_joined(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        while self.joined.len() < JOINED_BYTES_MAX {
            match self.body.poll_data(cx) {
                Poll::Ready(Some(Ok(data))) if data.len() > SHORT_BYTES_MAX && self.joined.is_empty() => {
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Ready(Some(Ok(data))) => self.joined.extend_from_slice(&data),
                _ if !self.joined.is_empty() => break,
                polled => return polled,
            }
        }
        Poll::Ready(Some(Ok(self.joined.split().freeze())))
    }

    /// Takes out of the library what has arrived, if that is much or its exchange has not taken it in a turn, and has the
    /// client's connection look at it.
    pub(super) fn look(&mut self) {
        let waiting = self.body.flow_control().used_capacity() - self.joined.len();
        if waiting == 0 || waiting < STEP_BYTES && !mem::replace(&mut self.has_waited, true) {
            return;
        }
        let waker = self.waker.clone();
        // Its window is not open again before the exchange takes it.
        while let Poll::Ready(Some(Ok(data))) = self.body.poll_data(&mut Context::from_waker(&waker)) {
            self.joined.extend_from_slice(&data);
        }
        self.count();
        waker.wake();
    }

    fn count(&mut self) {
        self.has_waited = false;
        self.held.set(self.body.flow_control().used_capacity());
    }
}
