//! The loop that ties input, data and terminal together.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use model::runs::{Level, Model};
use records::command::Command;

use super::action::{Action, Effect};
use super::layout_file as arrangement;
use super::update::{prepare, update};
use crate::clock::ClockReading;
use crate::frame::view;
use crate::input::InputThread;
use crate::input::intent::Intent;
use crate::options::channel::{Inbox, Message};
use crate::options::remote::RecordingRequest;
use crate::options::{DashboardResult, Event, Exit, Options, TuiError};
use crate::state::State;
use crate::terminal::frame_scheduler::FrameScheduler;
use crate::terminal::{SuspendTarget, Terminal, has_terminal};

/// How often the passing of time is looked at: what it changes on the screen is shown in seconds.
const TICK: Duration = Duration::from_secs(1);

/// How often it is while something is played.
const PLAY_TICK: Duration = Duration::from_millis(250);

/// How often a terminal that is busy with a frame is looked at.
const BUSY_POLL: Duration = Duration::from_millis(10);

/// Shows the dashboard until a person leaves it, the program ends or the terminal goes away. Call it on a thread named
/// `dashboard`: CPU time is accounted by that prefix.
///
/// Signals are the program's, save SIGWINCH and SIGCONT; in the raw mode of this dashboard Ctrl-C and Ctrl-Z are
/// keys. However it ends, the terminal is restored.
pub fn run(options: Options, inbox: &Inbox, commands: SyncSender<Command>) -> DashboardResult {
    match Dashboard::open(options, inbox, commands) {
        Ok((mut dashboard, _input)) => {
            let exit = match dashboard.go_on(inbox) {
                Err(TuiError::Draw(error)) if is_gone(&error) => Ok(Exit::TerminalLost),
                other => other,
            };
            DashboardResult { exit, model: dashboard.state.into_model() }
        }
        Err(error) => DashboardResult { exit: Err(error), model: Model::default() },
    }
}

/// True if there is no terminal any more behind the descriptor.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::IO, Errno::PIPE, Errno::NXIO]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

struct Dashboard {
    state: State,
    terminal: Terminal,
    pace: FrameScheduler,
    commands: SyncSender<Command>,
    next_tick: Instant,
    /// True from a suspension until the process is continued: the terminal is not ours to draw on.
    suspended: bool,
}

impl Dashboard {
    fn open(
        options: Options,
        inbox: &Inbox,
        commands: SyncSender<Command>,
    ) -> Result<(Self, InputThread), TuiError> {
        if !has_terminal() {
            return Err(TuiError::NoTerminal);
        }
        let terminal = Terminal::take(inbox.sender.clone(), options.mouse)?;
        let input = InputThread::start(inbox.sender.clone())?;
        let pace = FrameScheduler::new(options.frames_per_second_max);
        let mut state = State::new(options, terminal.size());
        match state.options.layout_file.as_deref().map(arrangement::read) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(text))) => drop(update(&mut state, Action::Restore(text), ClockReading::read())),
            Some(Err(why)) => {
                drop(update(&mut state, Action::Done(Level::Warning, why), ClockReading::read()));
            }
        }
        let next_tick = Instant::now() + TICK;
        Ok((Self { state, terminal, pace, commands, next_tick, suspended: false }, input))
    }

    fn go_on(&mut self, inbox: &Inbox) -> Result<Exit, TuiError> {
        loop {
            let now = Instant::now();
            let until_frame = if self.suspended { None } else { self.pace.wait(now) };
            let until_frame = match until_frame {
                // What is not drawn now is in the next frame.
                Some(_) if self.terminal.is_busy() => Some(BUSY_POLL),
                Some(Duration::ZERO) => {
                    self.draw()?;
                    continue;
                }
                later => later,
            };
            let until_tick = self.next_tick.saturating_duration_since(now);
            let patience = until_frame.map_or(until_tick, |frame| frame.min(until_tick));
            let left = match inbox.messages.recv_timeout(patience) {
                Ok(message) => self.take(message)?,
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => Some(Exit::Terminated),
            };
            if let Some(exit) = left {
                return Ok(exit);
            }
        }
    }

    fn draw(&mut self) -> Result<(), TuiError> {
        prepare(&mut self.state, ClockReading::read());
        self.terminal.draw(|frame| view(&self.state, frame))?;
        self.pace.drawn(Instant::now());
        Ok(())
    }

    fn tick(&mut self) -> Result<Option<Exit>, TuiError> {
        let now = Instant::now();
        if now < self.next_tick {
            return Ok(None);
        }
        let left = self.apply(Action::Tick);
        self.next_tick = now + if self.state.is_playing() { PLAY_TICK } else { TICK };
        left
    }

    /// Deals with one message; `Some` if it ends the dashboard.
    fn take(&mut self, message: Message) -> Result<Option<Exit>, TuiError> {
        match message {
            Message::Program(Event::Update(news)) => self.apply(Action::Update(news)),
            Message::Program(Event::Terminate) => Ok(Some(Exit::Terminated)),
            Message::Program(Event::Suspend) if self.state.options.watches => {
                self.suspend(SuspendTarget::Process)
            }
            Message::Program(Event::Suspend) => self.apply(Action::Want(Intent::Suspend)),
            Message::Program(Event::Read(reader)) => {
                reader.read(self.state.live_model());
                Ok(None)
            }
            Message::Program(Event::Access(run, access)) => self.apply(Action::Access(run, access)),
            Message::History(news) => self.apply(Action::History(news)),
            Message::Key(key) => self.key(&key),
            Message::Mouse(mouse) => self.apply(Action::Point(mouse)),
            Message::Pasted(text) => self.apply(Action::Paste(text)),
            Message::Resized => self.resize(),
            Message::Continued => {
                self.suspended = false;
                self.terminal.reenter().map_err(TuiError::Draw)?;
                self.resize()
            }
            Message::TerminalLost => Ok(Some(Exit::TerminalLost)),
            Message::NotWritten => self.terminal.check().map(|()| None),
            Message::Panicked => Err(TuiError::Panicked),
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Result<Option<Exit>, TuiError> {
        if self.state.prompt.is_some() {
            return self.apply(Action::Type(*key));
        }
        let intent = self.state.options.keymap.intent(key, self.state.context());
        intent.map_or(Ok(None), |intent| self.apply(Action::Want(intent)))
    }

    fn resize(&mut self) -> Result<Option<Exit>, TuiError> {
        let (columns, rows) = self.terminal.size();
        self.apply(Action::Resize(columns, rows))
    }

    fn suspend(&mut self, whom: SuspendTarget) -> Result<Option<Exit>, TuiError> {
        self.suspended = true;
        Terminal::suspend(whom).map_err(TuiError::Draw)?;
        Ok(None)
    }

    /// Changes the state and does what follows from it.
    fn apply(&mut self, action: Action) -> Result<Option<Exit>, TuiError> {
        let left = self.change(action);
        if let Some((request, reader)) = self.state.history_request().zip(self.state.options.history.as_ref())
        {
            reader.request(request);
        }
        if let Some((request, remote)) = self.state.access_request().zip(self.state.options.remote.as_ref())
            && offer(&remote.requests, Some(request)).is_err()
        {
            self.state.access.doubt();
        }
        if self.state.is_playing() {
            self.next_tick = self.next_tick.min(Instant::now() + PLAY_TICK);
        }
        left
    }

    fn change(&mut self, action: Action) -> Result<Option<Exit>, TuiError> {
        for effect in update(&mut self.state, action, ClockReading::read()) {
            match effect {
                Effect::Draw(urgency) => self.pace.want(urgency),
                Effect::Redraw => {
                    self.terminal.forget()?;
                    self.pace.want(crate::terminal::frame_scheduler::Urgency::Now);
                }
                Effect::Send(command) => self.send(command)?,

                // A terminal that is busy would keep us waiting.
                Effect::Copy(_) if self.terminal.is_busy() => {
                    let what = "the terminal is busy: nothing was copied".to_owned();
                    self.apply(Action::Done(Level::Warning, what))?;
                }
                Effect::Copy(text) => self.terminal.copy(text)?,
                Effect::Notify(text) => self.terminal.notify(self.state.options.alert_notify, &text)?,
                Effect::Export(view) => {
                    let (level, what) = match view.write() {
                        Ok(what) => (Level::Notice, what),
                        Err(why) => (Level::Warning, why),
                    };
                    self.apply(Action::Done(level, what))?;
                }
                Effect::Keep(text) => {
                    let file = self.state.options.layout_file.as_deref();
                    if let Some(Err(why)) = file.map(|file| arrangement::write(file, &text)) {
                        self.apply(Action::Done(Level::Warning, why))?;
                    }
                }
                Effect::Suspend(whom) => return self.suspend(whom),
                Effect::Leave(exit) => return Ok(Some(exit)),
            }
        }
        Ok(None)
    }

    /// Sends a command: to this process, to that of the shown run, or to the recorder of the runs of others.
    fn send(&mut self, command: Command) -> Result<(), TuiError> {
        let sent = match (&self.state.options.remote, command) {
            (None, command) => offer(&self.commands, Some(command)),
            (Some(remote), Command::Record(path)) => {
                let run = self.state.shown_run_id();
                offer(&remote.recorder, run.map(|run| RecordingRequest::Begin(run, path)))
            }
            (Some(remote), Command::EndRecording) => offer(&remote.recorder, Some(RecordingRequest::End)),
            (Some(remote), command) => offer(&remote.requests, self.state.remote_command(command)),
        };
        sent.or_else(|why| self.apply(Action::NotSent(why)).map(|_| ()))
    }
}

/// Sends without waiting, if there is anything to send.
fn offer<T>(to: &SyncSender<T>, what: Option<T>) -> Result<(), &'static str> {
    what.map_or(Ok(()), |what| to.try_send(what)).map_err(|error| match error {
        TrySendError::Full(_) => "the program is too busy to take this command: try again",
        TrySendError::Disconnected(_) => "the program takes no commands any more",
    })
}
