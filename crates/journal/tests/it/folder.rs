//! The tail of a folder: several writers, archives, rotations, and files that come and go.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::journald::{Journald, JournaldFormat};
use crate::common::*;
use journal::{EntryBuf, FileState, FileWriter, ReadError, Start, Tail, Timestamps};

/// Appends entries with a writer's name and numbers, at the given time.
fn append(writer: &mut FileWriter, name: &str, numbers: std::ops::Range<u64>, realtime_us: u64) {
    for number in numbers {
        let mut entry = EntryBuf::new();
        entry.push_display("NUMBER", number);
        entry.push("WRITER", name.as_bytes());
        writer
            .append(&entry, Timestamps { realtime_us: realtime_us + number, monotonic_us: number })
            .unwrap();
    }
    writer.flush().unwrap();
}

/// Writes a file and closes it; the next one of the same name archives it.
fn write(folder: &Path, name: &str, numbers: std::ops::Range<u64>, realtime_us: u64) {
    let mut writer = create(&folder.join(format!("{name}.journal")), &small());
    append(&mut writer, name, numbers, realtime_us);
    writer.close().unwrap();
}

/// Reads the current entries as `WRITER NUMBER`, and the skipped bytes.
fn read(tail: &mut Tail) -> (Vec<String>, u64) {
    let mut read = Vec::new();
    let progress = drain(tail, |entry| {
        read.push(format!("{}{}", entry.text("WRITER").unwrap(), entry.text("NUMBER").unwrap()));
    });
    (read, progress.skipped_bytes)
}

#[test]
fn existing_files_are_read_in_order_of_time_then_live_files_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "b", 0..2, 1_000);
    write(dir.path(), "a", 0..2, 2_000);
    write(dir.path(), "b", 2..4, 3_000);
    write(dir.path(), "a", 2..4, 4_000);
    fs::write(dir.path().join("c.log"), "no journal").unwrap();
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let expected = ["b0", "b1", "a0", "a1", "b2", "b3", "a2", "a3"].map(str::to_owned);
    assert_eq!(read(&mut tail), (expected.to_vec(), 0));

    let mut c = create(&dir.path().join("c.journal"), &small());
    for round in 0..3 {
        append(&mut c, "c", round..round + 1, 5_000);
        assert_eq!(read(&mut tail).0, [format!("c{round}")]);
        // A closed file is continued in a new file.
        write(dir.path(), "a", round + 4..round + 5, 6_000);
        assert_eq!(read(&mut tail).0, [format!("a{}", round + 4)]);
    }
    assert_eq!(drain(&mut tail, |_| {}).writer, FileState::Online);
    c.close().unwrap();
    assert_eq!(drain(&mut tail, |_| {}).writer, FileState::Offline);
}

#[test]
fn a_tail_of_a_folder_starts_at_its_start_position() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a", 0..2, 1_000);
    write(dir.path(), "a", 2..4, 2_000);
    let mut b = create(&dir.path().join("b.journal"), &small());
    append(&mut b, "b", 0..2, 3_000);
    let mut of_live = Tail::open(dir.path(), Start::File).unwrap();
    let mut from_now = Tail::open(dir.path(), Start::End).unwrap();
    // Entries written and archived before the first poll also count as new.
    append(&mut b, "b", 2..4, 3_000);
    b.close().unwrap();
    write(dir.path(), "b", 4..5, 4_000);
    let expected = ["a2", "a3", "b0", "b1", "b2", "b3", "b4"].map(str::to_owned);
    assert_eq!(read(&mut of_live), (expected.to_vec(), 0));
    assert_eq!(read(&mut from_now), (expected[4..].to_vec(), 0));
}

#[test]
fn a_tail_that_starts_at_a_time_skips_files_that_end_before() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a", 0..10, 1_000);
    let unread = dir.path().join("a.journal");
    let mut bytes = fs::read(&unread).unwrap();
    bytes[300..].fill(0xff);
    fs::write(&unread, bytes).unwrap();
    write(dir.path(), "a", 10..20, 2_000);
    write(dir.path(), "a", 20..30, 3_000);
    let live = dir.path().join("a.journal");
    let named = |range: std::ops::Range<u64>| range.map(|number| format!("a{number}")).collect::<Vec<_>>();
    for path in [dir.path(), &live] {
        let (found, skipped_bytes) = read(&mut Tail::open(path, Start::Oldest).unwrap());
        assert!(found == named(10..30) && skipped_bytes > 0, "{found:?}");
        for (time, first) in [(1_010, 10), (2_013, 13), (2_020, 20), (3_025, 25), (3_029, 29)] {
            let mut tail = Tail::open(path, Start::Since(time)).unwrap();
            assert_eq!(read(&mut tail), (named(first..30), 0), "since {time}");
        }
    }
    // Later files are read whole, even if the clock was set back.
    let mut tails = [dir.path(), &live].map(|path| Tail::open(path, Start::Since(4_000)).unwrap());
    write(dir.path(), "a", 30..32, 500);
    for tail in &mut tails {
        assert_eq!(read(tail), (named(30..32), 0));
    }
}

#[test]
fn a_file_found_empty_comes_before_the_files_that_continue_it() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a", 0..1, 1_000);
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let mut expected = vec!["a0".to_owned()];
    while files(dir.path()).len() < 5 {
        let number = expected.len() as u64;
        append(&mut writer, "a", number..number + 1, 1_000);
        expected.push(format!("a{number}"));
    }
    assert_eq!(read(&mut tail), (expected, 0));
}

#[test]
fn more_files_than_steps_in_a_poll_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let small = journal::FileOptions { size_max: 0, ..small() };
    let mut writers: Vec<_> =
        (0..150).map(|number| create(&dir.path().join(format!("w{number}.journal")), &small)).collect();
    let mut tail = Tail::open(dir.path(), Start::End).unwrap();
    for round in 0..3 {
        for writer in &mut writers {
            append(writer, "w", round..round + 1, 1_000);
        }
        assert_eq!(read(&mut tail), (vec![format!("w{round}"); 150], 0));
    }
}

#[test]
fn removed_files_are_read_if_open_and_counted_if_not() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..3 {
        write(dir.path(), "a", number..number + 1, 1_000 * (number + 1));
    }
    let archives = files(dir.path());
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let size = fs::metadata(&archives[1]).unwrap().len();
    fs::remove_file(&archives[1]).unwrap();
    let (found, skipped_bytes) = read(&mut tail);
    assert_eq!((found.len(), skipped_bytes), (2, size));

    let mut writer = create(&dir.path().join("a.journal"), &small());
    append(&mut writer, "a", 3..4, 5_000);
    assert_eq!(read(&mut tail), (vec!["a3".to_owned()], 0));
    append(&mut writer, "a", 4..5, 5_000);
    for file in files(dir.path()) {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(read(&mut tail), (vec!["a4".to_owned()], 0));
    assert_eq!(read(&mut tail), (vec![], 0));
}

#[test]
fn an_empty_folder_is_followed_and_unreadable_files_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    assert_eq!(read(&mut tail), (vec![], 0));
    // A file that is being created.
    fs::write(dir.path().join("b.journal"), "").unwrap();
    assert_eq!(read(&mut tail), (vec![], 0));
    write(dir.path(), "a", 0..1, 1_000);
    assert_eq!(read(&mut tail), (vec!["a0".to_owned()], 0));
    fs::write(dir.path().join("b.journal"), [b'x'; 3000]).unwrap();
    for expected in [3000, 0] {
        assert_eq!(read(&mut tail), (vec![], expected));
    }

    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("b.journal"), [b'x'; 3000]).unwrap();
    assert!(matches!(Tail::open(other.path(), Start::Oldest), Err(ReadError::NotAJournal { .. })));
}

#[test]
fn no_entry_is_lost_or_repeated_while_several_writers_rotate() {
    const ENTRIES: u64 = 15_000;
    let dir = tempfile::tempdir().unwrap();
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let written = AtomicBool::new(false);
    let mut next = [0; 2];
    let mut rotations = 0;
    std::thread::scope(|scope| {
        let handles = [0, 1].map(|index: usize| {
            let path = dir.path().join(format!("w{index}.journal"));
            scope.spawn(move || {
                let mut writer = create(&path, &small());
                for number in 0..ENTRIES {
                    let mut entry = numbered(number);
                    entry.push_display("WRITER", index);
                    writer.append(&entry, Timestamps::now()).unwrap();
                    if number % 50 == 0 {
                        writer.flush().unwrap();
                    }
                }
                writer.close().unwrap();
            })
        });
        scope.spawn(|| {
            for handle in handles {
                handle.join().unwrap();
            }
            written.store(true, Ordering::Release);
        });
        wait_until("all entries", || {
            let is_last = written.load(Ordering::Acquire);
            let progress = drain(&mut tail, |entry| {
                let next: &mut u64 = &mut next[entry.text("WRITER").unwrap().parse::<usize>().unwrap()];
                assert_eq!(entry.text("NUMBER"), Some(next.to_string().as_str()));
                *next += 1;
            });
            assert_eq!(progress.skipped_bytes, 0);
            rotations += progress.rotations;
            is_last
        });
    });
    assert_eq!(next, [ENTRIES; 2]);
    assert!(rotations >= 4, "{rotations} rotations are too few to prove anything");
    assert_eq!(files(dir.path()).len() as u64, rotations + 1);
}

#[test]
fn a_journald_is_followed_through_rotations_and_a_kill() {
    let mut journald = Journald::start(JournaldFormat::USUAL);
    let mut tail = Tail::open(&journald.folder(), Start::Oldest).unwrap();
    let mut found = Vec::new();
    let mut number = 0;
    // Each round starts after several rotations since the last poll.
    for rotations in [0, 1, 3, 2] {
        for _ in 0..=rotations {
            if rotations > 0 {
                journald.rotate();
            }
            let mut beside = Tail::open(&journald.live(), Start::End).unwrap();
            journald.send(&[("NUMBER", number.to_string().as_bytes()), ("LONG", &[b'x'; 3000])]);
            number += 1;
            // The entry is in the file before the rotation.
            let mut is_there = false;
            wait_until("the entry", || {
                drain(&mut beside, |entry| is_there |= entry.text("NUMBER").is_some());
                is_there
            });
        }
        if rotations == 3 {
            journald.kill_and_start();
        }
        let progress = drain(&mut tail, |entry| found.extend(entry.text("NUMBER").map(str::to_owned)));
        assert_eq!(progress.skipped_bytes, 0);
        assert_eq!(found, numbers(0..number));
    }
    assert_eq!(journald.disposed_files().len(), 1);
}

#[test]
fn no_entry_of_a_journald_at_full_speed_is_lost_over_rotations() {
    follow_at_full_speed(Journald::folder);
    follow_at_full_speed(Journald::live);
}

fn follow_at_full_speed(path: impl Fn(&Journald) -> std::path::PathBuf) {
    const ENTRIES: u64 = 20_000;
    let journald = Journald::start_with(JournaldFormat::USUAL, "RuntimeMaxFileSize=1M");
    let mut tail = Tail::open(&path(&journald), Start::End).unwrap();
    let (mut next, mut rotations) = (0, 0);
    std::thread::scope(|scope| {
        // Sending blocks while journald's queue is full.
        scope.spawn(|| {
            for number in 0..ENTRIES {
                journald.send(&[("NUMBER", number.to_string().as_bytes()), ("LONG", &[b'x'; 600])]);
            }
        });
        wait_until("all entries", || {
            let progress = drain(&mut tail, |entry| {
                if let Some(number) = entry.text("NUMBER") {
                    assert_eq!(number, next.to_string());
                    next += 1;
                }
            });
            assert_eq!(progress.skipped_bytes, 0);
            rotations += progress.rotations;
            next == ENTRIES
        });
    });
    assert!(rotations >= 10, "{rotations} rotations are too few to prove anything");
}
