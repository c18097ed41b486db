//! The terminal's input, read on a thread of its own.
//!
//! crossterm's readers do not notice a terminal that has gone away, so this thread waits on the descriptor itself
//! and lets crossterm read only what is there.

pub(crate) mod click;
pub(crate) mod context;
pub(crate) mod intent;
pub(crate) mod keymap;
pub(crate) mod requirement;

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

use crate::options::TuiError;
use crate::options::channel::Message;

/// How long crossterm may look for one more key among what it has read. It looks at nothing if this is zero.
const NEXT_KEY_PATIENCE: Duration = Duration::from_millis(1);

/// The input thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct InputThread {
    /// Closing it is what ends the thread.
    _stop: PipeWriter,
    signals: [SigId; 2],
}

impl InputThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub(crate) fn start(messages: SyncSender<Message>) -> Result<Self, TuiError> {
        let setup = |error| TuiError::Setup { what: "watch the keyboard", error };
        let (stopped, stop) = io::pipe().map_err(setup)?;
        let (resized, resize_id) = signal_socket(Signal::WINCH).map_err(setup)?;
        let (continued, continue_id) = signal_socket(Signal::CONT).map_err(setup)?;
        let mut watch =
            InputWatch { stopped, resized, continued, messages, late: LateColourReply::default() };
        thread::Builder::new().name("dashboard-in".to_owned()).spawn(move || watch.run()).map_err(setup)?;
        Ok(Self { _stop: stop, signals: [resize_id, continue_id] })
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        for signal in self.signals {
            unregister(signal);
        }
    }
}

/// A socket that becomes readable when the signal arrives.
fn signal_socket(signal: Signal) -> io::Result<(UnixStream, SigId)> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    let id = pipe::register(signal.as_raw(), writer)?;
    Ok((reader, id))
}

struct InputWatch {
    stopped: PipeReader,
    resized: UnixStream,
    continued: UnixStream,
    messages: SyncSender<Message>,
    late: LateColourReply,
}

/// Discards a late answer of the terminal to the question about its colours. crossterm does not know this answer and
/// reports it as keys: Alt-], one key for each character, then Ctrl-G or Alt-\.
#[derive(Debug, Default)]
struct LateColourReply {
    began: Option<Instant>,
}

/// An answer comes in one piece, or soon after its beginning, but a busy machine may stop us within it.
const ANSWER_TAKES: Duration = Duration::from_secs(1);

impl LateColourReply {
    /// True if the key is part of an answer.
    fn holds(&mut self, key: &KeyEvent, now: Instant) -> bool {
        let is = |code, modifiers| key.code == KeyCode::Char(code) && key.modifiers == modifiers;
        if is(']', KeyModifiers::ALT) {
            self.began = Some(now);
            return true;
        }
        let is_end = is('g', KeyModifiers::CONTROL) || is('\\', KeyModifiers::ALT);
        // Such as 11;rgb:ffff/ffff/ffff.
        let is_part =
            ('0'..=':').chain('a'..='g').chain(['r', ';', '/']).any(|code| is(code, KeyModifiers::NONE));
        let is_recent = self.began.is_some_and(|began| now.saturating_duration_since(began) < ANSWER_TAKES);
        let is_inside = is_recent && (is_part || is_end);
        if !is_inside || is_end {
            self.began = None;
        }
        is_inside
    }
}

/// The input is closed; the thread ends.
struct InputClosed;

impl InputWatch {
    fn run(&mut self) {
        while self.turn().is_ok() {}
    }

    /// Waits for an event, and sends a message about it.
    fn turn(&mut self) -> Result<(), InputClosed> {
        let [keys, stopped, resized, continued] = self.wait()?;
        if !stopped.is_empty() {
            return Err(InputClosed);
        }
        if !resized.is_empty() {
            drain(&self.resized);
            self.tell(Message::Resized)?;
        }
        if !continued.is_empty() {
            drain(&self.continued);
            self.tell(Message::Continued)?;
        }
        if keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return self.lose();
        }
        if keys.contains(PollFlags::IN) { self.read_keys() } else { Ok(()) }
    }

    fn wait(&self) -> Result<[PollFlags; 4], InputClosed> {
        let keyboard = io::stdin();
        let mut fds = [
            PollFd::from_borrowed_fd(keyboard.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.resized.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.continued.as_fd(), PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => return Ok(fds.each_ref().map(PollFd::revents)),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    let _ = self.lose();
                    return Err(InputClosed);
                }
            }
        }
    }

    fn read_keys(&mut self) -> Result<(), InputClosed> {
        loop {
            match event::poll(NEXT_KEY_PATIENCE) {
                Ok(false) => return Ok(()),
                Ok(true) => match event::read() {
                    Ok(Event::Key(key)) if self.late.holds(&key, Instant::now()) => {}
                    Ok(Event::Key(key)) => self.tell(Message::Key(key))?,
                    Ok(Event::Mouse(mouse)) => self.tell(Message::Mouse(mouse))?,
                    Ok(Event::Paste(text)) => self.tell(Message::Pasted(text))?,
                    Ok(Event::Resize(..)) => self.tell(Message::Resized)?,
                    Ok(_) => {}
                    Err(_) => return self.lose(),
                },
                Err(_) => return self.lose(),
            }
        }
    }

    fn tell(&self, message: Message) -> Result<(), InputClosed> {
        self.messages.send(message).map_err(|_| InputClosed)
    }

    fn lose(&self) -> Result<(), InputClosed> {
        let _ = self.messages.send(Message::TerminalLost);
        Err(InputClosed)
    }
}

fn drain(mut socket: &UnixStream) {
    let mut scratch = [0; 64];
    while socket.read(&mut scratch).is_ok_and(|n| n == scratch.len()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_terminal_reply_is_not_taken_for_keys() {
        let mut late = LateColourReply::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let key = |code, modifiers| KeyEvent::new(KeyCode::Char(code), modifiers);
        for end in [key('g', KeyModifiers::CONTROL), key('\\', KeyModifiers::ALT)] {
            assert!(late.holds(&key(']', KeyModifiers::ALT), at(0)));
            for code in "11;rgb:ffff/ffff/ffff".chars() {
                assert!(late.holds(&key(code, KeyModifiers::NONE), at(5)), "{code}");
            }
            assert!(late.holds(&end, at(5)));
            assert!(!late.holds(&key('q', KeyModifiers::NONE), at(6)));
        }
        for (code, ms) in [('q', 11), ('f', 1_010)] {
            assert!(late.holds(&key(']', KeyModifiers::ALT), at(10)));
            assert!(!late.holds(&key(code, KeyModifiers::NONE), at(ms)), "a person");
            assert!(!late.holds(&key('f', KeyModifiers::NONE), at(ms)));
        }
    }
}
