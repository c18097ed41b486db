//! Sends entries to a real journald; each test starts its own.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::journald::{Journald, JournaldFormat};
use crate::common::*;
use journal::{ENTRY_BYTES_MAX, EntryBuf, JournaldInstance, SendError, Sender};

/// A timeout that only an error reaches.
const LONG: Duration = Duration::from_secs(20);

/// Sends, and waits for room as often as needed.
fn send_patiently(sender: &mut Sender, entry: &EntryBuf) {
    loop {
        match sender.send(entry) {
            Ok(()) => return,
            Err(SendError::Full { .. }) => assert!(sender.wait(LONG), "there is no room"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until journald has stored this many numbered entries, and returns the numbers.
fn numbers_stored(journald: &Journald, count: usize) -> Vec<String> {
    let mut stored = Vec::new();
    wait_until("the entries", || {
        stored = journald.entries_with("NUMBER");
        stored.len() >= count
    });
    stored.iter().map(|fields| value(fields, "NUMBER")).collect()
}

fn value(fields: &Fields, name: &str) -> String {
    let (_, value) = fields.iter().find(|(other, _)| other == name).unwrap();
    String::from_utf8(value.clone()).unwrap()
}

#[test]
fn values_of_any_bytes_are_stored_as_sent() {
    let journald = Journald::start(JournaldFormat::USUAL);
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    let mut sent = Vec::new();
    for (number, bytes) in [
        b"a line\nFORGED=1\nMESSAGE=not this one".as_slice(),
        b"\0",
        b"\xff\xfe\x80",
        b"=",
        b"",
        b"\n",
        b"\n\n",
        b"FORGED\n\x01\0\0\0\0\0\0\0x\n",
        &(0..=255).collect::<Vec<u8>>(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut entry = EntryBuf::new();
        entry.push_display("NUMBER", number);
        entry.push("VALUE", bytes);
        entry.push("TWICE", b"first");
        entry.push("TWICE", bytes);
        entry.push("EMPTY", b"");
        send_patiently(&mut sender, &entry);
        sent.push(fields_of(&entry, &EntryBuf::new()));
    }
    numbers_stored(&journald, sent.len());
    let mut stored = journald.entries_with("NUMBER");
    for fields in &mut stored {
        assert_eq!(value(fields, "_PID"), std::process::id().to_string());
        assert_eq!(value(fields, "_TRANSPORT"), "journal");
        fields.retain(|(name, _)| !name.starts_with('_'));
    }
    assert_eq!(stored, sent);
}

#[test]
fn the_largest_entry_is_stored_whole() {
    let journald = Journald::start(JournaldFormat::USUAL);
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    let mut random = Random(7);
    let value: Vec<u8> = (0..ENTRY_BYTES_MAX - 30).map(|_| random.below(256) as u8).collect();
    let mut entry = EntryBuf::new();
    entry.push("NUMBER", b"1");
    entry.push("LARGE", &value);
    assert_eq!(entry.fault(), None);
    sender.send(&entry).unwrap();
    send_patiently(&mut sender, &numbered(2));
    assert_eq!(numbers_stored(&journald, 2), ["1", "2"]);
    let stored = journald.entries_with("LARGE");
    let (_, large) = stored[0].iter().find(|(name, _)| name == "LARGE").unwrap();
    assert!(*large == value, "{} of {} bytes, or not the same ones", large.len(), value.len());
}

#[test]
fn a_suspended_journald_blocks_no_sender_and_loses_no_entry() {
    let journald = Journald::start(JournaldFormat::USUAL);
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    journald.pause();
    let mut accepted = 0;
    while accepted < 100_000 {
        match sender.send(&numbered(accepted)) {
            Ok(()) => accepted += 1,
            Err(SendError::Full { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..100_000).contains(&accepted), "{accepted}");
    let mut large = numbered(accepted);
    large.push("LARGE", &vec![0; 100_000]);
    assert!(matches!(sender.send(&large), Err(SendError::Full { .. })));
    assert!(!sender.wait(Duration::from_millis(50)));
    journald.resume();
    assert!(sender.wait(LONG));
    send_patiently(&mut sender, &numbered(accepted));
    assert_eq!(numbers_stored(&journald, accepted as usize + 1), numbers(0..accepted + 1));
}

#[test]
fn a_restarted_journald_gets_the_next_entry() {
    let mut journald = Journald::start(JournaldFormat::USUAL);
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    (0..20).for_each(|number| send_patiently(&mut sender, &numbered(number)));
    numbers_stored(&journald, 20);
    journald.kill_and_start();
    sender.send(&numbered(20)).unwrap();
    (21..40).for_each(|number| send_patiently(&mut sender, &numbered(number)));
    assert_eq!(numbers_stored(&journald, 40), numbers(0..40));
}

#[test]
fn entries_are_refused_without_journald_and_accepted_ones_are_kept() {
    let mut journald = Journald::start(JournaldFormat::USUAL);
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    send_patiently(&mut sender, &numbered(0));
    numbers_stored(&journald, 1);
    journald.kill();
    for number in 1..10 {
        let refused = sender.send(&numbered(number));
        assert!(matches!(refused, Err(SendError::Absent { .. })), "{refused:?}");
    }
    // It keeps sending while the new journald starts.
    let thread = std::thread::spawn(move || {
        let mut accepted = Vec::new();
        let mut number = 10;
        wait_until("a hundred entries", || {
            match sender.send(&numbered(number)) {
                Ok(()) => accepted.push(number.to_string()),
                Err(SendError::Full { .. } | SendError::Absent { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            number += 1;
            accepted.len() == 100
        });
        accepted
    });
    journald.restart();
    let accepted = thread.join().unwrap();
    let stored: HashSet<_> = numbers_stored(&journald, 101).into_iter().collect();
    let expected = accepted.into_iter().chain(["0".to_owned()]).collect();
    assert_eq!(stored, expected);
}

#[test]
fn a_missing_journald_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let error = |path: &PathBuf| Sender::open_at(path).unwrap_err().to_string();
    assert!(error(&path).contains("is journald running there? No such file"), "{}", error(&path));
    // A killed journald leaves its socket behind.
    drop(std::os::unix::net::UnixDatagram::bind(&path).unwrap());
    assert!(error(&path).contains("is journald running there? Connection refused"), "{}", error(&path));

    let instance = JournaldInstance::namespace(&format!("journal-test-{}", std::process::id())).unwrap();
    let absent = Sender::open(&instance).unwrap_err();
    assert!(matches!(absent, SendError::Absent { .. }), "{absent:?}");
    assert!(absent.to_string().contains(&instance.socket().display().to_string()), "{absent}");
}
