//! Whether what is written to journald can be read back.

use std::time::{Duration, Instant};

use anyhow::Context;
use journal::{EntryBuf, JournaldInstance, SendError, Sender, Start, Tail};
use telemetry::{Origin, RunId};

/// The field by which the probe is known again.
const FIELD: &str = "TLSDASH_PROBE";
/// Longest that journald may take to store an entry: a slow disk, or one that is being rotated.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked for.
const POLL: Duration = Duration::from_millis(5);

/// Opens journald for writing, once an entry that was sent to it could be read back; with this process as journald knows
/// it, which in a namespace of users or processes has other numbers than here.
///
/// # Errors
/// If it takes no entries, its files may not be read, or they do not get what it takes.
pub(crate) fn open(instance: &JournaldInstance) -> anyhow::Result<(Sender, Origin)> {
    let mut sender = Sender::open(instance)?;
    let token = RunId::random().context("cannot draw a number for the probe")?.to_string();
    let mut tail = Tail::open_instance(instance, Start::End)?.only_with(&[&format!("{FIELD}={token}")]);
    let mut entry = EntryBuf::new();
    entry.push("MESSAGE", b"tlsdash looks whether it can read back what it writes to this journal");
    // As the least important of our records, the figures: a journal may be told to store nothing so unimportant.
    entry.push("PRIORITY", b"7");
    entry.push("SYSLOG_IDENTIFIER", b"tlsdash");
    entry.push(FIELD, token.as_bytes());
    send(&mut sender, &entry, PATIENCE)?;
    let deadline = Instant::now() + PATIENCE;
    let mut found: Option<(u64, Origin)> = None;
    loop {
        let was_found = found.is_some();
        let progress = tail.poll(|entry| {
            let at = (entry.realtime_us(), Origin::of_entry(entry));
            // Who reads the token in the journal may write it again, into another file that is read first.
            found = Some(found.filter(|first| first.0 <= at.0).unwrap_or(at));
        })?;
        if let Some((_, origin)) = found.filter(|_| was_found && !progress.more) {
            return Ok((sender, origin));
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "journald ({instance}) took an entry that cannot be read back within {} s: does it store anything \
             (Storage=, MaxLevelStore=), and may this user read all of it (group systemd-journal)?",
            PATIENCE.as_secs()
        );
        if !progress.more {
            std::thread::sleep(POLL);
        }
    }
}

/// Sends an entry, and waits for room: the queue of a journald that is busy holds as few as ten.
fn send(sender: &mut Sender, entry: &EntryBuf, patience: Duration) -> Result<(), SendError> {
    let deadline = Instant::now() + patience;
    loop {
        match sender.send(entry) {
            Err(SendError::Full { .. }) if Instant::now() < deadline => {
                sender.wait(deadline.saturating_duration_since(Instant::now()));
            }
            sent => return sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_journald_that_is_busy_for_a_moment_is_waited_for_and_one_that_stands_still_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let journald = UnixDatagram::bind(&path).unwrap();
        let mut sender = Sender::open_at(&path).unwrap();
        let mut entry = EntryBuf::new();
        entry.push("MESSAGE", b"busy");
        while sender.send(&entry).is_ok() {}
        let still = send(&mut sender, &entry, Duration::from_millis(20));
        assert!(matches!(still, Err(SendError::Full { .. })), "{still:?}");

        let patience = Duration::from_secs(20);
        let sending = std::thread::spawn(move || send(&mut sender, &entry, patience));
        journald.recv(&mut [0; 100]).unwrap();
        sending.join().unwrap().unwrap();
    }
}
