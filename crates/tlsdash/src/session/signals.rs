//! Signals to a session, as events and requests.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tui::{DashboardSender, Event};

use crate::service::signals::{EndRequest, EndSignal, is_hangup_ignored};
use crate::service::thread::spawn;
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

/// Whether a signal has asked the program to end.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Whether connections are drained, and whether a second signal has asked to cut them.
static DRAINS: AtomicBool = AtomicBool::new(false);
static HURRIED: AtomicBool = AtomicBool::new(false);

/// True once a signal has asked the program to end.
pub(crate) fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Tells that connections run to their end: a second signal cuts them instead of ending the program.
pub(crate) fn begin_drain() {
    DRAINS.store(true, Ordering::Relaxed);
}

/// True once a second signal has asked to cut the connections that are drained.
pub(crate) fn asked_to_hurry() -> bool {
    HURRIED.load(Ordering::Relaxed)
}

/// Starts a thread that turns signals into events.
pub(crate) fn listen(
    frontend: Frontend,
    sighup: SighupAction,
    events: DashboardSender,
    reload: Reload,
) -> anyhow::Result<()> {
    let hangup_ignored = is_hangup_ignored();
    // Programs that rotate logs send SIGUSR1 to have logs reopened; there are none.
    let mut wanted = vec![SIGTERM, SIGINT, SIGHUP, SIGUSR1];
    // Without a dashboard the default actions apply: the shell stops the program, or it dumps its core.
    if frontend == Frontend::Dashboard {
        wanted.extend([SIGTSTP, SIGQUIT]);
    }
    let mut had_terminal = has_controlling_terminal();
    let mut signals = Signals::new(wanted).context("cannot listen for signals")?;
    // A full standard error must not delay signals.
    crate::say::drop_unread();
    spawn("signals", move || {
        let mut end = EndRequest::default();
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => {}
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
                    EndSignal::Second if DRAINS.load(Ordering::Relaxed) => hurry(frontend),
                    EndSignal::Second | EndSignal::Later => end_at_once(frontend),
                },
            }
        }
    })?;
    Ok(())
}

fn ask_for_end(frontend: Frontend, events: &DashboardSender) {
    ASKED.store(true, Ordering::Relaxed);
    // Sending may block while the program is busy. Later signals must still get through.
    let events = events.clone();
    let tell = move || events.send(Event::Terminate);
    if spawn("signals", tell).is_err() {
        end_at_once(frontend);
    }
}

/// Lets the controller cut connections; the journal and the summary are still written.
fn hurry(frontend: Frontend) {
    HURRIED.store(true, Ordering::Relaxed);
    say(frontend, "second signal: cutting connections; a third one ends at once");
}

/// Ends the program.
fn end_at_once(frontend: Frontend) -> ! {
    say(frontend, "ending at once; connections are cut and the journal's end is missing");
    std::process::exit(1)
}

/// Says it below the dashboard, whose thread may hang.
fn say(frontend: Frontend, text: &str) {
    if frontend == Frontend::Dashboard {
        tui::restore();
    }
    crate::say(text);
}

fn has_controlling_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}
