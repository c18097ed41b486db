//! Timers of one worker, for hyper and for the pool. The worker's loop waits until the next of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyper::rt;

/// The timers of one worker. hyper wants them to be `Send`, hence the lock; no other thread ever takes it.
#[derive(Clone, Debug)]
pub(crate) struct Timers(Arc<Mutex<TimerQueue>>);

#[derive(Debug)]
struct TimerQueue {
    /// By deadline; the number tells equal deadlines apart.
    waiting: BTreeMap<(Instant, u64), Waker>,
    number: u64,
    /// When the worker last looked at the clock.
    now: Instant,
}

/// Waits until a moment.
#[derive(Debug)]
pub(crate) struct Sleep {
    timers: Timers,
    deadline: Instant,
    /// Its number, once it waits.
    number: Option<u64>,
}

impl Default for Timers {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TimerQueue { waiting: BTreeMap::new(), number: 0, now: Instant::now() })))
    }
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, TimerQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A timer that ends so long after the worker last looked at the clock.
    pub(crate) fn after(&self, duration: Duration) -> Sleep {
        let deadline = self.lock().now + duration;
        Sleep { timers: self.clone(), deadline, number: None }
    }

    /// A timer that ends at this moment.
    pub(crate) fn at(&self, deadline: Instant) -> Sleep {
        Sleep { timers: self.clone(), deadline, number: None }
    }

    /// Notes the time.
    pub(crate) fn set_now(&self, now: Instant) {
        self.lock().now = now;
    }

    /// When the worker last looked at the clock.
    pub(crate) fn now(&self) -> Instant {
        self.lock().now
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().waiting.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Notes the time, and wakes whoever waits for a moment that has passed.
    pub(crate) fn expire(&self, now: Instant) {
        let mut queue = self.lock();
        queue.now = now;
        while let Some(entry) = queue.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            entry.remove().wake();
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut queue = this.timers.lock();
        if this.deadline <= queue.now {
            return Poll::Ready(());
        }
        let number = *this.number.get_or_insert_with(|| {
            queue.number += 1;
            queue.number
        });
        queue.waiting.insert((this.deadline, number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.timers.lock().waiting.remove(&(self.deadline, number));
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
        timers.expire(began_at + Duration::from_millis(5));
        assert!(short.as_mut().poll(&mut cx).is_ready());
        assert_eq!(timers.next(), Some(began_at + Duration::from_millis(9)));
        drop(long);
        assert_eq!(timers.next(), None);
    }
}
