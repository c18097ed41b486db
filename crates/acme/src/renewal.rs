//! Renewal: orders the first certificate, and the next one when it is due; tries again after a failure.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::config::AcmeConfig;
use crate::leaf::Leaf;
use crate::order::{AcmeClient, AcmeError};
use crate::schedule::{Backoff, RETRY_AFTER_MAX, renewal_moment};
use crate::store::AcmeStore;

/// The wait for another process that has the lock.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How often the authority is asked for its suggestion, whatever it says itself (RFC 9773, 4.3.2).
const ASK_MIN: Duration = Duration::from_secs(60);
const ASK_MAX: Duration = Duration::from_secs(24 * 3600);
/// The same if it makes none.
const ASK_USUAL: Duration = Duration::from_secs(6 * 3600);
/// How long after a failure a process that starts waits: authorities allow some five failures an hour.
const RESTART_WAIT: Duration = Duration::from_secs(12 * 60);
/// The longest sleep, since the host's clock may be set and the host suspended.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Reports that wait to be read; there is at most one a minute.
const REPORTS_MAX: usize = 16;

/// How renewal stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalReport {
    pub outcome: RenewalOutcome,
    /// When the certificate is ordered next.
    pub next: SystemTime,
}

impl RenewalReport {
    /// Whether it says nothing that the report before it has not said: what is waited for was said with an outcome.
    fn is_no_news_after(&self, before: &Self) -> bool {
        let is_locked = |report: &Self| report.outcome == RenewalOutcome::Locked;
        let is_awaited = self.outcome == RenewalOutcome::Waiting && self.next == before.next;
        is_awaited || self == before || is_locked(self) && is_locked(before)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewalOutcome {
    /// The present certificate is not due.
    Waiting,
    /// Another process with the same folder is ordering.
    Locked,
    /// A certificate was written; perhaps with a remark.
    Renewed { remark: Option<String> },
    /// So many attempts in a row have failed, the last one with this error. The former certificate stays.
    Failed { error: String, failures: u32 },
}

/// Renews one certificate. It has no clock: moments are given.
pub struct Renewal {
    client: AcmeClient,
    config: AcmeConfig,
    store: AcmeStore,
    /// From 0 to 1: spreads the renewals of many processes.
    chance: f64,
    backoff: Backoff,
    /// No order before this moment, after a failure.
    retry_at: SystemTime,
    /// The window that the authority suggests.
    window: Option<(SystemTime, SystemTime)>,
    ask_at: SystemTime,
}

impl Renewal {
    pub fn new(client: AcmeClient, config: AcmeConfig, store: AcmeStore, chance: f64) -> Self {
        let (backoff, start) = (Backoff::default(), SystemTime::UNIX_EPOCH);
        let retry_at = store.failed_at().map_or(start, |failed_at| failed_at + RESTART_WAIT);
        Self { client, config, store, chance, backoff, retry_at, window: None, ask_at: start }
    }

    /// Does what is due at `now`.
    pub async fn advance(&mut self, now: SystemTime) -> RenewalReport {
        if let Some(leaf) = Leaf::read(&self.store) {
            self.ask_for_window(&leaf, now).await;
        }
        if let Some(next) = self.not_due(now) {
            return RenewalReport { outcome: RenewalOutcome::Waiting, next };
        }
        let lock = match self.store.lock() {
            Ok(Some(lock)) => lock,
            Ok(None) => return RenewalReport { outcome: RenewalOutcome::Locked, next: now + LOCK_WAIT },
            Err(error) => return self.fail(error.to_string(), now),
        };
        // The process that had the lock may have renewed it.
        if let Some(next) = self.not_due(now) {
            return RenewalReport { outcome: RenewalOutcome::Waiting, next };
        }
        let ordered = self.order().await;
        drop(lock);
        match ordered {
            Ok(remark) => self.finish(remark, now),
            Err(error) => self.fail(error.to_string(), now),
        }
    }

    async fn order(&self) -> Result<Option<String>, AcmeError> {
        let former = Leaf::read(&self.store).filter(|leaf| leaf.is_for(&self.config.domains));
        let remark = self.client.order(former.as_ref().map(|leaf| &*leaf.der)).await?;
        Ok(remark.map(|left| left.to_string()))
    }

    /// When the certificate is to be ordered; `None`: now.
    fn not_due(&self, now: SystemTime) -> Option<SystemTime> {
        let leaf = Leaf::read(&self.store).filter(|leaf| leaf.is_for(&self.config.domains));
        let due = leaf.map_or(now, |leaf| renewal_moment(leaf.validity, self.window, self.chance));
        // The clock may have been set back.
        let retry_at = if self.retry_at > now + RETRY_AFTER_MAX { now } else { self.retry_at };
        let due = due.max(retry_at);
        (due > now).then_some(due)
    }

    async fn ask_for_window(&mut self, leaf: &Leaf, now: SystemTime) {
        if now < self.ask_at {
            return;
        }
        let asked = self.client.renewal_window(&leaf.der).await;
        let ask_after = asked.map_or(ASK_USUAL, |(_, ask_after)| ask_after.clamp(ASK_MIN, ASK_MAX));
        self.ask_at = now + ask_after;
        self.window = asked.map(|(window, _)| window).or(self.window);
    }

    fn finish(&mut self, remark: Option<String>, now: SystemTime) -> RenewalReport {
        (self.window, self.ask_at) = (None, now + ASK_MIN);
        match self.not_due(now) {
            Some(next) => {
                self.backoff.reset();
                self.store.note_failure(false);
                RenewalReport { outcome: RenewalOutcome::Renewed { remark }, next }
            }
            None => self.fail("the authority's certificate is due for renewal already".to_owned(), now),
        }
    }

    fn fail(&mut self, error: String, now: SystemTime) -> RenewalReport {
        self.store.note_failure(true);
        self.retry_at = self.backoff.fail(now, self.client.take_retry_at(), self.chance);
        let failures = self.backoff.failures();
        RenewalReport { outcome: RenewalOutcome::Failed { error, failures }, next: self.retry_at }
    }
}

/// The thread `acme`, which renews until this is dropped.
#[derive(Debug)]
pub struct Renewer {
    reports: Receiver<RenewalReport>,
    /// Ends the thread by its end.
    _stop: oneshot::Sender<()>,
}

impl Renewer {
    /// # Errors
    /// If the thread or its event loop cannot be started.
    pub fn start(renewal: Renewal) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (report, reports) = sync_channel(REPORTS_MAX);
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("acme".to_owned()).spawn(move || {
            runtime.spawn(run(renewal, report));
            // What is under way is dropped with the runtime. The answer is an error, as nothing is ever sent.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { reports, _stop: stop })
    }

    /// The next change, if there is one.
    pub fn poll(&self) -> Option<RenewalReport> {
        self.reports.try_recv().ok()
    }
}

async fn run(mut renewal: Renewal, reports: SyncSender<RenewalReport>) {
    let mut told = None;
    loop {
        let report = renewal.advance(SystemTime::now()).await;
        let next = report.next;
        if !told.as_ref().is_some_and(|told| report.is_no_news_after(told)) {
            // Full only if nobody reads them; then the next one says how it stands.
            told = reports.try_send(report.clone()).is_ok().then_some(report);
        }
        let wait = next.duration_since(SystemTime::now()).unwrap_or_default();
        sleep(wait.min(SLEEP_MAX)).await;
    }
}
