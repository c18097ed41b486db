//! Tails of a journald under load: several senders at full speed, constant rotations, and removed files.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::journald::{Journald, JournaldFormat};
use crate::common::*;
use journal::{Entry, EntryBuf, SendError, Sender, Start, Tail};

const SENDERS: u64 = 3;

/// One entry in this many has the field `RARE`, so each file at first has none.
const RARE: u64 = 40;

/// The first sender requests a rotation after this many entries.
const ROTATION: u64 = 500;

/// The sender of the last entry.
const END: u64 = SENDERS;

/// The sender and number of an entry.
type SentKey = (u64, u64);

/// Sends an entry, and waits for room as often as needed.
fn send(sender: &mut Sender, entry: &EntryBuf) {
    while let Err(error) = sender.send(entry) {
        assert!(matches!(error, SendError::Full { .. }), "{error}");
        assert!(sender.wait(Duration::from_secs(20)), "there is no room");
    }
}

/// Sends numbered entries; the first is rare.
fn send_all(journald: &Journald, name: u64, entries: u64) {
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    for number in 0..entries {
        let mut entry = numbered(number);
        entry.push_display("SENDER", name);
        if number % RARE == 0 {
            entry.push_display("RARE", number);
        }
        send(&mut sender, &entry);
        if name == 0 && number % ROTATION == ROTATION / 2 {
            journald.ask_to_rotate();
        }
    }
}

/// Repeatedly opens a tail at the end, sends one entry, and waits until it is read; returns how often.
fn probe_until(journald: &Journald, is_over: &AtomicBool) -> u32 {
    let mut sender = Sender::open_at(&journald.socket()).unwrap();
    let mut probes = 0;
    while !is_over.load(Ordering::Acquire) {
        let mut tail = Tail::open(&journald.folder(), Start::End).unwrap().only_with(&["PROBE"]);
        let mut entry = EntryBuf::new();
        entry.push_display("PROBE", probes);
        send(&mut sender, &entry);
        let mut found = 0;
        wait_until("what was sent after the tail was opened at the end", || {
            drain(&mut tail, |entry| found += u32::from(entry.text("PROBE") == Some(&probes.to_string())));
            found > 0
        });
        assert_eq!(found, 1);
        probes += 1;
    }
    probes
}

/// A tail, and the entries that it read from each sender.
struct RacingReader {
    name: &'static str,
    tail: Tail,
    keys: Vec<SentKey>,
    next: HashMap<u64, u64>,
}

impl RacingReader {
    fn of(name: &'static str, tail: Tail) -> Self {
        Self { name, tail, keys: Vec::new(), next: HashMap::new() }
    }

    /// Reads the current entries, and checks their order.
    fn read(&mut self) {
        let (keys, next, name) = (&mut self.keys, &mut self.next, self.name);
        drain(&mut self.tail, |entry| {
            let Some(key) = key(entry) else { return };
            let next = next.entry(key.0).or_default();
            assert!(key.1 >= *next, "{name}: {key:?} where {next} was the least");
            *next = key.1 + 1;
            keys.push(key);
        });
    }

    /// Returns whether it has read the last entry.
    fn is_done(&self) -> bool {
        self.next.contains_key(&END)
    }
}

fn key(entry: &Entry) -> Option<SentKey> {
    let number = |name| entry.text(name).map(|text| text.parse::<u64>().unwrap());
    Some((number("SENDER")?, number("NUMBER")?))
}

/// Returns what journalctl finds at the end, sorted.
fn stored(journald: &Journald) -> Vec<SentKey> {
    let number = |fields: &Fields, name: &str| {
        let (_, value) = fields.iter().find(|(other, _)| other == name).unwrap();
        std::str::from_utf8(value).unwrap().parse().unwrap()
    };
    let entries = journald.entries_with("SENDER");
    let mut keys: Vec<SentKey> =
        entries.iter().map(|fields| (number(fields, "SENDER"), number(fields, "NUMBER"))).collect();
    keys.sort_unstable();
    keys
}

/// Runs senders and rotations against a journald. Returns what three tails read (of its folder, of its file,
/// and only rare entries), and what journalctl finds at the end.
fn race(settings: &str, entries: u64) -> ([Vec<SentKey>; 3], Vec<SentKey>) {
    let journald = Journald::start_with(JournaldFormat::USUAL, settings);
    let is_over = AtomicBool::new(false);
    let open = |path| Tail::open(path, Start::Oldest).unwrap();
    let mut readers = [
        RacingReader::of("folder", open(&journald.folder())),
        RacingReader::of("file", open(&journald.live())),
        RacingReader::of("rare", open(&journald.folder()).only_with(&["RARE"])),
    ];
    std::thread::scope(|scope| {
        let (journald, is_over) = (&journald, &is_over);
        let sending = (0..SENDERS).map(|name| scope.spawn(move || send_all(journald, name, entries)));
        let sending: Vec<_> = sending.collect();
        let probing = scope.spawn(|| probe_until(journald, is_over));
        scope.spawn(move || {
            for sender in sending {
                sender.join().unwrap();
            }
            // This entry is behind all others in the queue.
            send_all(journald, END, 1);
        });
        // A panic is caught, so that the other threads end.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("the last entry", || {
                readers.iter_mut().for_each(RacingReader::read);
                readers.iter().all(RacingReader::is_done)
            });
        }));
        is_over.store(true, Ordering::Release);
        let probes = probing.join().unwrap();
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(probes > 2, "{probes} probes prove nothing");
    });
    let stored = stored(&journald);
    let read = readers.map(|mut reader| {
        reader.keys.sort_unstable();
        reader.keys
    });
    (read, stored)
}

#[test]
fn no_entry_of_several_senders_is_lost_during_rotations() {
    const ENTRIES: u64 = 6_000;
    let (read, stored) = race("RuntimeMaxUse=4G\nRuntimeMaxFiles=100000", ENTRIES);
    let numbered = |name| (0..ENTRIES).map(move |number| (name, number));
    let all: Vec<SentKey> = (0..SENDERS).flat_map(numbered).chain([(END, 0)]).collect();
    let rare: Vec<SentKey> = all.iter().copied().filter(|(_, number)| number % RARE == 0).collect();
    assert!(stored == all, "journald lost some");
    for (read, expected) in read.iter().zip([&all, &all, &rare]) {
        let missing: Vec<_> =
            expected.iter().filter(|key| read.binary_search(key).is_err()).take(20).collect();
        assert!(read == expected, "{} of {} were read, without {missing:?}", read.len(), expected.len());
    }
}

#[test]
fn every_remaining_entry_is_read_while_old_files_are_removed() {
    let (read, stored) = race("RuntimeMaxUse=64M\nRuntimeMaxFiles=4", 6_000);
    for (read, is_rare) in read.iter().zip([false, false, true]) {
        let expected = || stored.iter().filter(|(_, number)| !is_rare || number % RARE == 0);
        let missing: Vec<_> = expected().filter(|key| read.binary_search(key).is_err()).take(20).collect();
        assert!(
            missing.is_empty(),
            "{} were read, and of {} not {missing:?}",
            read.len(),
            expected().count()
        );
    }
}
