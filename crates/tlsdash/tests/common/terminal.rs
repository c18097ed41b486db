//! The program as a person has it on a terminal.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::Signal;

use super::common::{self, PATIENCE, until};

/// The program on a terminal of its own.
pub(crate) struct TestTerminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pub(crate) screen: Arc<Mutex<vt100::Parser>>,
    keys: Arc<Mutex<Option<Box<dyn Write + Send>>>>,
    master: Option<Box<dyn portable_pty::MasterPty + Send>>,
    gone: Arc<AtomicBool>,
}

/// Asks what the terminal is; every one answers that.
const DEVICE_ATTRIBUTES: &[u8] = b"\x1b[c";

/// Around each frame.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// What a terminal knows of the colours of its text and its background, as it tells them.
pub(crate) const NOTHING: &str = "";
pub(crate) const BLACK: &str = "\x1b]10;rgb:ffff/ffff/ffff\x07\x1b]11;rgb:0000/0000/0000\x07";
pub(crate) const WHITE: &str = "\x1b]10;rgb:0000/0000/0000\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x1b\\";

impl TestTerminal {
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        Self::with_colours(NOTHING, folder, args)
    }

    pub(crate) fn with_colours(told: &'static str, folder: &Path, args: &[&str]) -> Self {
        Self::of(told, folder, Command::new(env!("CARGO_BIN_EXE_tlsdash")).args(args))
    }

    /// The same, however the program is started.
    pub(crate) fn of(told: &'static str, folder: &Path, started: &Command) -> Self {
        const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();
        const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();
        let (rows, cols) = (ROWS.get(), COLUMNS.get());
        let pty =
            native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(started.get_program());
        command.args(started.get_args());
        command.env("STATE_DIRECTORY", folder);
        command.cwd(folder);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        // Whatever the tests themselves run in.
        command.env("FORCE_COLOR", "ansi256");
        command.env_remove("NO_COLOR");
        command.env_remove("COLORFGBG");
        let child = pty.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (shown, mut output) = (Arc::clone(&screen), pty.master.try_clone_reader().unwrap());
        let gone = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&gone);
        let keys = Arc::new(Mutex::new(Some(pty.master.take_writer().unwrap())));
        let answers = Arc::clone(&keys);
        std::thread::spawn(move || {
            let (mut buffer, mut unseen) = ([0; 4096], Vec::new());
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                // A question comes in one write, before anything is drawn.
                if buffer[..n].ends_with(DEVICE_ATTRIBUTES) {
                    let answer = format!("{told}\x1b[?62;22c");
                    answers.lock().unwrap().as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
                }
                unseen.extend_from_slice(&buffer[..n]);
                // A frame is shown when it is complete, as a terminal would.
                let begun = last(BEGIN, &unseen).filter(|begun| last(END, &unseen[*begun..]).is_none());
                let drawn = begun.unwrap_or(unseen.len());
                shown.lock().unwrap().process(&unseen[..drawn]);
                unseen.drain(..drawn);
            }
        });
        Self { child, screen, keys, master: Some(pty.master), gone }
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub(crate) fn shows(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.contents().contains(text) {
            assert!(Instant::now() < deadline, "the screen never shows {text:?}:\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        let mut writer = self.keys.lock().unwrap();
        let writer = writer.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        common::send(signal, self.child.process_id().unwrap());
    }

    /// Closes the terminal under the program; the reader lets go of it at the next output.
    pub(crate) fn vanish(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        *self.keys.lock().unwrap() = None;
        self.master = None;
    }

    /// Waits for the end; the exit code.
    pub(crate) fn ended(&mut self) -> u32 {
        let mut status = None;
        until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().exit_code()
    }
}

/// The place at which the last such part begins.
fn last(part: &[u8], bytes: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).rposition(|window| window == part)
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
