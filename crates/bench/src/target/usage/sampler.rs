//! A thread that takes samples.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use records::kinds::Timestamps;

/// How often samples are taken for spans that are known only afterwards.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleTimes {
    /// Every 50 ms: between samples, figures are interpolated.
    Periodic,
    /// At the multiples of a period on the monotonic clock, and at no other time: what is measured is not disturbed. The
    /// spans that are measured begin and end there. Counters stand still outside of them, so nothing is interpolated.
    Multiples {
        period: Duration,
        /// The time after the beginning of a span in which its counters do not change either.
        idle: Duration,
    },
}

impl SampleTimes {
    fn until_next(self) -> Duration {
        match self {
            Self::Periodic => SAMPLE_EVERY,
            Self::Multiples { period, .. } => {
                let period_us = period.as_micros() as u64;
                Duration::from_micros(period_us - Timestamps::now().monotonic_us % period_us)
            }
        }
    }
}

/// Takes samples into a state until it is dropped.
#[derive(Debug)]
pub(super) struct Sampler<S> {
    /// Locked for one sample at a time, by the thread or by a reader.
    state: Arc<Mutex<S>>,
    /// Takes a sample at a time, in microseconds of the monotonic clock.
    take: fn(&mut S, u64),
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Send + 'static> Sampler<S> {
    /// Takes the first sample, and starts the thread that takes the others.
    pub(super) fn start(mut state: S, take: fn(&mut S, u64), times: SampleTimes) -> io::Result<Self> {
        take(&mut state, now_us());
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = channel::<()>();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("usage".to_owned()).spawn(move || {
            while stopped.recv_timeout(times.until_next()) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock(&shared);
                take(&mut state, now_us());
            }
        })?;
        Ok(Self { state, take, stop: Some(stop), thread: Some(thread) })
    }
}

impl<S> Sampler<S> {
    pub(super) fn sample(&self) {
        let mut state = lock(&self.state);
        (self.take)(&mut state, now_us());
    }

    pub(super) fn look<T>(&self, at: impl FnOnce(&S) -> T) -> T {
        at(&lock(&self.state))
    }
}

fn now_us() -> u64 {
    Timestamps::now().monotonic_us
}

/// A sample that panicked leaves the earlier ones as they were.
fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Drop for Sampler<S> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}
