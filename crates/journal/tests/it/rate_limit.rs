//! journald's rate limit, which applies to units only. The program becomes a unit for a while, so it has only
//! this test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::journald::{Journald, JournaldFormat};
use crate::common::not_run::say_not_run;
use crate::common::*;
use journal::{SendError, Sender};

/// The id of the message about dropped entries, `SD_MESSAGE_JOURNAL_DROPPED`.
const DROPPED: &str = "a596d6fe7bfa4994828e72309e95d61e";

/// The name of the test below.
const TEST: &str = "journald_drops_bursts_of_services_only_and_logs_how_many";

/// The number of entries sent at once: more than journald accepts, whose limit grows with the free disk
/// space.
const BURST: u64 = 500;

/// This program as a service, by its control group.
struct TestService {
    /// The root of the control groups.
    root: PathBuf,
    group: PathBuf,
    former: String,
}

impl TestService {
    /// Becomes a service, if the machine allows it.
    fn become_one(root: &Path, name: &str) -> std::io::Result<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let former = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
        let group = root.join("system.slice").join(name);
        fs::create_dir_all(&group)?;
        let service = Self { root: root.to_owned(), group, former };
        fs::write(service.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(service)
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let former = self.root.join(&self.former).join("cgroup.procs");
        fs::write(former, std::process::id().to_string()).ok();
        fs::remove_dir(&self.group).ok();
        // Another such test, or the machine's own services, may use it.
        fs::remove_dir(self.root.join("system.slice")).ok();
    }
}

/// Sends entries with these numbers, and waits for room as often as needed.
fn send_numbers(sender: &mut Sender, range: std::ops::Range<u64>) {
    for number in range {
        while let Err(error) = sender.send(&numbered(number)) {
            assert!(matches!(error, SendError::Full { .. }), "{error}");
            assert!(sender.wait(Duration::from_secs(20)), "there is no room");
        }
    }
}

fn value<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let (_, value) = fields.iter().find(|(other, _)| other == name)?;
    std::str::from_utf8(value).ok()
}

/// Starts a journald with a low rate limit, and returns a sender to it.
fn start() -> (Journald, Sender) {
    let journald = Journald::start_with(JournaldFormat::USUAL, "RateLimitIntervalSec=1s\nRateLimitBurst=10");
    let sender = Sender::open_at(&journald.socket()).unwrap();
    (journald, sender)
}

#[test]
fn journald_drops_bursts_of_services_only_and_logs_how_many() {
    let (journald, mut sender) = start();
    send_numbers(&mut sender, 0..BURST);
    wait_until("all entries", || journald.entries_with("NUMBER").len() as u64 == BURST);
    assert_eq!(journald.entries_with("N_DROPPED"), Vec::<Fields>::new());

    // A new journald, since it caches what it knows of a process.
    let (journald, mut sender) = start();
    let name = format!("journal-test-{}.service", std::process::id());
    let root = journald.control_groups().ok_or_else(|| std::io::Error::other("they cannot be mounted"));
    let _service = match root.and_then(|root| TestService::become_one(&root, &name)) {
        Ok(service) => service,
        Err(error) => {
            let why = "journald's rate limit needs root, and control groups of version 2 that can be written";
            return say_not_run(TEST, &format!("{why}: {error}"));
        }
    };
    send_numbers(&mut sender, 0..BURST);
    // The message comes with the next accepted entry.
    let mut sent = BURST;
    wait_until("a message about what was suppressed", || {
        send_numbers(&mut sender, sent..sent + 1);
        sent += 1;
        !journald.entries_with("N_DROPPED").is_empty()
    });
    let messages = journald.entries_with("N_DROPPED");
    let message = &messages[0];
    let pid = std::process::id().to_string();
    for (field, expected) in [
        ("MESSAGE_ID", DROPPED),
        // A client can forge all the others, but not this one.
        ("_TRANSPORT", "driver"),
        ("OBJECT_SYSTEMD_UNIT", &name),
        ("OBJECT_PID", &pid),
    ] {
        assert_eq!(value(message, field), Some(expected), "{field} of {message:?}");
    }
    assert_eq!(messages.len(), 1);
    let dropped: u64 = value(message, "N_DROPPED").unwrap().parse().unwrap();
    assert!(dropped > 0);
    wait_until("every entry to be stored or counted", || {
        journald.entries_with("NUMBER").len() as u64 + dropped == sent
    });
}
