//! Signals: the first SIGTERM or SIGINT ends the program in order, the second at once.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;
use tui::{DashboardSender, Event};

use crate::session::frontend::Frontend;

/// A request to read certificates and keys again. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reload(Arc<AtomicBool>);

impl Reload {
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request; true if there was one.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A request to replace this process by a new one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpgradeSignal(Arc<AtomicBool>);

impl UpgradeSignal {
    /// Starts to take SIGUSR2 as one.
    ///
    /// # Errors
    /// If the signal cannot be caught.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR2, Arc::clone(&asked)).context("cannot listen for signals")?;
        Ok(Self(asked))
    }

    /// Takes the request; true if there was one.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// The meaning of SIGHUP once the terminal is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SighupAction {
    /// The program ends in order.
    Terminate,
    /// The run continues, and a further SIGHUP means a reload.
    Reload,
}

/// A second signal this soon after the first is the same request: `timeout` sends two.
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

/// The first signal that asked for the end.
#[derive(Debug, Default)]
struct EndRequest {
    at: Option<Instant>,
}

/// What a signal that asks for the end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndSignal {
    First,
    /// It belongs to the first.
    Same,
    Second,
}

impl EndRequest {
    fn note(&mut self, now: Instant) -> EndSignal {
        match self.at {
            None => {
                self.at = Some(now);
                EndSignal::First
            }
            Some(at) if now.saturating_duration_since(at) < SAME_REQUEST => EndSignal::Same,
            Some(_) => EndSignal::Second,
        }
    }
}

/// Whether a signal has asked the program to end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// True once a signal has asked the program to end.
pub(crate) fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
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
                EndSignal::Second => std::process::exit(1),
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(listen)
        .context("cannot start the thread for signals")?;
    Ok(interrupted)
}

/// Starts a thread that turns signals into events.
pub(crate) fn listen(
    frontend: Frontend,
    sighup: SighupAction,
    events: DashboardSender,
    reload: Reload,
) -> anyhow::Result<()> {
    let hangup_ignored = is_hangup_ignored();
    let mut wanted = vec![SIGTERM, SIGINT, SIGHUP];
    // Without a dashboard the default action applies: the shell stops the program.
    if frontend == Frontend::Dashboard {
        wanted.push(SIGTSTP);
    }
    let mut had_terminal = has_controlling_terminal();
    let mut signals = Signals::new(wanted).context("cannot listen for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut end = EndRequest::default();
            for signal in signals.forever() {
                match signal {
                    SIGTSTP => {
                        let _ = events.send(Event::Suspend);
                    }
                    SIGHUP if hangup_ignored || !had_terminal || has_controlling_terminal() => {
                        reload.ask();
                    }
                    SIGHUP if sighup == SighupAction::Reload => had_terminal = false,
                    SIGHUP if end.at.is_some() => {}
                    _ => match end.note(Instant::now()) {
                        EndSignal::First => ask_for_end(frontend, &events),
                        EndSignal::Same => {}
                        EndSignal::Second => end_at_once(frontend),
                    },
                }
            }
        })
        .context("cannot start the thread for signals")?;
    Ok(())
}

fn ask_for_end(frontend: Frontend, events: &DashboardSender) {
    ASKED.store(true, Ordering::Relaxed);
    // Sending may block while the program is busy. A second signal must still get through.
    let events = events.clone();
    let tell = move || events.send(Event::Terminate);
    if std::thread::Builder::new().name("signals".into()).spawn(tell).is_err() {
        end_at_once(frontend);
    }
}

/// Ends the program, after restoring the terminal.
fn end_at_once(frontend: Frontend) -> ! {
    if frontend == Frontend::Dashboard {
        tui::restore();
    }
    crate::say("second signal, ending at once; connections are cut and the journal's end is missing");
    std::process::exit(1)
}

fn has_controlling_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
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
    fn signals_within_a_moment_of_the_first_are_one_request() {
        let (mut end, begun) = (EndRequest::default(), Instant::now());
        let said = [0, 1, 99, 100, 101].map(|ms| end.note(begun + Duration::from_millis(ms)));
        let [same, second] = [EndSignal::Same, EndSignal::Second];
        assert_eq!(said, [EndSignal::First, same, same, second, second]);
    }
}
