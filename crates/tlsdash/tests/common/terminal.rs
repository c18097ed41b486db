//! The program as a person has it on a terminal.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::Signal;

use super::common::{self, until};

/// The program on a terminal of its own.
pub(crate) struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pub(crate) screen: Arc<Mutex<vt100::Parser>>,
    keys: Option<Box<dyn Write + Send>>,
    master: Option<Box<dyn portable_pty::MasterPty + Send>>,
    gone: Arc<AtomicBool>,
}

impl Terminal {
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        Self::of(folder, Command::new(env!("CARGO_BIN_EXE_tlsdash")).args(args))
    }

    /// The same, however the program is started.
    pub(crate) fn of(folder: &Path, started: &Command) -> Self {
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
        command.env("LANG", "C.UTF-8");
        let child = pty.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (shown, mut output) = (Arc::clone(&screen), pty.master.try_clone_reader().unwrap());
        let gone = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&gone);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                shown.lock().unwrap().process(&buffer[..n]);
            }
        });
        let keys = Some(pty.master.take_writer().unwrap());
        Self { child, screen, keys, master: Some(pty.master), gone }
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub(crate) fn shows(&self, text: &str) {
        until(&format!("the screen shows {text:?}"), || self.contents().contains(text));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        let writer = self.keys.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        common::send(signal, self.child.process_id().unwrap());
    }

    /// Closes the terminal under the program; the reader lets go of it at the next output.
    pub(crate) fn vanish(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        self.keys = None;
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

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
