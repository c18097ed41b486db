//! Many rotations at full speed, and archives that are removed meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::*;
use journal::{FileOptions, FileWriter, Start, Tail, Timestamps};

/// Returns options for a file that rotates after about 6,000 new values.
fn smallest() -> FileOptions {
    FileOptions { size_max: 0, ..FileOptions::default() }
}

/// Writes numbered entries to `path` while calling `each_poll` repeatedly, and once more afterwards.
fn while_written(path: &std::path::Path, options: FileOptions, entries: u64, mut each_poll: impl FnMut()) {
    let mut writer = FileWriter::create(path, options).unwrap();
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..entries {
                let mut entry = numbered(number);
                for name in ["FIRST", "SECOND", "THIRD", "FOURTH"] {
                    entry.push_display(name, number);
                }
                writer.append(&entry, Timestamps::now()).unwrap();
                if number % 100 == 0 {
                    writer.flush().unwrap();
                }
            }
            writer.close().unwrap();
            written.store(true, Ordering::Release);
        });
        wait_until("the writer", || {
            let is_last = written.load(Ordering::Acquire);
            each_poll();
            is_last
        });
    });
}

#[test]
fn no_entry_is_lost_over_thirty_rotations_at_full_speed() {
    const ENTRIES: u64 = 40_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(FileWriter::create(&path, smallest()).unwrap());
    let mut tails = [&path, dir.path()].map(|path| Tail::open(path, Start::Oldest).unwrap());
    let mut found = [(0, 0_u64, 0, 0); 2];
    while_written(&path, smallest(), ENTRIES, || {
        for (tail, (entries, sum, rotations, next_seqnum)) in tails.iter_mut().zip(&mut found) {
            let progress = drain(tail, |entry| {
                assert_eq!(entry.text("NUMBER"), Some(entries.to_string().as_str()));
                assert!(entry.seqnum() > *next_seqnum);
                *next_seqnum = entry.seqnum();
                *sum += *entries;
                *entries += 1;
            });
            assert_eq!(progress.skipped_bytes, 0);
            *rotations += progress.rotations;
        }
    });
    for (entries, sum, rotations, _) in found {
        assert_eq!((entries, sum), (ENTRIES, ENTRIES * (ENTRIES - 1) / 2));
        assert!(rotations >= 30, "{rotations} rotations are too few to prove anything");
    }
}

#[test]
fn archives_removed_before_they_were_read_are_skipped() {
    const ENTRIES: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(FileWriter::create(&path, smallest()).unwrap());
    let mut tails = [&path, dir.path()].map(|path| Tail::open(path, Start::Oldest).unwrap());
    let mut last = [None; 2];
    // One or two archives are kept, and the tails poll only sometimes.
    let options = FileOptions { archives_bytes_max: Some(1 << 20), ..smallest() };
    let mut look = |tails: &mut [Tail; 2]| {
        for (tail, last) in tails.iter_mut().zip(&mut last) {
            drain(tail, |entry| {
                let number: u64 = entry.text("NUMBER").unwrap().parse().unwrap();
                assert!(last.is_none_or(|last| number > last), "{number} after {last:?}");
                *last = Some(number);
            });
        }
    };
    while_written(&path, options, ENTRIES, || look(&mut tails));
    assert_eq!(last, [Some(ENTRIES - 1); 2]);
    assert!(files(dir.path()).len() < 8, "{:?}", files(dir.path()));
}
