//! Where the streams of a thread keep the requests that they have taken on: one seat for each stream.
//!
//! The seats also know when a request's time is over. That is looked at for all of them now and then, since a timer
//! for each request would cost a tenth of what the request does.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::ledger::Request;

/// How often deadlines are looked at: so often in the time that a request has, within bounds.
const LOOKS: u64 = 100;
const LOOK_NS_MIN: u64 = 10_000_000;
const LOOK_NS_MAX: u64 = 500_000_000;

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct Seats {
    all: RefCell<Vec<Seat>>,
    taken: Cell<usize>,
    next_look_ns: Cell<u64>,
}

#[derive(Debug, Default)]
struct Seat {
    request: Option<Request>,
    /// Its time is over, or the load's.
    is_over: bool,
    /// Wakes the stream.
    waker: Option<Waker>,
}

/// One of the seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number(usize);

impl Seats {
    /// Adds an empty seat.
    pub(super) fn add(&self) -> Number {
        let mut seats = self.all.borrow_mut();
        seats.push(Seat::default());
        Number(seats.len() - 1)
    }

    /// Gives a seat its next request.
    pub(super) fn take(&self, Number(seat): Number, request: Request) {
        let seat = &mut self.all.borrow_mut()[seat];
        seat.request = Some(request);
        seat.is_over = false;
        self.taken.set(self.taken.get() + 1);
    }

    /// Empties a seat. It is empty already if the load has given its request up.
    pub(super) fn leave(&self, Number(seat): Number) -> Option<Request> {
        let request = self.all.borrow_mut()[seat].request.take();
        self.taken.set(self.taken.get() - usize::from(request.is_some()));
        request
    }

    /// Does something with the request in a seat.
    pub(super) fn with<T>(&self, Number(seat): Number, act: impl FnOnce(&mut Request) -> T) -> Option<T> {
        self.all.borrow_mut()[seat].request.as_mut().map(act)
    }

    /// Tells whether no request is under way.
    pub(super) fn are_empty(&self) -> bool {
        self.taken.get() == 0
    }

    /// Empties all seats, and ends what their streams do for them.
    pub(super) fn clear(&self, mut given_up: impl FnMut(&Request)) {
        for seat in &mut *self.all.borrow_mut() {
            if let Some(request) = seat.request.take() {
                given_up(&request);
                seat.end();
            }
        }
        self.taken.set(0);
    }

    /// Ends what streams do for requests whose time is over, if it is time to look.
    pub(super) fn look(&self, timeout_ns: u64, now_ns: u64) {
        if now_ns < self.next_look_ns.get() {
            return;
        }
        self.next_look_ns.set(now_ns + (timeout_ns / LOOKS).clamp(LOOK_NS_MIN, LOOK_NS_MAX));
        for seat in &mut *self.all.borrow_mut() {
            if seat.request.is_some_and(|request| request.deadline_ns <= now_ns) {
                seat.end();
            }
        }
    }

    /// Does something for the request in a seat; gives nothing if its time is over first.
    pub(super) async fn in_time<T>(&self, Number(seat): Number, doing: impl Future<Output = T>) -> Option<T> {
        let mut doing = pin!(doing);
        poll_fn(|context| {
            if let Poll::Ready(done) = doing.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let seat = &mut self.all.borrow_mut()[seat];
            if seat.is_over {
                return Poll::Ready(None);
            }
            if !seat.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                seat.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Seat {
    fn end(&mut self) {
        self.is_over = true;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}
