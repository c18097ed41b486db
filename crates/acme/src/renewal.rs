//! Renewal: orders the first certificate, and the next one when it is due; tries again after a failure.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::CertificateDer;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::leaf::Leaf;
use crate::order::AcmeClient;
use crate::schedule::{ASK_USUAL, Backoff, Wait, renewal_moment};
use crate::store::AcmeStore;

/// The wait for another process that has the lock.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How often the authority is asked for its suggestion, whatever it says itself (RFC 9773, 4.3.2).
const ASK_MIN: Duration = Duration::from_secs(60);
const ASK_MAX: Duration = Duration::from_secs(24 * 3600);
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
    /// Why the last attempt has failed; `None` if none has since the last success. The former certificate stays.
    pub failure: Option<String>,
    /// Whether there is a certificate of this order.
    pub has_certificate: bool,
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
    /// So many attempts in a row have failed.
    Failed { failures: u32 },
}

struct SuggestedWindow {
    start: SystemTime,
    end: SystemTime,
    /// The certificate that it is for, in DER; another process may have renewed it.
    leaf: CertificateDer<'static>,
}

/// Renews one certificate. The time of day is given; only the length of an order is measured.
pub struct Renewal {
    client: AcmeClient,
    store: AcmeStore,
    /// From 0 to 1: spreads the renewals of many processes.
    chance: f64,
    backoff: Backoff,
    failure: Option<String>,
    /// No order meanwhile, after a failure.
    pause: Wait,
    /// The window that the authority suggests.
    window: Option<SuggestedWindow>,
    /// No question for one meanwhile.
    asked: Wait,
}

impl Renewal {
    pub fn new(client: AcmeClient, store: AcmeStore, chance: f64) -> Self {
        let (since, failure) = store.failure().unzip();
        let pause = since.map_or(Wait::NONE, |since| Wait { since, until: since + RESTART_WAIT });
        let backoff = Backoff::default();
        Self { client, store, chance, backoff, failure, pause, window: None, asked: Wait::NONE }
    }

    /// Does what is due at `now`.
    pub async fn advance(&mut self, now: SystemTime) -> RenewalReport {
        let leaf = Leaf::read(&self.store);
        if let Some(leaf) = &leaf {
            self.ask_for_window(leaf, now).await;
        }
        if let Some(next) = self.wait_until(leaf.as_ref(), now) {
            return self.report(RenewalOutcome::Waiting, next);
        }
        let lock = match self.store.lock() {
            Ok(Some(lock)) => lock,
            Ok(None) => return self.report(RenewalOutcome::Locked, now + LOCK_WAIT),
            Err(error) => return self.fail(error.to_string(), now),
        };
        // The process that had the lock may have renewed it.
        let former = Leaf::read(&self.store);
        if let Some(next) = self.wait_until(former.as_ref(), now) {
            return self.report(RenewalOutcome::Waiting, next);
        }
        let begun = Instant::now();
        let ordered = self.client.order(former.as_ref().map(|leaf| &*leaf.der)).await;
        drop(lock);
        // An attempt may take longer than the wait after it.
        let now = now + begun.elapsed();
        match ordered {
            Ok(left) => self.finish(left.map(|left| left.to_string()), now),
            Err(error) => self.fail(error.to_string(), now),
        }
    }

    /// When to order the next certificate: when the present one is due, or a pause after a failure ends; `None`: now. A
    /// certificate that is not due ends the failure.
    fn wait_until(&mut self, leaf: Option<&Leaf>, now: SystemTime) -> Option<SystemTime> {
        let due = leaf.map_or(now, |leaf| {
            let window = self.window.as_ref().filter(|window| window.leaf == leaf.der);
            renewal_moment(leaf.validity, window.map(|window| (window.start, window.end)), self.chance)
        });
        if due > now {
            self.succeed();
            return Some(due);
        }
        self.pause.end(now)
    }

    async fn ask_for_window(&mut self, leaf: &Leaf, now: SystemTime) {
        if self.asked.end(now).is_some() {
            return;
        }
        let asked = self.client.renewal_window(&leaf.der).await;
        let ask_after = asked.map_or(ASK_USUAL, |(_, ask_after)| ask_after.clamp(ASK_MIN, ASK_MAX));
        self.asked = Wait { since: now, until: now + ask_after };
        if let Some(((start, end), _)) = asked {
            self.window = Some(SuggestedWindow { start, end, leaf: leaf.der.clone() });
        }
    }

    fn finish(&mut self, remark: Option<String>, now: SystemTime) -> RenewalReport {
        self.asked = Wait { since: now, until: now + ASK_MIN };
        match self.wait_until(Leaf::read(&self.store).as_ref(), now) {
            Some(next) => self.report(RenewalOutcome::Renewed { remark }, next),
            None => self.fail("the authority's certificate is due for renewal already".to_owned(), now),
        }
    }

    fn fail(&mut self, error: String, now: SystemTime) -> RenewalReport {
        self.store.note_failure(Some(&error));
        self.failure = Some(error);
        let until = self.backoff.fail(now, self.client.take_retry_at(), self.chance);
        self.pause = Wait { since: now, until };
        self.report(RenewalOutcome::Failed { failures: self.backoff.failures() }, until)
    }

    /// Notes that there is a certificate that is not due, by this process or another one.
    fn succeed(&mut self) {
        self.backoff.reset();
        self.pause = Wait::NONE;
        if self.failure.take().is_some() {
            self.store.note_failure(None);
        }
    }

    fn report(&self, outcome: RenewalOutcome, next: SystemTime) -> RenewalReport {
        let has_certificate = Leaf::read(&self.store).is_some();
        RenewalReport { outcome, next, failure: self.failure.clone(), has_certificate }
    }
}

/// The thread `acme`, which renews until this is dropped.
#[derive(Debug)]
pub struct Renewer {
    reports: Receiver<RenewalReport>,
    begin: Option<oneshot::Sender<()>>,
    /// Ends the thread by its end.
    _stop: oneshot::Sender<()>,
    has_ended: bool,
}

impl Renewer {
    /// Starts the thread, which waits for [`Renewer::begin`].
    ///
    /// # Errors
    /// If the thread or its event loop cannot be started.
    pub fn start(renewal: Renewal) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (report, reports) = sync_channel(REPORTS_MAX);
        let (begin, started) = oneshot::channel::<()>();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("acme".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = run(renewal, started, report) => {}
                    // By its error, as nothing is ever sent. What is under way is dropped.
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { reports, begin: Some(begin), _stop: stop, has_ended: false })
    }

    /// Lets it order, once challenges can be answered.
    pub fn begin(&mut self) {
        self.begin.take().map(|begin| begin.send(()));
    }

    /// The next change, if there is one. An end of the thread, which can only be a fault of ours, is told once.
    pub fn poll(&mut self) -> Option<RenewalReport> {
        match self.reports.try_recv() {
            Ok(report) => Some(report),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let failure = Some("the thread that renews has ended; restart the service".to_owned());
                let (outcome, next) = (RenewalOutcome::Failed { failures: 1 }, SystemTime::now());
                (!std::mem::replace(&mut self.has_ended, true)).then_some(RenewalReport {
                    outcome,
                    next,
                    failure,
                    has_certificate: true,
                })
            }
        }
    }
}

async fn run(mut renewal: Renewal, started: oneshot::Receiver<()>, reports: SyncSender<RenewalReport>) {
    if started.await.is_err() {
        return;
    }
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
