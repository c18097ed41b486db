//! The dashboard on a made-up run, for looking at it and for the tests in a real terminal.
//!
//! `pty_fixture [watch | panic-elsewhere | end-at-once | flood]`: the dashboard only watches; or after a moment another
//! thread panics, or ends the program without waiting for the dashboard, or sends much at once and then ends it in order.
//! At its end it prints how the dashboard ended, and `cooked` if the terminal reads lines again.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use model::history::Update;
use model::runs::Level;
use records::command::Command;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use tui::{DashboardSender, Event, Options, channel};

#[path = "../tests/support/synthetic.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of the crate")]
mod synthetic;
use synthetic::SyntheticLoad;

/// Seconds that are already in the journal at the start.
const HISTORY_SECONDS: usize = 70;

/// Seconds that come at once in a flood.
const FLOOD_SECONDS: u64 = 100;

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let (events, inbox) = channel();
    let (commands, commanded) = sync_channel(8);
    forward_signals(events.clone());
    let mut options = Options::new(":8443 > unix:/tmp/app.sock", "file:/tmp/tlsdash/made-up.journal");
    options.watches = mode == "watch";
    thread::spawn(move || feed(&events, &commanded, &mode));
    let dashboard = thread::Builder::new().name("dashboard".to_owned());
    let show = move || {
        let ended = tui::run(options, &inbox, commands);
        let read = ended.model.current().map_or(0, |run| run.reading().read());
        (ended.exit, read)
    };
    let ended = dashboard.spawn(show).map(thread::JoinHandle::join);
    match ended {
        Ok(Ok((Ok(exit), read))) => report(&format!("{exit:?}, {read} records read")),
        Ok(Ok((Err(error), _))) => report(&format!("failed: {error}")),
        other => report(&format!("{other:?}")),
    }
}

/// Prints how it ended; a terminal that is gone takes it to nowhere.
#[expect(clippy::print_stdout, reason = "the tests read it from the terminal")]
fn report(how: &str) {
    use rustix::termios::{LocalModes, tcgetattr};
    let is_cooked =
        tcgetattr(std::io::stdin()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
    let cooked = if is_cooked { ", cooked" } else { "" };
    if let Ok(path) = std::env::var("PTY_FIXTURE_REPORT") {
        let _ = std::fs::write(path, format!("{how}{cooked}"));
    } else if is_cooked {
        println!("{how}{cooked}");
    }
}

fn forward_signals(events: DashboardSender) {
    let mut signals = Signals::new([SIGHUP, SIGTERM, SIGTSTP]).expect("signals can be watched");
    thread::spawn(move || {
        for signal in signals.forever() {
            let _ = match signal {
                SIGTERM => events.send(Event::Terminate),
                SIGTSTP => events.send(Event::Suspend),
                // The dashboard finds out by itself that its terminal is gone.
                _ => Ok(()),
            };
        }
    });
}

/// Sends a second of the run every second, and does what it is told.
fn feed(events: &DashboardSender, commanded: &Receiver<Command>, mode: &str) {
    let mut run = SyntheticLoad::default();
    let mut history = vec![run.start()];
    history.extend((0..HISTORY_SECONDS).flat_map(|_| run.second()));
    for records in history.chunks(200) {
        let batch = SyntheticLoad::live(records.to_vec());
        let _ = events.send(Event::Update(Update::Batch(batch)));
    }
    let _ = events.send(Event::Update(Update::CaughtUp));
    for second in 0_u64.. {
        let news = match commanded.recv_timeout(Duration::from_secs(1)) {
            Ok(Command::Set { name, value }) => match run.set(&name, value) {
                Some(record) => Update::Batch(SyntheticLoad::live(vec![record])),
                None => Update::Notice(Level::Warning, format!("{name} cannot be changed here")),
            },
            Ok(Command::WriteConfiguration) => {
                Update::Notice(Level::Notice, "a configuration was asked for".to_owned())
            }
            Ok(Command::Record(_)) => Update::Recording(model::history::RecordingStatus::Written),
            Ok(Command::EndRecording) => Update::Recording(model::history::RecordingStatus::Ended),
            Ok(Command::Notice(notice)) => Update::Notice(notice.level, notice.text),
            Ok(Command::Calibrate) => Update::Notice(Level::Notice, "a calibration was asked for".to_owned()),
            Ok(Command::Upstream { .. }) => {
                Update::Notice(Level::Notice, "a change of an upstream was asked for".to_owned())
            }
            Ok(Command::Mark(_)) => Update::Notice(Level::Notice, "a mark was asked for".to_owned()),
            Ok(Command::Experiment(_) | Command::EndExperiment) => {
                Update::Notice(Level::Notice, "an experiment was asked for".to_owned())
            }
            Err(RecvTimeoutError::Timeout) => run.batch(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match (mode, second) {
            ("panic-elsewhere", 1) => panic!("made up"),
            ("flood", 1) => {
                let sent = (0..FLOOD_SECONDS).all(|_| events.send(Event::Update(run.batch())).is_ok());
                let _ = events.send(Event::Terminate);
                assert!(sent, "the dashboard took everything");
                return;
            }
            ("end-at-once", 1) => {
                tui::restore();
                report("EndedAtOnce");
                std::process::exit(0);
            }
            _ => {}
        }
        if events.send(Event::Update(news)).is_err() {
            return;
        }
    }
}
