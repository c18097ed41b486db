//! Notices to the operator: one per episode, and rate-limited whatever clients do.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use records::kinds::{Level, NoticeRecord};
use rustix::io::Errno;

/// Notices about one subject that may follow each other at once.
const BURST: u32 = 4;
/// How long until a subject may have one more notice.
const REFILL: Duration = Duration::from_secs(30);
/// A shortage of descriptors, memory or ports ends when it has not occurred for this long and a trial succeeds.
const SHORTAGE_QUIET: Duration = Duration::from_secs(1);
/// A limit is no longer reached when it has not been for this long. This is longer, since clients may reach a limit
/// repeatedly.
const BOUND_QUIET: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The process or the system is short of descriptors, memory or ports.
    Descriptors,
    /// The bound on connections is reached.
    Connections,
    /// The bound on handshakes is reached.
    Handshakes,
    /// The bound on pending bytes is reached.
    Pending,
    /// The bound on the process's memory.
    Memory,
    /// The common name of a client's certificate, which cannot be passed on.
    CommonName,
    /// The upstream of this index.
    Upstream(usize),
    /// The name of the upstream of this index.
    UpstreamName(usize),
    /// Upstreams of one destination.
    Destination,
    /// The worker of this index.
    Worker(usize),
}

impl Subject {
    fn topic(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Connections | Self::Handshakes | Self::Pending | Self::Memory => "bound",
            Self::CommonName => "client-certificate",
            Self::Upstream(_) | Self::UpstreamName(_) | Self::Destination => "upstream",
            Self::Worker(_) => "worker",
        }
    }
}

/// Pending notices, and the state of their episodes. The lock is taken only at the beginning or end of an episode, and
/// once per interval by the reader; ordinary connections do not touch it.
#[derive(Debug)]
pub(crate) struct NoticeLog {
    epoch: Instant,
    shortage: Episode,
    /// A shortage that turns clients away; `shortage` may only delay them.
    turned_away: Episode,
    connections: Episode,
    handshakes: Episode,
    pending: Episode,
    few_upstreams: Episode,
    pending_records: Mutex<PendingNotices>,
}

#[derive(Debug, Default)]
struct PendingNotices {
    waiting: Vec<NoticeRecord>,
    /// Bounded by the number of subjects.
    subjects: BTreeMap<Subject, Allowance>,
}

/// How many notices a subject may still log, and the latest notice that had to wait.
#[derive(Debug)]
struct Allowance {
    left: u32,
    refilled_at: Instant,
    unsaid: Option<NoticeRecord>,
    /// Notices that `unsaid` also represents.
    withheld: u64,
}

/// A period in which the same problem recurs.
#[derive(Debug, Default)]
struct Episode {
    is_on: AtomicBool,
    /// When it was last seen, in milliseconds since the epoch.
    seen_ms: AtomicU64,
}

impl Default for NoticeLog {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            shortage: Episode::default(),
            turned_away: Episode::default(),
            connections: Episode::default(),
            handshakes: Episode::default(),
            pending: Episode::default(),
            few_upstreams: Episode::default(),
            pending_records: Mutex::default(),
        }
    }
}

impl NoticeLog {
    /// Reports a shortage of descriptors, memory or ports; `what` describes it.
    pub(crate) fn report_shortage(&self, what: impl FnOnce() -> String, now: Instant) {
        if self.shortage.see(self.ms(now)) {
            self.say(Subject::Descriptors, Level::Warning, &what(), now);
        }
    }

    /// Reports a shortage for which a client is turned away.
    pub(crate) fn report_turned_away(&self, error: &io::Error, now: Instant) {
        if self.turned_away.see(self.ms(now)) {
            let error = shortage_text(error);
            let text = format!("upstreams cannot be connected to: {error}; clients are turned away");
            self.say(Subject::Descriptors, Level::Warning, &text, now);
        }
    }

    /// Reports that a connection waits because `max` are open.
    pub(crate) fn report_connection_limit(&self, max: usize, now: Instant) {
        if self.connections.see(self.ms(now)) {
            let text =
                format!("as many connections are open as may be, {max}; further ones wait in the backlog");
            self.say(Subject::Connections, Level::Warning, &text, now);
        }
    }

    /// Reports that a connection waits because of the bound of `max` handshakes.
    pub(crate) fn report_handshake_limit(&self, max: usize, now: Instant) {
        if self.handshakes.see(self.ms(now)) {
            let text = format!(
                "a worker has its share of the {max} handshakes that may be in progress; connections wait in the backlog"
            );
            self.say(Subject::Handshakes, Level::Warning, &text, now);
        }
    }

    /// Reports that a connection is cut because connections hold more than `max` bytes.
    pub(crate) fn report_pending_limit(&self, max: usize, now: Instant) {
        if self.pending.see(self.ms(now)) {
            let text = format!(
                "connections hold {} MiB for peers that do not read, as much as may; those that hold most or have read \
                 nothing for longest are cut",
                max >> 20
            );
            self.say(Subject::Pending, Level::Warning, &text, now);
        }
    }

    /// Reports that a connection finds too few upstreams up; `what` describes it.
    pub(crate) fn report_few_upstreams(&self, what: impl FnOnce() -> String, now: Instant) {
        if self.few_upstreams.see(self.ms(now)) {
            self.say(Subject::Destination, Level::Warning, &what(), now);
        }
    }

    /// Publishes a notice, or keeps the latest of a subject whose allowance is spent until there is one again.
    pub(crate) fn say(&self, subject: Subject, level: Level, text: &str, now: Instant) {
        let notice = NoticeRecord::new(level, subject.topic(), text);
        let mut pending = self.lock();
        let PendingNotices { waiting, subjects } = &mut *pending;
        let allowance = subjects.entry(subject).or_insert_with(|| Allowance::new(now));
        waiting.extend(allowance.spend(notice, now));
    }

    /// Takes the notices that may be published now.
    pub(crate) fn take(&self, now: Instant) -> Vec<NoticeRecord> {
        self.settle(now);
        let mut pending = self.lock();
        let PendingNotices { waiting, subjects } = &mut *pending;
        waiting.extend(subjects.values_mut().filter_map(|allowance| allowance.catch_up(now)));
        std::mem::take(waiting)
    }

    /// Ends the episodes that have not been seen for long enough.
    fn settle(&self, now: Instant) {
        let now_ms = self.ms(now);
        let ends = |episode: &Episode, quiet| episode.is_quiet(now_ms, quiet) && episode.end();
        // No worker may have tried since; this tries.
        let shortages = [&self.shortage, &self.turned_away];
        let mut on = shortages.into_iter().filter(|episode| episode.is_on.load(Ordering::Relaxed)).peekable();
        if on.peek().is_some()
            && on.all(|episode| episode.is_quiet(now_ms, SHORTAGE_QUIET))
            && File::open("/dev/null").is_ok()
        {
            for episode in shortages {
                episode.end();
            }
            let text = "descriptors, memory and ports suffice again";
            self.say(Subject::Descriptors, Level::Notice, text, now);
        }
        if ends(&self.connections, BOUND_QUIET) {
            self.say(Subject::Connections, Level::Notice, "connections find a place again", now);
        }
        if ends(&self.handshakes, BOUND_QUIET) {
            self.say(Subject::Handshakes, Level::Notice, "handshakes find a place again", now);
        }
        if ends(&self.pending, BOUND_QUIET) {
            self.say(Subject::Pending, Level::Notice, "what peers have not read has room again", now);
        }
        if ends(&self.few_upstreams, BOUND_QUIET) {
            self.say(Subject::Destination, Level::Notice, "connections find enough upstreams up again", now);
        }
    }

    fn ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, PendingNotices> {
        self.pending_records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Episode {
    /// Notes that the episode continues; true if it begins.
    fn see(&self, now_ms: u64) -> bool {
        self.seen_ms.fetch_max(now_ms, Ordering::Relaxed);
        !self.is_on.load(Ordering::Relaxed) && !self.is_on.swap(true, Ordering::Relaxed)
    }

    fn is_quiet(&self, now_ms: u64, quiet: Duration) -> bool {
        let seen_ms = self.seen_ms.load(Ordering::Relaxed);
        self.is_on.load(Ordering::Relaxed) && u128::from(now_ms.saturating_sub(seen_ms)) >= quiet.as_millis()
    }

    fn end(&self) -> bool {
        self.is_on.swap(false, Ordering::Relaxed)
    }
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self { left: BURST, refilled_at: now, unsaid: None, withheld: 0 }
    }

    fn refill(&mut self, now: Instant) {
        if self.left >= BURST {
            self.refilled_at = now;
        }
        while self.left < BURST && now.saturating_duration_since(self.refilled_at) >= REFILL {
            self.refilled_at += REFILL;
            self.left += 1;
        }
    }

    /// Returns `notice` if it may be published, and keeps it otherwise.
    fn spend(&mut self, notice: NoticeRecord, now: Instant) -> Option<NoticeRecord> {
        self.refill(now);
        if self.left > 0 && self.unsaid.is_none() {
            self.left -= 1;
            return Some(notice);
        }
        self.withheld += u64::from(self.unsaid.is_some());
        self.unsaid = Some(notice);
        None
    }

    /// Returns the kept notice, once it may be published.
    fn catch_up(&mut self, now: Instant) -> Option<NoticeRecord> {
        self.refill(now);
        let mut notice = self.unsaid.take_if(|_| self.left > 0)?;
        self.left -= 1;
        if self.withheld > 0 {
            let _ = write!(notice.text, " ({} notices before this one were left out)", self.withheld);
            self.withheld = 0;
        }
        Some(notice)
    }
}

/// Whether an error is a shortage on this host, independent of the peer.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
    Errno::from_io_error(error).is_some_and(|errno| ours.contains(&errno))
}

/// A shortage, with what to do about it.
pub(crate) fn shortage_text(error: &io::Error) -> String {
    let is_limit = Errno::from_io_error(error) == Some(Errno::MFILE);
    let advice = if is_limit { ": raise the limit (ulimit -n, LimitNOFILE=)" } else { "" };
    format!("{error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(notices: &NoticeLog, now: Instant) -> Vec<String> {
        notices.take(now).into_iter().map(|notice| notice.text).collect()
    }

    #[test]
    fn a_shortage_that_comes_and_goes_is_one_episode() {
        let notices = NoticeLog::default();
        let mut now = notices.epoch;
        for i in 0..100 {
            notices.report_shortage(|| format!("no descriptor for the {i}th time"), now);
            now += Duration::from_millis(100);
        }
        assert_eq!(texts(&notices, now), ["no descriptor for the 0th time"]);
        assert_eq!(texts(&notices, now + Duration::from_millis(800)), [""; 0], "it may not be over yet");
        let over = texts(&notices, now + Duration::from_millis(900));
        assert!(over.len() == 1 && over[0].contains("again"), "{over:?}");
        assert_eq!(texts(&notices, now + Duration::from_secs(60)), [""; 0]);
    }

    #[test]
    fn that_clients_are_turned_away_is_said_also_while_others_wait() {
        let notices = NoticeLog::default();
        let error = io::Error::from(Errno::MFILE);
        for _ in 0..3 {
            notices.report_shortage(|| "others wait".to_owned(), notices.epoch);
            notices.report_turned_away(&error, notices.epoch);
        }
        let said = texts(&notices, notices.epoch);
        assert_eq!((said.len(), &*said[0]), (2, "others wait"), "{said:?}");
        assert!(said[1].contains("clients are turned away") && said[1].contains("LimitNOFILE="), "{said:?}");
        let over = texts(&notices, notices.epoch + SHORTAGE_QUIET);
        assert!(over.len() == 1 && over[0].contains("again"), "{over:?}");
    }

    #[test]
    fn a_limit_that_is_reached_repeatedly_is_logged_rarely() {
        let notices = NoticeLog::default();
        let mut now = notices.epoch;
        let mut said = 0;
        // For an hour, with pauses as long as it takes to be worst.
        for _ in 0..(3600 / 11) {
            notices.report_connection_limit(10, now);
            notices.report_handshake_limit(10, now);
            now += BOUND_QUIET + Duration::from_secs(1);
            said += texts(&notices, now).len();
        }
        let most = 2 * (u64::from(BURST) + 3600 / REFILL.as_secs() + 1);
        assert!(said > 100 && said as u64 <= most, "{said}");
    }

    #[test]
    fn the_last_state_of_a_flapping_upstream_is_logged() {
        let notices = NoticeLog::default();
        let now = notices.epoch;
        for i in 0..101 {
            notices.say(Subject::Upstream(3), Level::Warning, &format!("change {i}"), now);
        }
        notices.say(Subject::Upstream(4), Level::Warning, "another", now);
        assert_eq!(texts(&notices, now), ["change 0", "change 1", "change 2", "change 3", "another"]);
        let later = texts(&notices, now + REFILL);
        assert_eq!(later, ["change 100 (96 notices before this one were left out)"]);
        assert_eq!(texts(&notices, now + REFILL * 10), [""; 0]);
    }

    #[test]
    fn quoted_text_is_made_printable() {
        let notices = NoticeLog::default();
        notices.say(Subject::Upstream(0), Level::Warning, "unix:/\u{1b}[2J\n", notices.epoch);
        assert_eq!(texts(&notices, notices.epoch), ["unix:/\\u{1b}[2J\\u{a}"]);
    }
}
