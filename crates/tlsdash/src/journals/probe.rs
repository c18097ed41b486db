//! Checks that entries written to journald can be read back.

use std::time::{Duration, Instant};

use anyhow::Context;
use journal::{EntryBuf, JournaldInstance, SendError, Sender, Start, Tail};
use records::codec::Origin;
use records::ids::RunId;

/// The field that identifies the probe.
const FIELD: &str = "TLSDASH_PROBE";
/// How long journald may take to store an entry, on a slow disk or during a rotation.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two attempts to read it.
const POLL: Duration = Duration::from_millis(5);

/// Opens journald for writing, once a probe could be sent and read back. Also returns this process as journald
/// identifies it, whose numbers differ from ours in a user or PID namespace.
///
/// # Errors
/// When it takes no entries, its files cannot be read, or the probe does not appear in them.
pub(crate) fn open(instance: &JournaldInstance) -> anyhow::Result<(Sender, Origin)> {
    let mut sender = Sender::open(instance)?;
    let token = RunId::random().context("cannot draw a number for the probe")?.to_string();
    let mut tail = Tail::open_instance(instance, Start::End)?.only_with(&[&format!("{FIELD}={token}")]);
    let mut entry = EntryBuf::new();
    entry.push("MESSAGE", b"tlsdash looks whether it can read back what it writes to this journal");
    // The priority of our least important records: journald may be configured not to store it.
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
            // Another user may read the token and write it again, into a file that is read first. The earliest counts.
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

/// Sends an entry, and waits for room in the queue, which holds as few as ten.
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
    fn sending_waits_for_a_busy_journald_but_not_for_a_stuck_one() {
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
