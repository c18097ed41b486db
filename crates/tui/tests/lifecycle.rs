//! The dashboard in a real pseudo-terminal: what it leaves behind, however it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics, also outside of its own function")]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for anything; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The fixture program in a terminal of its own.
struct TerminalSession {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    keyboard: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// All that was written.
    written: Vec<u8>,
    pid: Pid,
}

fn fixture() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/pty_fixture");
    assert!(
        path.exists(),
        "{} is missing: run `cargo build -p tlsdash-tui --examples` first",
        path.display()
    );
    path
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

fn command(mode: &str) -> CommandBuilder {
    let mut command = CommandBuilder::new(fixture());
    command.arg(mode);
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    command.env_remove("NO_COLOR");
    command
}

impl TerminalSession {
    fn start(mode: &str) -> Self {
        let pty = native_pty_system().openpty(size(24, 80)).unwrap();
        let child = pty.slave.spawn_command(command(mode)).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (chunks, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                if chunks.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keyboard = pty.master.take_writer().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.process_id().unwrap()).unwrap()).unwrap();
        let parser = vt100::Parser::new(cells(24), cells(80), 0);
        let master = Some(pty.master);
        let mut session = Self { child, master, keyboard, output, parser, written: Vec::new(), pid };
        session.until("the dashboard is drawn", |screen| {
            screen.alternate_screen() && screen.contents().contains("LIVE")
        });
        session
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Reads what the program writes until the screen is as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        self.until_written(what, |screen, _| wanted(screen));
    }

    /// The same of the screen and all that was written.
    fn until_written(&mut self, what: &str, wanted: impl Fn(&vt100::Screen, &[u8]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.parser.screen(), &self.written) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.written.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("waited in vain until {what}; the screen:\n{}", self.parser.screen().contents());
                }
            }
        }
    }

    /// Waits for the end and gives the screen that is left.
    fn end(mut self) -> String {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.parser.process(&bytes);
        }
        let status = self.child.wait().unwrap();
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "the alternate screen was not left:\n{}", screen.contents());
        assert!(!screen.hide_cursor(), "the cursor was not shown again");
        let contents = screen.contents();
        assert!(contents.contains(", cooked"), "the terminal reads lines again:\n{contents}");
        format!("{contents}\n{status:?}")
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// State and CPU time in ticks of a process, from `proc_pid_stat(5)`; it need not have been waited for.
fn stat(pid: Pid) -> (char, u64) {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    (fields[0].chars().next().unwrap(), ticks(11) + ticks(12))
}

fn until_state(pid: Pid, wanted: char) {
    let deadline = Instant::now() + PATIENCE;
    while stat(pid).0 != wanted {
        assert!(Instant::now() < deadline, "process never came to state {wanted}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn q_restores_the_terminal() {
    let mut session = TerminalSession::start("");
    session.press("q");
    let left = session.end();
    assert!(left.contains("Quit, "), "{left}");
}

#[test]
fn y_gives_the_terminal_what_it_is_to_copy() {
    let mut session = TerminalSession::start("");
    let holds = |written: &[u8], text: &str| written.windows(text.len()).any(|at| at == text.as_bytes());
    session.press("y");
    // What begins with "tlsdash :844", in base64.
    session.until_written("the screen is copied", |_, written| holds(written, "\x1b]52;c;dGxzZGFzaCA6ODQ0"));
    session.until("it is said", |screen| screen.contents().contains("the screen sent to the terminal"));
    session.press("jy");
    session.until_written("the address 10.0.0.23 is copied, and nothing else", |_, written| {
        holds(written, "\x1b]52;c;MTAuMC4wLjIz\x1b\\")
    });
    session.press("q");
    assert!(session.end().contains("Quit, "));
}

#[test]
fn ctrl_c_restores_the_terminal() {
    let mut session = TerminalSession::start("");
    session.press("\x03");
    let left = session.end();
    assert!(left.contains("Quit, "), "{left}");
}

#[test]
fn an_end_that_the_program_decides_restores_the_terminal() {
    let session = TerminalSession::start("");
    session.signal(Signal::TERM);
    let left = session.end();
    assert!(left.contains("Terminated, "), "{left}");
}

#[test]
fn a_panic_on_another_thread_restores_the_terminal_before_its_message() {
    let session = TerminalSession::start("panic-elsewhere");
    let left = session.end();
    assert!(left.contains("panicked at") && left.contains("made up"), "{left}");
    assert!(left.contains("a thread of the program panicked, cooked"), "{left}");
}

#[test]
fn a_program_that_ends_at_once_can_restore_the_terminal() {
    let session = TerminalSession::start("end-at-once");
    let left = session.end();
    assert!(left.contains("EndedAtOnce, cooked"), "{left}");
}

#[test]
fn ctrl_z_and_sigtstp_do_not_stop_a_serving_process() {
    let mut session = TerminalSession::start("");
    session.press("\x1a");
    session.until("the key is refused", |screen| {
        screen.contents().contains("warn Ctrl-Z would stop the proxy: use --headless and `tlsdash watch`")
    });
    session.press("m");
    session.until("it still runs", |screen| screen.contents().contains("a mark was asked for"));
    assert!(session.parser.screen().alternate_screen());
    session.signal(Signal::TSTP);
    session.until("the signal is refused too", |screen| {
        let contents = screen.contents();
        contents.rfind("would stop the proxy") > contents.rfind("a mark was asked for")
    });
    session.press("q");
    assert!(session.end().contains("Quit, "));
}

#[test]
fn ctrl_z_in_watch_gives_the_terminal_back_and_comes_back() {
    let mut session = TerminalSession::start("watch");
    session.press("\x1a");
    session.until("the terminal is given back", |screen| !screen.alternate_screen());
    until_state(session.pid, 'T');
    session.signal(Signal::CONT);
    session.until("the dashboard is back", |screen| {
        screen.alternate_screen() && screen.contents().contains("LIVE")
    });
    session.press("q");
    let left = session.end();
    assert!(left.contains("Quit, "), "{left}");
}

#[test]
fn a_stop_from_outside_gives_the_terminal_of_a_watch_back_and_comes_back() {
    let mut session = TerminalSession::start("watch");
    session.signal(Signal::TSTP);
    session.until("the terminal is given back", |screen| !screen.alternate_screen());
    until_state(session.pid, 'T');
    session.signal(Signal::CONT);
    session.until("the dashboard is back", vt100::Screen::alternate_screen);
    session.press("q");
    let left = session.end();
    assert!(left.contains("Quit, "), "{left}");
}

#[test]
fn a_storm_of_sizes_ends_with_the_last_one_drawn() {
    let mut session = TerminalSession::start("");
    for step in 0..200_u16 {
        let size = size(step * 7 % 60, step * 31 % 200);
        session.master.as_ref().unwrap().resize(size).unwrap();
    }
    session.master.as_ref().unwrap().resize(size(48, 160)).unwrap();
    session.parser.screen_mut().set_size(cells(48), cells(160));
    session.until("the last size is drawn", |screen| {
        let contents = screen.contents();
        let last = contents.lines().last().unwrap_or_default();
        screen.cell(47, 0).is_some_and(|cell| cell.contents() == "?") && last.starts_with("? help  q quit")
    });
    session.press("q");
    let left = session.end();
    assert!(left.contains("Quit, "), "{left}");
}

#[test]
fn keys_show_at_once() {
    let mut session = TerminalSession::start("");
    session.press("?");
    session.until("the help is drawn", |screen| screen.contents().contains("show or close this help"));
    session.press("? ");
    session.until("the view is frozen", |screen| screen.contents().contains("FROZEN"));
    session.press("\x1b[B");
    session.until("a client is selected", |screen| screen.contents().contains('▶'));
    session.press(" ]");
    session.until("the new rate is in force", |screen| screen.contents().contains("OPEN loop 5,500/s"));
}

#[test]
fn a_terminals_answer_that_comes_late_presses_no_key() {
    let mut session = TerminalSession::start("");
    // Taken for keys, it would open the palette at the first colon and type the rest into it.
    session.press("\x1b]11;rgb:ffff/ffff/ffff\x1b\\?");
    session.until("the help is drawn", |screen| screen.contents().contains("show or close this help"));
}

#[test]
fn without_a_terminal_it_says_so() {
    let output = std::process::Command::new(fixture()).env("TERM", "dumb").output().unwrap();
    assert!(!output.stdout.contains(&0x1b), "no escape codes");
}

/// Reads here and not on a thread, since whoever holds a copy of the terminal keeps it alive.
#[test]
fn a_terminal_that_goes_away_ends_the_dashboard_and_costs_no_cpu() {
    let folder = std::env::temp_dir().join(format!("tlsdash-tui-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join("report");
    let pty = native_pty_system().openpty(size(24, 80)).unwrap();
    let mut command = command("");
    command.env("PTY_FIXTURE_REPORT", &report);
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let pid = Pid::from_raw(i32::try_from(child.process_id().unwrap()).unwrap()).unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut parser = vt100::Parser::new(cells(24), cells(80), 0);
    let mut buffer = [0; 4096];
    while !parser.screen().contents().contains("LIVE") {
        let n = reader.read(&mut buffer).unwrap();
        parser.process(&buffer[..n]);
    }
    let (_, ticks_before) = stat(pid);
    drop(reader);
    drop(pty.master);
    until_state(pid, 'Z');
    let (_, ticks_after) = stat(pid);
    child.wait().unwrap();
    // 100 ticks are a second. A thread that spins takes one for every 10 ms that it lives on.
    assert!(ticks_after - ticks_before < 50, "{} ticks", ticks_after - ticks_before);
    assert!(std::fs::read_to_string(&report).unwrap().starts_with("TerminalLost"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Nobody reads what is drawn from the first screen on, so that the terminal soon takes nothing more.
#[test]
fn a_blocked_terminal_loses_frames_but_no_records() {
    let folder = std::env::temp_dir().join(format!("tlsdash-tui-slow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join("report");
    let pty = native_pty_system().openpty(size(60, 200)).unwrap();
    let mut command = command("flood");
    command.env("PTY_FIXTURE_REPORT", &report);
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let pid = Pid::from_raw(i32::try_from(child.process_id().unwrap()).unwrap()).unwrap();
    until_state(pid, 'Z');
    child.wait().unwrap();
    let left = std::fs::read_to_string(&report).unwrap();
    let read = left.strip_prefix("Terminated, ").and_then(|rest| rest.split(' ').next()).unwrap();
    // Of each second the proxy's, the load's and the host's record, and those of its clients.
    assert!(read.parse::<u64>().unwrap() > 150 * 15, "{left}");
    assert!(left.ends_with(", cooked"), "{left}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_terminal_that_cannot_draw_is_left_alone() {
    let pty = native_pty_system().openpty(size(24, 80)).unwrap();
    let mut command = command("");
    command.env("TERM", "dumb");
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut output = String::new();
    // The end of a terminal is an error on Linux.
    let _ = pty.master.try_clone_reader().unwrap().read_to_string(&mut output);
    child.wait().unwrap();
    assert!(output.contains("must be a terminal that can draw") && !output.contains('\x1b'), "{output:?}");
}
