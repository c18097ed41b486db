//! Measures the dashboard on a terminal: the latency of a key, and the CPU time of its threads.
//!
//! `just bench-terminal`. Runs a program with a dashboard in a pseudo-terminal of 160 by 48, samples the CPU
//! time of its threads for a minute, then presses keys. The latency is from the last byte of the key to the
//! first byte of a frame, each after a pause without drawing.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// The time until the table of clients is full and everything has been drawn once.
const SETTLING: Duration = Duration::from_secs(20);
/// The duration of the CPU measurement.
const WATCHED: Duration = Duration::from_secs(60);
/// The pause without drawing before a key.
const QUIET: Duration = Duration::from_millis(40);
/// The time limit for a key to have an effect.
const PATIENCE: Duration = Duration::from_secs(10);
const KEYS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let Some(program) = words.next() else {
        println!("nothing is measured without a program: just bench-terminal");
        return Ok(());
    };
    let size = PtySize { rows: 48, cols: 160, pixel_width: 0, pixel_height: 0 };
    let pty = native_pty_system().openpty(size)?;
    let mut command = CommandBuilder::new(program);
    command.args(words);
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    let mut child = pty.slave.spawn_command(command)?;
    drop(pty.slave);
    let frames = frames(pty.master.try_clone_reader()?);
    let mut keyboard = pty.master.take_writer()?;
    let pid = child.process_id().ok_or("the program has ended")?;

    drain(&frames, SETTLING);
    let before = cpu_ns(pid)?;
    let bytes = drain(&frames, WATCHED);
    let used = cpu_ns(pid)?;
    for (thread, ns) in used.iter().filter(|(thread, _)| thread.starts_with("dashboard")) {
        let ns = ns - before.get(thread).copied().unwrap_or(0);
        println!("{thread:<40}{:>8.2} % of a core", ns as f64 * 100.0 / WATCHED.as_nanos() as f64);
    }
    println!("{:<40}{:>8} bytes a second", "written to the terminal", bytes as u64 / WATCHED.as_secs());

    let mut took: Vec<Duration> = Vec::new();
    for _ in 0..KEYS {
        while frames.recv_timeout(QUIET).is_ok() {}
        keyboard.write_all(b"?")?;
        keyboard.flush()?;
        let pressed = Instant::now();
        frames.recv_timeout(PATIENCE)?;
        took.push(pressed.elapsed());
    }
    took.sort_unstable();
    for (name, at) in [("p50", KEYS / 2), ("p90", KEYS * 9 / 10), ("max", KEYS - 1)] {
        println!("{:<40}{:>8.1} ms", format!("key to frame, {name} of {KEYS}"), took[at].as_secs_f64() * 1e3);
    }
    keyboard.write_all(b"q")?;
    keyboard.flush()?;
    drain(&frames, Duration::from_secs(5));
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// The output, piece by piece.
fn frames(mut terminal: Box<dyn Read + Send>) -> Receiver<usize> {
    let (drawn, frames) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = terminal.read(&mut buffer) {
            if drawn.send(n).is_err() {
                return;
            }
        }
    });
    frames
}

/// Reads the output for this long, and returns its bytes.
fn drain(frames: &Receiver<usize>, time: Duration) -> usize {
    let deadline = Instant::now() + time;
    let mut bytes = 0;
    loop {
        match frames.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(n) => bytes += n,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return bytes,
        }
    }
}

/// Returns the CPU time of a process by thread name, in nanoseconds (`/proc/PID/task/TID/schedstat`).
fn cpu_ns(pid: u32) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let mut used = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = task?.path();
        let name = std::fs::read_to_string(folder.join("comm"))?;
        let schedstat = std::fs::read_to_string(folder.join("schedstat"))?;
        let ns: u64 = schedstat.split(' ').next().unwrap_or_default().parse()?;
        *used.entry(name.trim().to_owned()).or_default() += ns;
    }
    Ok(used)
}
