//! The lines that a systemd unit wrote to the system journal.

use std::io;
use std::thread;
use std::time::Duration;

use journal::{Entry, JournaldInstance, PollProgress, ReadError, Start, Tail};
use records::codec::SuppressedMessages;

use crate::lines::health::{LineHealth, LogTransport};
use crate::log_observer::LineSource;

/// The time between two looks at a journal that has not grown.
const POLL: Duration = Duration::from_millis(20);
/// The `MESSAGE_ID` with which journald says that it dropped messages (`SD_MESSAGE_JOURNAL_DROPPED` of sd-messages.h).
const DROPPED: &str = "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e";

/// Follows the messages of a unit from now on. It stays on the thread that opened it.
#[derive(Debug)]
pub struct JournalLines {
    tail: Tail,
    unit: String,
}

impl JournalLines {
    /// Follows the messages of a unit, such as `haproxy.service` or `haproxy`, in the journal of the system.
    ///
    /// # Errors
    /// When the journal cannot be read; the error names the group that may.
    pub fn open(unit: &str) -> Result<Self, ReadError> {
        let tail = Tail::open_instance(&JournaldInstance::system(), Start::End)?;
        Ok(Self::of(tail, unit))
    }

    fn of(tail: Tail, unit: &str) -> Self {
        // As journalctl reads it.
        let unit = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
        Self { tail: tail.only_with(&[&format!("_SYSTEMD_UNIT={unit}"), DROPPED]), unit }
    }
}

impl LineSource for JournalLines {
    fn transport(&self) -> LogTransport {
        LogTransport::Journal
    }

    fn read(
        &mut self,
        health: &mut LineHealth,
        may_wait: bool,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize> {
        let Self { tail, unit } = self;
        let mut count = 0;
        let mut each = |entry: &Entry| {
            if let Some(suppressed) = SuppressedMessages::of_entry(entry) {
                if suppressed.unit == *unit {
                    health.suppressed = health.suppressed.saturating_add(suppressed.dropped);
                }
            } else if entry.text("_SYSTEMD_UNIT") == Some(unit)
                && let Some(message) = entry.value("MESSAGE")
            {
                line(health, message);
                count += 1;
            }
        };
        let PollProgress { more, .. } = tail.poll(&mut each).map_err(io::Error::other)?;
        if count == 0 && !more && may_wait {
            thread::sleep(POLL);
        }
        Ok(if more { count.max(1) } else { count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};

    fn entry(fields: &[(&str, &str)], trusted: &[(&str, &str)]) -> EntryBuf {
        let mut entry = EntryBuf::new();
        for (name, value) in fields {
            entry.push(name, value.as_bytes());
        }
        for (name, value) in trusted {
            entry.push_trusted(name, value.as_bytes());
        }
        entry
    }

    #[test]
    fn lines_are_those_of_the_unit_and_journald_says_what_it_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.journal");
        let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
        let mut lines = JournalLines::of(Tail::open(&path, Start::End).unwrap(), "haproxy");
        let dropped = |unit, transport| {
            let (_, id) = DROPPED.split_once('=').unwrap();
            let fields = [("MESSAGE_ID", id), ("N_DROPPED", "17"), ("OBJECT_SYSTEMD_UNIT", unit)];
            entry(&fields, &[("_TRANSPORT", transport)])
        };
        for written in [
            entry(&[("MESSAGE", "one")], &[("_SYSTEMD_UNIT", "haproxy.service")]),
            entry(
                &[("MESSAGE", "forged"), ("SYSTEMD_UNIT", "haproxy.service")],
                &[("_SYSTEMD_UNIT", "a.service")],
            ),
            dropped("haproxy.service", "driver"),
            dropped("haproxy.service", "journal"),
            dropped("nginx.service", "driver"),
            entry(&[("MESSAGE", "two")], &[("_SYSTEMD_UNIT", "haproxy.service")]),
        ] {
            writer.append(&written, Timestamps::now()).unwrap();
        }
        writer.flush().unwrap();
        let (mut health, mut read) = (LineHealth::default(), Vec::new());
        while lines
            .read(&mut health, false, &mut |_, line| read.push(String::from_utf8_lossy(line).into_owned()))
            .unwrap()
            > 0
        {}
        assert_eq!(read, ["one", "two"]);
        assert_eq!(health.lost(), 17, "only journald itself is believed, and only of this unit");
    }
}
