//! Timers of one worker, for hyper and for the pool. The worker's loop waits until the next of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyper::rt;
use slab::Slab;

/// The timers of one worker. hyper requires them to be `Send`, so there is a lock. No other thread ever takes it.
#[derive(Clone, Debug)]
pub(crate) struct Timers(Arc<Mutex<TimerQueue>>);

#[derive(Debug)]
struct TimerQueue {
    /// Deadlines with their wakers; a waker is taken at its deadline.
    waiting: Slab<(Instant, Option<Waker>)>,
    /// No deadline is earlier. Nearly all timers are dropped before they end, and leave this as it is: looking through
    /// all of them once it has passed costs less than keeping them in order.
    next: Option<Instant>,
    /// When the worker last looked at the clock.
    now: Instant,
}

#[derive(Debug)]
pub(crate) struct Sleep {
    timers: Timers,
    deadline: Instant,
    /// Its place, while it waits.
    key: Option<usize>,
}

impl Default for Timers {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TimerQueue { waiting: Slab::new(), next: None, now: Instant::now() })))
    }
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, TimerQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A timer that ends `duration` after the worker last read the clock.
    pub(crate) fn after(&self, duration: Duration) -> Sleep {
        self.at(self.now() + duration)
    }

    /// A timer that ends at this moment.
    pub(crate) fn at(&self, deadline: Instant) -> Sleep {
        Sleep { timers: self.clone(), deadline, key: None }
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.lock().now = now;
    }

    /// When the worker last looked at the clock.
    pub(crate) fn now(&self) -> Instant {
        self.lock().now
    }

    /// When [`Timers::expire`] is due: at the earliest deadline, or before.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().next
    }

    /// Wakes the tasks whose deadline has passed.
    pub(crate) fn expire(&self) {
        let mut queue = self.lock();
        if queue.next.is_some_and(|next| next <= queue.now) {
            queue.wake_expired();
        }
    }
}

impl TimerQueue {
    fn wake_expired(&mut self) {
        self.next = None;
        for (_, (deadline, waker)) in &mut self.waiting {
            if *deadline > self.now {
                self.next = Some(self.next.map_or(*deadline, |next| next.min(*deadline)));
            } else if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
    }

    /// Waits until the deadline, at the place that it has, or a new one.
    fn wait(&mut self, deadline: Instant, key: Option<usize>, waker: &Waker) -> usize {
        self.next = Some(self.next.map_or(deadline, |next| next.min(deadline)));
        let waiting = (deadline, Some(waker.clone()));
        let Some(key) = key else { return self.waiting.insert(waiting) };
        self.waiting[key] = waiting;
        key
    }

    fn remove(&mut self, key: usize) {
        self.waiting.remove(key);
        if self.waiting.is_empty() {
            self.next = None;
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut queue = this.timers.lock();
        if this.deadline > queue.now {
            this.key = Some(queue.wait(this.deadline, this.key, cx.waker()));
            return Poll::Pending;
        }
        if let Some(key) = this.key.take() {
            queue.remove(key);
        }
        Poll::Ready(())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.timers.lock().remove(key);
        }
    }
}

impl rt::Sleep for Sleep {}

impl rt::Timer for Timers {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.after(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.at(deadline))
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_wake_in_order_and_leave_nothing_behind() {
        let timers = Timers::default();
        let began_at = timers.now();
        let mut short = Box::pin(timers.after(Duration::from_millis(5)));
        let mut long = Box::pin(timers.after(Duration::from_millis(9)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(long.as_mut().poll(&mut cx).is_pending());
        assert!(short.as_mut().poll(&mut cx).is_pending());
        assert_eq!(timers.next(), Some(began_at + Duration::from_millis(5)));
        timers.set_now(began_at + Duration::from_millis(5));
        timers.expire();
        assert!(short.as_mut().poll(&mut cx).is_ready());
        assert_eq!(timers.next(), Some(began_at + Duration::from_millis(9)));
        drop(long);
        assert_eq!(timers.next(), None);
    }
}
