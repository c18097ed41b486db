//! Lines on standard error.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use records::text::clean;
use records::text::quantity::counted;

/// How long a program that serves waits for a reader of standard error.
const PATIENCE: Duration = Duration::from_millis(200);
/// What a pipe takes without waiting, once it can be written to.
const PIECE_BYTES: usize = 4096;

static DROPS: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static WRITING: Mutex<()> = Mutex::new(());

/// From now on drops, and counts, lines that standard error does not take soon: a reader that has stopped, such as a
/// full collector of logs, must not hold up a program that serves.
pub(crate) fn drop_unread() {
    DROPS.store(true, Ordering::Relaxed);
}

/// Prints one line on standard error, made printable, since it may quote peers, paths and files. A closed standard
/// error is ignored.
pub(crate) fn say(line: impl Display) {
    let line = format!("tlsdash: {}\n", clean::line(&line.to_string()));
    if !DROPS.load(Ordering::Relaxed) {
        let _ = std::io::stderr().write_all(line.as_bytes());
    } else if write_soon(&line).is_none() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes a line; `None` if standard error does not take it in time.
fn write_soon(line: &str) -> Option<()> {
    let deadline = Instant::now() + PATIENCE;
    let _writing = loop {
        match WRITING.try_lock() {
            Ok(guard) => break guard,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    };
    let dropped = DROPPED.load(Ordering::Relaxed);
    let deadline = if dropped == 0 { deadline } else { Instant::now() };
    if dropped > 0 {
        let missing = format!("tlsdash: {} missing: standard error was not read\n", counted(dropped, "line"));
        write_piece(missing.as_bytes(), deadline)?;
        DROPPED.fetch_sub(dropped, Ordering::Relaxed);
    }
    line.as_bytes().chunks(PIECE_BYTES).try_for_each(|piece| write_piece(piece, deadline))
}

fn write_piece(piece: &[u8], deadline: Instant) -> Option<()> {
    let stderr = rustix::stdio::stderr();
    tui::takes_output(&stderr, deadline.saturating_duration_since(Instant::now())).then(|| {
        // Without the lock of the library, which a blocked thread may hold.
        let _ = rustix::io::write(stderr, piece);
    })
}

/// Replaces the last line of a terminal. A closed terminal is not a failure.
pub(crate) fn rewrite_line(line: &str) {
    // Returns to the first column and erases the rest of the line.
    let _ = write!(std::io::stderr(), "\r\x1b[K{line}").and_then(|()| std::io::stderr().flush());
}
