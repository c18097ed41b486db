//! The guard of the process's memory. A thread measures it, and workers read the level once a turn: when little is left they
//! close idle connections, then they refuse new ones.

mod gauge;
#[expect(unsafe_code, reason = "it calls the allocator")]
mod trim;

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use records::kinds::Level;
use records::text::quantity::counted;

pub use self::gauge::{MemoryGauge, MemoryUsage};
use crate::notices::{NoticeLog, Subject};
use crate::worker::control::ProxyControl;

/// How often bounded memory is measured.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Percent of the bound from which the thread looks, this often, whether memory has grown by a hundredth of it: it is measured
/// again then, since requests can take much within [`SAMPLE_INTERVAL`].
const WATCHED_PERCENT: u64 = 80;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often the thread looks for a bound while there is none, and at most returns freed memory to the kernel, which holds
/// the workers up for some milliseconds.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Percent of the bound that pending bytes may fill between two samples; the rest is for everything else.
const FULL_PERCENT: u64 = 97;

/// How much memory is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum MemoryLevel {
    #[default]
    Enough,
    /// From 90 % of the bound: idle connections are closed.
    Short,
    /// From 95 %: new connections are refused, too.
    Exhausted,
}

impl MemoryLevel {
    const ALL: [Self; 3] = [Self::Enough, Self::Short, Self::Exhausted];

    /// The level after a sample. Each level ends 5 % of the bound below its beginning, so it does not flap.
    fn after(self, usage: MemoryUsage) -> Self {
        let reaches =
            |level: Self, percent: u64| usage.reaches(if self >= level { percent - 5 } else { percent });
        match (reaches(Self::Exhausted, 95), reaches(Self::Short, 90)) {
            (true, _) => Self::Exhausted,
            (false, true) => Self::Short,
            (false, false) => Self::Enough,
        }
    }
}

/// The level, as workers read it.
#[derive(Debug)]
pub(crate) struct MemoryGuard {
    level: AtomicU8,
    /// Rises with each sample.
    samples: AtomicU32,
    /// What was left at the last sample up to [`FULL_PERCENT`] of the bound, in bytes; without a bound the largest number.
    room_bytes: AtomicUsize,
    /// The bound in bytes, or the largest number.
    bytes_max: AtomicUsize,
    /// Pending bytes of all workers, as they last reported them.
    pending_bytes: AtomicUsize,
}

impl Default for MemoryGuard {
    fn default() -> Self {
        Self {
            level: AtomicU8::default(),
            samples: AtomicU32::default(),
            room_bytes: AtomicUsize::new(usize::MAX),
            bytes_max: AtomicUsize::new(usize::MAX),
            pending_bytes: AtomicUsize::default(),
        }
    }
}

impl MemoryGuard {
    /// Changes with each sample.
    pub(crate) fn samples(&self) -> u32 {
        self.samples.load(Ordering::Acquire)
    }

    pub(crate) fn level(&self) -> MemoryLevel {
        MemoryLevel::ALL[usize::from(self.level.load(Ordering::Relaxed))]
    }

    /// The bound on pending bytes of all workers: at most half of the memory.
    pub(crate) fn pending_bytes_max(&self, max: usize) -> usize {
        max.min(self.bytes_max.load(Ordering::Relaxed) / 2)
    }

    /// Replaces the pending bytes that a worker reported before.
    pub(crate) fn report_pending(&self, before: usize, now: usize) {
        self.pending_bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// How much more all workers may hold for peers that do not read until the next sample.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room_bytes.load(Ordering::Relaxed)
    }

    /// Takes over a sample, `None` without a bound, and the level after it.
    pub(crate) fn set(&self, usage: Option<MemoryUsage>, level: MemoryLevel) {
        let bytes = |of: fn(MemoryUsage) -> u64| {
            usage.map_or(usize::MAX, |usage| usize::try_from(of(usage)).unwrap_or(usize::MAX))
        };
        let room =
            |usage: MemoryUsage| (usage.max_bytes / 100 * FULL_PERCENT).saturating_sub(usage.used_bytes);
        self.bytes_max.store(bytes(|usage| usage.max_bytes), Ordering::Relaxed);
        self.room_bytes.store(bytes(room), Ordering::Relaxed);
        self.level.store(level as u8, Ordering::Relaxed);
        self.samples.fetch_add(1, Ordering::Release);
    }
}

/// Starts the thread `memory`. It ends once `control` is dropped; nobody waits for it.
///
/// # Errors
/// When the kernel refuses a thread.
pub(crate) fn start(
    control: &Arc<ProxyControl>,
    notices: Arc<NoticeLog>,
    gauge: MemoryGauge,
) -> io::Result<()> {
    let control = Arc::downgrade(control);
    let (level, now) = (MemoryLevel::Enough, Instant::now());
    let is_trim_due = false;
    let thread = MemoryThread { control, notices, gauge, level, since: now, is_trim_due, trim_at: now };
    thread::Builder::new().name("memory".to_owned()).spawn(move || thread.run())?;
    Ok(())
}

struct MemoryThread {
    control: Weak<ProxyControl>,
    notices: Arc<NoticeLog>,
    gauge: MemoryGauge,
    level: MemoryLevel,
    /// When the level last changed.
    since: Instant,
    /// Whether freed memory is to be returned, for the last time once there has been enough for a second.
    is_trim_due: bool,
    /// When freed memory may be returned again.
    trim_at: Instant,
}

impl MemoryThread {
    fn run(mut self) {
        while let Some(control) = self.control.upgrade() {
            let max = control.limits().memory_bytes_max;
            let usage = self.measure(max);
            let level = usage.map_or(MemoryLevel::Enough, |usage| self.level.after(usage));
            control.memory.set(usage, level);
            if level != self.level {
                self.report(level, usage, &control);
            }
            drop(control);
            match usage {
                None => thread::sleep(SLOW_INTERVAL),
                Some(usage) if usage.reaches(WATCHED_PERCENT) => self.wait_for_growth(max, usage.used_bytes),
                Some(_) => thread::sleep(SAMPLE_INTERVAL),
            }
        }
    }

    /// Waits until the next sample, which comes early if more than these bytes and a hundredth of the bound are in use.
    fn wait_for_growth(&self, max: Option<usize>, used_bytes: u64) {
        let end = Instant::now() + SAMPLE_INTERVAL;
        let has_grown = |now: MemoryUsage| now.used_bytes > used_bytes + now.max_bytes / 100;
        while Instant::now() < end && !self.gauge.measure(max).is_some_and(has_grown) {
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Measures memory; if there is, or was, too little, without what was freed.
    fn measure(&mut self, max: Option<usize>) -> Option<MemoryUsage> {
        let usage = self.gauge.measure(max)?;
        let now = Instant::now();
        self.is_trim_due |= self.level.after(usage) > MemoryLevel::Enough;
        if !self.is_trim_due || now < self.trim_at {
            return Some(usage);
        }
        self.trim_at = now + SLOW_INTERVAL;
        self.is_trim_due = self.level > MemoryLevel::Enough;
        trim::trim();
        self.gauge.measure(max)
    }

    /// Reports a change of the level.
    fn report(&mut self, level: MemoryLevel, usage: Option<MemoryUsage>, control: &ProxyControl) {
        let now = Instant::now();
        let before = (self.level, now.saturating_duration_since(self.since).as_secs());
        (self.level, self.since) = (level, now);
        let (notice, what) = match (level, before) {
            (MemoryLevel::Exhausted, _) => {
                (Level::Warning, "new connections are refused, and idle ones closed".to_owned())
            }
            (MemoryLevel::Short, (MemoryLevel::Exhausted, seconds)) => (
                Level::Warning,
                format!("new connections are accepted again after {seconds} s, and idle ones still closed"),
            ),
            (MemoryLevel::Short, _) => (Level::Warning, "idle connections are closed".to_owned()),
            (MemoryLevel::Enough, (_, seconds)) => {
                (Level::Notice, format!("idle connections stay open again after {seconds} s"))
            }
        };
        let used = usage.map_or_else(
            || "memory has no bound any more".to_owned(),
            |MemoryUsage { used_bytes, max_bytes, bound }| {
                format!("{} of {} MiB are in use ({bound})", used_bytes >> 20, max_bytes >> 20)
            },
        );
        let open = counted(control.limiter.open() as u64, "connection");
        let pending = control.memory.pending_bytes.load(Ordering::Relaxed) >> 20;
        let text =
            format!("{used}: {what}; {open} open, which hold {pending} MiB for peers that do not read");
        self.notices.say(Subject::Memory, notice, &text, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_begins_at_its_share_and_ends_five_percent_below() {
        let mut level = MemoryLevel::Enough;
        let after = [
            (89, MemoryLevel::Enough),
            (90, MemoryLevel::Short),
            (85, MemoryLevel::Short),
            (84, MemoryLevel::Enough),
            (94, MemoryLevel::Short),
            (95, MemoryLevel::Exhausted),
            (90, MemoryLevel::Exhausted),
            (89, MemoryLevel::Short),
            (200, MemoryLevel::Exhausted),
            (0, MemoryLevel::Enough),
        ];
        for (percent, expected) in after {
            let usage = MemoryUsage { used_bytes: percent << 30, max_bytes: 100 << 30, bound: "" };
            level = level.after(usage);
            assert_eq!(level, expected, "{percent} %");
        }
    }

    #[test]
    fn workers_notice_each_sample_and_what_it_leaves() {
        let guard = MemoryGuard::default();
        let mut notice = |used_bytes: Option<u64>| {
            let before = guard.samples();
            let usage = used_bytes.map(|used_bytes| MemoryUsage { used_bytes, max_bytes: 1_000, bound: "" });
            guard.set(usage, MemoryLevel::Short);
            assert_ne!(guard.samples(), before);
            guard.room_bytes()
        };
        let rooms = [Some(800), Some(970), Some(2_000), None].map(&mut notice);
        assert_eq!(rooms, [170, 0, 0, usize::MAX]);
    }

    #[test]
    fn pending_bytes_take_half_of_the_memory_at_most() {
        let guard = MemoryGuard::default();
        assert_eq!(guard.pending_bytes_max(512), 512);
        guard.bytes_max.store(100, Ordering::Relaxed);
        assert_eq!((guard.pending_bytes_max(512), guard.pending_bytes_max(20)), (50, 20));
    }
}
