//! Live settings, and their way to the threads.

pub(crate) mod descriptors;
pub(crate) mod settings;
mod sources;
mod span;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;
use records::setting::{Setting, SettingError, Value};
pub(crate) use sources::ClientTotals;
pub use sources::SourceTotals;
pub(crate) use span::{LoadSpan, RunningTime};

use crate::plan::{KeepAlive, Plan, Rate, Share};
use crate::protocol::{EncodedRequest, RequestSource};

/// The settings that can change while the load runs.
#[derive(Clone, Debug)]
pub(crate) struct LiveSettings {
    /// Replaces the plan's rate; `None` follows the plan.
    pub(crate) rate: Option<Rate>,
    pub(crate) connections: u32,
    pub(crate) resume: Share,
    pub(crate) keepalive: KeepAlive,
    /// Size of the bodies whose size can be changed; `None` as in the templates.
    pub(crate) body_bytes: Option<usize>,
    /// The requests to send, at least one.
    pub(crate) requests: Arc<[EncodedRequest]>,
    pub(crate) running: bool,
    pub(crate) stopped: bool,
}

/// Shared by the handle and the threads. The mutexes guard data that changes with a key press, or once at the end; the
/// threads check `version` before they lock one.
#[derive(Debug)]
pub(crate) struct LoadControl {
    wanted: Mutex<LiveSettings>,
    version: AtomicU64,
    /// All threads end at once, whatever their state.
    abandoned: AtomicBool,
    wakers: Vec<Arc<Waker>>,
    threads_running: AtomicUsize,
    sources: Mutex<BTreeMap<IpAddr, ClientTotals>>,
    span: Mutex<LoadSpan>,
    /// Requests in a thousand seconds that fall due now.
    rate_now: AtomicU64,
    plan: Plan,
    /// Templates and target, from which the requests are written again.
    original: RequestSource,
}

impl LoadControl {
    /// One waker for each thread.
    pub(crate) fn new(
        original: RequestSource,
        requests: Arc<[EncodedRequest]>,
        plan: &Plan,
        paused: bool,
        wakers: Vec<Arc<Waker>>,
    ) -> Self {
        let wanted = LiveSettings {
            rate: None,
            connections: plan.connections,
            resume: plan.resume,
            keepalive: plan.keepalive,
            body_bytes: original.body_bytes(),
            requests,
            running: !paused,
            stopped: false,
        };
        let rate = plan.rate.as_ref().map_or(0.0, |rate| rate.at(0));
        Self {
            wanted: Mutex::new(wanted),
            version: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            threads_running: AtomicUsize::new(wakers.len()),
            wakers,
            sources: Mutex::default(),
            span: Mutex::default(),
            rate_now: AtomicU64::new((rate * 1e3) as u64),
            plan: plan.clone(),
            original,
        }
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn wanted(&self) -> LiveSettings {
        lock(&self.wanted).clone()
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Ends all threads at once.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.wake();
    }

    /// Ends the load in order.
    pub(crate) fn stop(&self) {
        lock(&self.wanted).stopped = true;
        self.changed();
    }

    /// A thread has ended. After the last one, the load cannot be switched on again.
    pub(crate) fn thread_ended(&self) {
        if self.threads_running.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&self.wanted).stopped = true;
        }
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        for waker in &self.wakers {
            // It fails only if the thread's poll is gone: then no thread needs waking.
            let _ = waker.wake();
        }
    }

    /// Sets how many requests a second fall due now.
    pub(crate) fn set_rate_now(&self, per_second: f64) {
        self.rate_now.store((per_second * 1e3).round() as u64, Ordering::Relaxed);
    }

    /// Adds the time in which a thread has measured something.
    pub(crate) fn record_span(&self, span: LoadSpan) {
        lock(&self.span).widen(span);
    }

    /// True if requests fall due on a schedule.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.plan.rate.is_some()
    }

    /// The time in which any thread has measured something.
    pub(crate) fn span(&self) -> LoadSpan {
        *lock(&self.span)
    }

    pub(crate) fn settings(&self) -> Vec<Setting> {
        settings::all(&self.wanted(), &self.plan, self.rate_now(), &self.original)
    }

    fn rate_now(&self) -> f64 {
        self.rate_now.load(Ordering::Relaxed) as f64 / 1e3
    }

    /// Changes a setting, and returns the old one.
    pub(crate) fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        let before = self.settings().into_iter().find(|setting| setting.name == name);
        let before = before.ok_or_else(|| SettingError::Unknown(records::text::clean::text(name)))?;
        let mut wanted = lock(&self.wanted);
        settings::change(&mut wanted, &self.plan, &self.original, name, value)?;
        if name == settings::RATE {
            self.rate_now.store(wanted.rate.map_or(0, Rate::milli_per_s), Ordering::Relaxed);
        }
        drop(wanted);
        self.changed();
        Ok(before)
    }

    /// Adds a client's counts when its thread ends.
    pub(crate) fn account(&self, address: IpAddr, totals: ClientTotals) {
        lock(&self.sources).entry(address).or_default().add(totals);
    }

    /// Totals by source address, in ascending order.
    pub(crate) fn sources(&self) -> BTreeMap<IpAddr, ClientTotals> {
        lock(&self.sources).clone()
    }
}

/// A thread that panicked cannot have left anything half-changed in what these mutexes guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
