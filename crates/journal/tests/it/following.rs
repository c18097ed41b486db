//! The tail of a file: rotations, start positions, and damaged files.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::*;
use journal::{FileState, FileWriter, ReadError, Start, Tail, Timestamps};

#[test]
fn a_live_tail_loses_nothing_over_many_rotations() {
    const ENTRIES: u64 = 40_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, small()).unwrap();
    let mut tail = Tail::open(&path, Start::File).unwrap();
    let written = AtomicBool::new(false);
    let mut next = 0;
    let mut rotations = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..ENTRIES {
                writer.append(&numbered(number), Timestamps::now()).unwrap();
                if number % 50 == 0 {
                    writer.flush().unwrap();
                }
            }
            writer.close().unwrap();
            written.store(true, Ordering::Release);
        });
        wait_until("all entries", || {
            let is_last = written.load(Ordering::Acquire);
            let progress = drain(&mut tail, |entry| {
                assert_eq!(entry.text("NUMBER"), Some(next.to_string().as_str()));
                next += 1;
            });
            assert_eq!(progress.skipped_bytes, 0);
            rotations += progress.rotations;
            assert!(!is_last || next == ENTRIES, "{next} of {ENTRIES}");
            is_last
        });
    });
    assert!(rotations >= 5, "{rotations} rotations are too few to prove anything");
    assert_eq!(files(dir.path()).len() as u64, rotations + 1);
}

#[test]
fn several_rotations_between_two_polls_are_all_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, small()).unwrap();
    let mut tail = Tail::open(&path, Start::End).unwrap();
    let mut read = Vec::new();
    let mut number = 0;
    for archives in [3, 4, 7] {
        while files(dir.path()).len() <= archives {
            writer.append(&numbered(number), Timestamps::now()).unwrap();
            number += 1;
        }
        writer.flush().unwrap();
        drain(&mut tail, |entry| read.push(entry.text("NUMBER").unwrap().to_owned()));
        assert_eq!(read, numbers(0..number));
    }
    // Another run of the program is another writer, with its own sequence numbers.
    drop(writer);
    let mut writer = FileWriter::create(&path, small()).unwrap();
    writer.append(&numbered(number), Timestamps::now()).unwrap();
    writer.flush().unwrap();
    drain(&mut tail, |entry| read.push(entry.text("NUMBER").unwrap().to_owned()));
    assert_eq!(read, numbers(0..number + 1));
}

#[test]
fn a_tail_starts_at_its_start_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    for run in 0..3 {
        let mut writer = FileWriter::create(&path, small()).unwrap();
        for number in run * 10..run * 10 + 10 {
            writer.append(&numbered(number), Timestamps::now()).unwrap();
        }
        writer.close().unwrap();
    }
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..30));
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(20..30));
    let mut tail = Tail::open(&path, Start::End).unwrap();
    let mut read = Vec::new();
    let progress = drain(&mut tail, |entry| read.push(entry.text("SAME").unwrap().to_owned()));
    assert_eq!((progress.entries, progress.writer), (0, FileState::Offline));

    // New entries refer to values written before the tail started.
    let mut writer = FileWriter::create(&path, small()).unwrap();
    let mut tail_of_new = Tail::open(&path, Start::End).unwrap();
    writer.append(&numbered(30), Timestamps::now()).unwrap();
    writer.flush().unwrap();
    let mut from_now = Tail::open(&path, Start::End).unwrap();
    writer.append(&numbered(31), Timestamps::now()).unwrap();
    writer.flush().unwrap();
    for (tail, expected) in [(&mut tail, 2), (&mut tail_of_new, 2), (&mut from_now, 1)] {
        let progress = drain(tail, |entry| assert_eq!(entry.text("SAME"), Some("value")));
        assert_eq!((progress.entries, progress.writer), (expected, FileState::Online));
    }
}

#[test]
fn archives_are_readable_after_the_live_file_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    for number in 0..2 {
        let mut writer = FileWriter::create(&path, small()).unwrap();
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(Tail::open(&path, Start::File), Err(ReadError::NotFound { .. })));
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..1));
}

#[test]
fn each_kind_of_unreadable_file_has_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let open = || Tail::open(&path, Start::File).unwrap_err();
    assert!(matches!(open(), ReadError::NotFound { .. }));
    assert!(matches!(
        Tail::open(&dir.path().join("none/a.journal"), Start::Oldest),
        Err(ReadError::NotFound { .. })
    ));
    fs::write(&path, "").unwrap();
    assert!(matches!(open(), ReadError::NotAJournal { .. }));
    fs::write(&path, [b'x'; 5000]).unwrap();
    assert!(matches!(open(), ReadError::NotAJournal { .. }));
    fs::remove_file(&path).unwrap();
    let device = Tail::open(Path::new("/dev/null"), Start::File);
    assert!(matches!(device, Err(ReadError::NotAJournal { reason: "it is not a regular file", .. })));

    drop(FileWriter::create(&path, small()).unwrap());
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&u32::to_le_bytes(0b1_0100 | 1 << 9), 12).unwrap();
    let error = open();
    assert!(matches!(error, ReadError::Unsupported { .. }) && error.to_string().contains("0x200"), "{error}");
}

#[test]
fn damaged_files_cause_no_panic_hang_or_extra_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, small()).unwrap();
    for number in 0..300 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    let good = fs::read(&path).unwrap();
    // The hash tables are not read here: damage only objects and the header.
    let objects = good.len() as u64 - 90_000;
    let (mut read_at_all, mut skipped) = (0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        let mut bytes = good.clone();
        for _ in 0..=random.below(20) {
            let at = match random.below(4) {
                0 => random.below(300),
                _ => objects + random.below(90_000),
            } as usize;
            let len = (1 + random.below(64) as usize).min(bytes.len() - at);
            match random.below(4) {
                0 => bytes[at..at + len].fill(0),
                1 => bytes[at..at + len].fill(0xff),
                2 => bytes[at] ^= 1 << random.below(8),
                _ => bytes[at..at + len].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
            }
        }
        if random.below(3) == 0 {
            bytes.truncate(random.below(good.len() as u64) as usize);
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(mut tail) = Tail::open(&path, Start::File) else { continue };
        let progress = drain(&mut tail, |_| {});
        assert!(progress.entries <= 300, "seed {seed}: {progress:?}");
        assert!(progress.skipped_bytes <= skipped_bytes_max(&bytes), "seed {seed}: {progress:?}");
        read_at_all += u32::from(progress.entries > 0);
        skipped += u32::from(progress.skipped_bytes > 0);
    }
    assert!(read_at_all > 100 && skipped > 50, "{read_at_all} could be read, {skipped} with parts skipped");
}

/// Returns a closed file of 200 entries, and the offset of the 101st entry's first object, its number.
fn two_hundred(folder: &Path) -> (PathBuf, u64) {
    let path = folder.join("a.journal");
    let mut writer = FileWriter::create(&path, small()).unwrap();
    for number in 0..100 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    let middle = writer.size_bytes();
    for number in 100..200 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    (path, middle)
}

#[test]
fn entries_after_a_damaged_part_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, middle) = two_hundred(dir.path());
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff; 1000], middle).unwrap();
    let mut tail = Tail::open(&path, Start::File).unwrap();
    let mut read = Vec::new();
    let progress = drain(&mut tail, |entry| read.push(entry.text("NUMBER").unwrap().to_owned()));
    assert_eq!(read[..100], numbers(0..100));
    assert_eq!(read.last().unwrap(), "199");
    assert!(read.len() > 190, "{}", read.len());
    assert!((1000..1400).contains(&progress.skipped_bytes), "{progress:?}");
}

#[test]
fn an_object_with_an_invalid_size_loses_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (path, object) = two_hundred(dir.path());
    let file = fs::File::options().write(true).open(&path).unwrap();
    for size in [0, 15, 63, 1 << 24, 1 << 40, u64::MAX - 6, u64::MAX] {
        file.write_all_at(&size.to_le_bytes(), object + 8).unwrap();
        let mut tail = Tail::open(&path, Start::File).unwrap();
        let mut read = 0;
        let mut without_number = 0;
        let progress = drain(&mut tail, |entry| {
            read += 1;
            without_number += u64::from(entry.text("NUMBER").is_none());
        });
        // The object is the number of one entry.
        assert_eq!((read, without_number), (200, 1), "size {size}: {progress:?}");
        assert!((80..120).contains(&progress.skipped_bytes), "size {size}: {progress:?}");
    }
}

#[test]
fn a_truncated_file_reads_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (path, middle) = two_hundred(dir.path());
    fs::File::options().write(true).open(&path).unwrap().set_len(middle + 50).unwrap();
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..100));
}

#[test]
fn a_file_that_is_truncated_while_it_is_followed_delays_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (path, middle) = two_hundred(dir.path());
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    assert_eq!(drain(&mut tail, |_| {}).entries, 200);
    let file = fs::File::options().write(true).open(&path).unwrap();
    for length in [middle + 50, 100, 0] {
        file.set_len(length).unwrap();
        assert_eq!(drain(&mut tail, |_| {}).entries, 0, "{length}: nothing is read twice");
    }
    // Its host goes on in a new file, as another one does.
    fs::remove_file(&path).unwrap();
    for name in [path, dir.path().join("other.journal")] {
        let mut writer = FileWriter::create(&name, small()).unwrap();
        writer.append(&numbered(0), Timestamps::now()).unwrap();
        writer.flush().unwrap();
    }
    let mut entries = 0;
    wait_until("both files", || {
        entries += drain(&mut tail, |_| {}).entries;
        entries == 2
    });
}

#[test]
fn what_was_cut_off_counts_as_skipped_even_if_it_held_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = two_hundred(dir.path());
    let file = fs::File::options().write(true).open(&path).unwrap();
    let whole = file.metadata().unwrap().len();
    assert_eq!(drain(&mut Tail::open(&path, Start::File).unwrap(), |_| {}).skipped_bytes, 0);
    for cut in [1, 7, 8, 9, 100, 5_000] {
        file.set_len(whole - cut).unwrap();
        let mut tail = Tail::open(&path, Start::File).unwrap();
        let skipped = drain(&mut tail, |_| {}).skipped_bytes;
        assert!(skipped >= cut, "{skipped} of {cut}");
        assert_eq!(drain(&mut tail, |_| {}).skipped_bytes, 0, "counted once");
    }
}

#[test]
fn a_file_that_is_being_created_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(FileWriter::create(&path, small()).unwrap());
    let mut tail = Tail::open(&path, Start::File).unwrap();
    fs::rename(&path, dir.path().join("b.journal")).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(drain(&mut tail, |_| {}).rotations, 0);
    fs::remove_file(&path).unwrap();
    let mut writer = FileWriter::create(&path, small()).unwrap();
    writer.append(&numbered(0), Timestamps::now()).unwrap();
    writer.flush().unwrap();
    let progress = drain(&mut tail, |_| {});
    assert_eq!((progress.entries, progress.rotations), (1, 1));
}
