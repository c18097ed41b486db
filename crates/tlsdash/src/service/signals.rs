//! Signals: the first SIGTERM or SIGINT ends the program in order.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::thread::spawn;

/// A signal this soon after the last one that counted is the same request: `timeout` sends two.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// Tells the replacing process that SIGHUP was ignored at the start: a caught signal is not inherited as ignored.
pub(crate) const HANGUP_IGNORED_VARIABLE: &str = "TLSDASH_HANGUP_IGNORED";

/// Whether the program was started with SIGHUP ignored, as by `nohup`. Read before the signal is caught.
static HANGUP_IGNORED: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os(HANGUP_IGNORED_VARIABLE).is_some() || is_ignored(SIGHUP));

/// Whether the program was started with SIGHUP ignored: it means a reload then, and never the end.
pub(crate) fn is_hangup_ignored() -> bool {
    *HANGUP_IGNORED
}

/// The last signal that counted as a request for the end.
#[derive(Debug, Default)]
pub(crate) struct EndRequest {
    pub(crate) at: Option<Instant>,
    is_repeated: bool,
}

/// What a signal that asks for the end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndSignal {
    First,
    /// It belongs to the last one that counted.
    Same,
    Second,
    Later,
}

impl EndRequest {
    pub(crate) fn note(&mut self, now: Instant) -> EndSignal {
        match self.at {
            None => {
                self.at = Some(now);
                EndSignal::First
            }
            Some(at) if now.saturating_duration_since(at) < SAME_REQUEST => EndSignal::Same,
            Some(_) => {
                self.at = Some(now);
                if std::mem::replace(&mut self.is_repeated, true) {
                    EndSignal::Later
                } else {
                    EndSignal::Second
                }
            }
        }
    }
}

/// Makes writing beyond the file size limit an error, like a full disk. By default the signal would end the program,
/// and the proxy with it.
pub(crate) fn survive_file_limits() {
    // Only fails for signals that cannot be caught.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Takes SIGINT, SIGTERM and SIGHUP for a command without a session: the first sets the flag, the second ends the program
/// at once.
///
/// # Errors
/// If signals cannot be caught.
pub(crate) fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(wanted).context("cannot listen for signals")?;
    let flag = Arc::clone(&interrupted);
    let mut end = EndRequest::default();
    let listen = move || {
        for _ in signals.forever() {
            match end.note(Instant::now()) {
                EndSignal::First => flag.store(true, Ordering::Relaxed),
                EndSignal::Same => {}
                EndSignal::Second | EndSignal::Later => std::process::exit(1),
            }
        }
    };
    spawn("signals", listen)?;
    Ok(interrupted)
}

/// True if the program was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_a_moment_are_one_request() {
        let (mut end, begun) = (EndRequest::default(), Instant::now());
        let said = [0, 1, 99, 100, 101, 200, 300].map(|ms| end.note(begun + Duration::from_millis(ms)));
        let [same, later] = [EndSignal::Same, EndSignal::Later];
        assert_eq!(said, [EndSignal::First, same, same, EndSignal::Second, same, later, later]);
    }
}
