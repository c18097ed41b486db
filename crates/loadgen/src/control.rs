//! What a person can change while the load runs, and how its threads learn of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;
use telemetry::{Applies, Setting, SettingError, Value};

use crate::client::Totals;
use crate::plan::{Plan, Rate, Share};
use crate::target::Target;

/// How the load is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `None` in a closed loop.
    pub(crate) rate: Option<Rate>,
    pub(crate) resume: Share,
    pub(crate) running: bool,
    pub(crate) stopped: bool,
}

/// Shared by the handle and the threads. The mutexes guard what changes with a key press and what is written once
/// at the end; the threads look at `version` before they take one.
#[derive(Debug)]
pub(crate) struct Control {
    wanted: Mutex<Wanted>,
    version: AtomicU64,
    /// All threads are to end at once, whatever they are doing.
    abandoned: AtomicBool,
    wakers: Vec<Arc<Waker>>,
    threads_running: AtomicUsize,
    sources: Mutex<BTreeMap<IpAddr, Totals>>,
    /// Settings that stand fixed.
    fixed: Vec<Setting>,
}

impl Control {
    /// One waker for each thread.
    pub(crate) fn new(target: &Target, plan: &Plan, paused: bool, wakers: Vec<Arc<Waker>>) -> Self {
        let wanted = Wanted { rate: plan.rate, resume: plan.resume, running: !paused, stopped: false };
        Self {
            wanted: Mutex::new(wanted),
            version: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            threads_running: AtomicUsize::new(wakers.len()),
            wakers,
            sources: Mutex::default(),
            fixed: fixed(target, plan),
        }
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn wanted(&self) -> Wanted {
        *lock(&self.wanted)
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

    /// A thread has ended; after the last one nothing can be switched on any more.
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
            // It fails only when the thread's poll is gone, and then there is nobody to wake.
            let _ = waker.wake();
        }
    }

    pub(crate) fn settings(&self) -> Vec<Setting> {
        let wanted = self.wanted();
        [running(&wanted), rate(&wanted), resume(&wanted)]
            .into_iter()
            .chain(self.fixed.iter().cloned())
            .collect()
    }

    /// Changes a setting; gives it as it was.
    pub(crate) fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        let mut wanted = lock(&self.wanted);
        let before = match name {
            RUNNING => {
                let before = running(&wanted);
                let Value::Flag(on) = value else { return Err(refused(name, value, "it is on or off")) };
                if wanted.stopped && *on {
                    return Err(refused(name, value, "this load has ended, and another has to be started"));
                }
                wanted.running = *on;
                before
            }
            RATE => {
                let before = rate(&wanted);
                if wanted.rate.is_none() {
                    return Err(refused(
                        name,
                        value,
                        "this is a closed loop; start it with rate= in its plan",
                    ));
                }
                let new = number(value).and_then(Rate::per_second);
                wanted.rate = Some(new.ok_or_else(|| {
                    refused(name, value, "it is a number of requests a second from 0.001 to 10000000")
                })?);
                before
            }
            RESUME => {
                let before = resume(&wanted);
                let new = number(value).and_then(Share::percent);
                wanted.resume =
                    new.ok_or_else(|| refused(name, value, "it is a percentage from 0 to 100"))?;
                before
            }
            _ if self.fixed.iter().any(|setting| setting.name == name) => {
                return Err(SettingError::Restart(name.to_owned()));
            }
            _ => return Err(SettingError::Unknown(telemetry::clean::text(name))),
        };
        drop(wanted);
        self.changed();
        Ok(before)
    }

    /// Adds what a client has done, when its thread ends.
    pub(crate) fn account(&self, address: IpAddr, totals: Totals) {
        lock(&self.sources).entry(address).or_default().add(totals);
    }

    /// What was accounted, in ascending order of addresses.
    pub(crate) fn sources(&self) -> BTreeMap<IpAddr, Totals> {
        lock(&self.sources).clone()
    }
}

/// A thread that panicked cannot have left anything half-changed in what these mutexes guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const RUNNING: &str = "load.running";
const RATE: &str = "load.rate";
const RESUME: &str = "load.resume";

fn running(wanted: &Wanted) -> Setting {
    setting(RUNNING, Value::Flag(wanted.running && !wanted.stopped), Applies::Live)
}

fn rate(wanted: &Wanted) -> Setting {
    match wanted.rate {
        Some(rate) => Setting {
            unit: "1/s".to_owned(),
            range: Some((Rate::MIN.as_per_second(), Rate::MAX.as_per_second())),
            ..setting(RATE, Value::Number(rate.as_per_second()), Applies::Live)
        },
        None => setting(RATE, Value::Text("closed loop".to_owned()), Applies::Restart),
    }
}

fn resume(wanted: &Wanted) -> Setting {
    Setting {
        unit: "%".to_owned(),
        range: Some((Share::ZERO.as_percent(), Share::ALL.as_percent())),
        ..setting(RESUME, Value::Number(wanted.resume.as_percent()), Applies::NewConnections)
    }
}

fn fixed(target: &Target, plan: &Plan) -> Vec<Setting> {
    let mut fixed = vec![
        setting("load.target", Value::Text(target.to_string()), Applies::Restart),
        setting("load.connections", Value::Number(plan.connections.into()), Applies::Restart),
        setting("load.keepalive", Value::Text(plan.keepalive.to_string()), Applies::Restart),
        setting("load.threads", Value::Number(plan.threads.into()), Applies::Restart),
    ];
    if let Some(sources) = plan.sources {
        fixed.push(setting("load.sources", Value::Number(sources.into()), Applies::Restart));
    }
    fixed
}

fn setting(name: &str, value: Value, applies: Applies) -> Setting {
    Setting { name: name.to_owned(), value, unit: String::new(), applies, range: None }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn refused(name: &str, value: &Value, reason: &str) -> SettingError {
    SettingError::Refused {
        name: name.to_owned(),
        value: telemetry::clean::text(&value.to_string()),
        reason: reason.to_owned(),
    }
}
