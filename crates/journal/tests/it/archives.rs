//! Archives: when a file becomes one, which are kept, and which are left alone.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::*;
use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn an_existing_journal_is_archived_under_journalds_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    write_numbers(&path, 0..10).close().unwrap();
    let header = String::from_utf8(journalctl(&path, &["--header"])).unwrap();
    let id = header.lines().find_map(|line| line.strip_prefix("Sequential number ID: ")).unwrap();
    drop(write_numbers(&path, 10..12));
    let names: Vec<_> =
        files(dir.path()).iter().map(|f| f.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], "a.journal");
    let start = format!("a@{id}-0000000000000001-000");
    assert!(names[1].starts_with(&start) && names[1].ends_with(".journal"), "{} is not {start}…", names[1]);
    verify(&dir.path().join(&names[1]));
}

#[test]
fn a_writer_killed_during_a_rotation_leaves_everything_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(FileWriter::create(&path, small()).unwrap());
    let next = dir.path().join(".a.journal.new");
    fs::rename(&path, &next).unwrap();
    let elsewhere = dir.path().join("b.journal");
    write_numbers(&elsewhere, 0..10).close().unwrap();
    // The writer was killed after the next file was created and the full one archived.
    fs::rename(elsewhere, dir.path().join(format!("a@{:032x}-{:016x}-{:016x}.journal", 1, 1, 1))).unwrap();
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..10));
    drop(write_numbers(&path, 10..20));
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..20));
    assert_eq!(files(dir.path()).len(), 2, "the file that was begun is still there");
}

#[test]
fn an_empty_file_is_replaced_and_a_damaged_journal_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    File::create(&path).unwrap();
    drop(write_numbers(&path, 0..3));
    assert_eq!(files(dir.path()).len(), 1);

    let mut damaged = fs::read(&path).unwrap();
    damaged[16] = 77;
    fs::write(&path, &damaged).unwrap();
    drop(write_numbers(&path, 3..5));
    let aside = files(dir.path()).into_iter().find(|file| file.extension().unwrap() == "journal~").unwrap();
    assert_eq!(fs::read(aside).unwrap(), damaged);
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(3..5));
}

/// Returns times this long before now.
fn before_now(ago: Duration) -> Timestamps {
    let now = Timestamps::now();
    Timestamps { realtime_us: now.realtime_us - ago.as_micros() as u64, ..now }
}

/// Writes a file of one entry with the given time.
fn write_one(path: &Path, options: FileOptions, at: Timestamps) {
    let mut writer = FileWriter::create(path, options).unwrap();
    writer.append(&numbered(1), at).unwrap();
    writer.close().unwrap();
}

/// Lists the other files of the folder, ordered by the times at the ends of their names.
fn beside(path: &Path) -> Vec<PathBuf> {
    let mut beside: Vec<_> = files(path.parent().unwrap()).into_iter().filter(|file| file != path).collect();
    beside.sort_by_key(|file| file.to_str().unwrap().rsplit('-').next().map(str::to_owned));
    beside
}

#[test]
fn archives_are_removed_when_their_last_entry_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    for ago in [10 * DAY, 2 * DAY, 23 * HOUR, HOUR] {
        write_one(&path, small(), before_now(ago));
    }
    // All were modified today.
    write_one(&path, small(), Timestamps::now());
    let all = beside(&path);
    assert_eq!(all.len(), 4, "without a bound all are kept");
    let kept_a_day = FileOptions { archives_age_max: Some(DAY), ..small() };
    let mut writer = FileWriter::create(&path, kept_a_day).unwrap();
    assert_eq!(beside(&path).len(), 3);
    for is_kept in [(&all[0], false), (&all[1], false), (&all[2], true), (&all[3], true)] {
        assert_eq!(is_kept.0.exists(), is_kept.1, "{is_kept:?}");
    }
    // Archives are also removed at a rotation; here the clock was set back.
    let set_back = Timestamps { monotonic_us: Timestamps::now().monotonic_us + 1, ..before_now(2 * DAY) };
    writer.append(&numbered(1), before_now(DAY)).unwrap();
    writer.append(&numbered(1), set_back).unwrap();
    assert_eq!(beside(&path).len(), 3, "what just ended more than a day ago is removed");
}

#[test]
fn retention_keeps_files_that_this_writer_did_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let other = dir.path().join("other.journal");
    for at in [before_now(10 * DAY), before_now(9 * DAY)] {
        write_one(&other, small(), at);
        write_one(&path, small(), at);
    }
    let bytes = fs::read(&path).unwrap();
    let name = |number: u128| dir.path().join(format!("a@{number:032x}-{number:016x}-{number:016x}.journal"));
    fs::write(name(1), "a diary").unwrap();
    // A journal, but not the one in its name.
    fs::write(name(2), &bytes).unwrap();
    symlink(&other, name(3)).unwrap();
    fs::create_dir(name(4)).unwrap();
    fs::write(dir.path().join("a@1-2-3.journal"), &bytes).unwrap();
    fs::write(dir.path().join("a@0001-0002.journal~"), &bytes).unwrap();
    // A file of a future format.
    let mut newer = bytes;
    newer[13] |= 0x80;
    newer[72..88].fill(5);
    let seqnum_id = "05".repeat(16);
    let realtime = u64::from_le_bytes(newer[184..192].try_into().unwrap());
    let newer_path = dir.path().join(format!("a@{seqnum_id}-{:016x}-{realtime:016x}.journal", 1));
    fs::write(&newer_path, &newer).unwrap();

    let kept = beside(&path).len() - 1;
    let nothing = FileOptions { archives_bytes_max: Some(0), archives_age_max: Some(DAY), ..small() };
    drop(FileWriter::create(&path, nothing).unwrap());
    assert_eq!(beside(&path).len(), kept);
    assert_eq!(fs::read(newer_path).unwrap(), newer);
}

#[test]
fn a_clock_set_back_neither_removes_archives_nor_keeps_them_forever() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let now = Timestamps::now();
    let future = SystemTime::now() + 1000 * DAY;
    let in_future = Timestamps { realtime_us: now.realtime_us + (1000 * DAY).as_micros() as u64, ..now };
    write_one(&path, small(), in_future);
    File::options().write(true).open(&path).unwrap().set_modified(future).unwrap();
    let kept_a_day = FileOptions { archives_age_max: Some(DAY), ..small() };
    drop(FileWriter::create(&path, kept_a_day.clone()).unwrap());
    let archive = beside(&path).pop().expect("it was removed for what a clock said");
    // It ages from now on.
    assert!(fs::metadata(&archive).unwrap().modified().unwrap() < future - 999 * DAY);
    let file = File::options().write(true).open(&archive).unwrap();
    for (ago, is_kept) in [(23 * HOUR, true), (25 * HOUR, false)] {
        file.set_modified(SystemTime::now() - ago).unwrap();
        drop(FileWriter::create(&path, kept_a_day.clone()).unwrap());
        assert_eq!(archive.exists(), is_kept);
    }
}

#[test]
fn a_file_is_archived_at_its_maximum_age() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer =
        FileWriter::create(&path, FileOptions { age_max: Some(HOUR), ..FileOptions::default() }).unwrap();
    let begin = Timestamps::now();
    let mut archived = Vec::new();
    for (number, minutes) in [0, 30, 59, 60, 61, 90, 121, 122, 10_000].into_iter().enumerate() {
        let later_us = minutes * 60_000_000;
        let at = Timestamps {
            realtime_us: begin.realtime_us + later_us,
            monotonic_us: begin.monotonic_us + later_us,
        };
        writer.append(&numbered(number as u64), at).unwrap();
        archived.push(beside(&path).len());
    }
    assert_eq!(archived, [0, 0, 0, 0, 1, 1, 1, 2, 3]);
    writer.close().unwrap();
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..9));
    for file in files(dir.path()) {
        verify(&file);
    }
}

#[test]
fn a_clock_set_back_starts_the_next_file_and_times_never_decrease() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    let mut archived = Vec::new();
    let second = 1_000_000;
    let times = [
        (100 * second, 10 * second),
        // Appended late; then by threads that read their clocks one after the other.
        (95 * second, 5 * second),
        (100 * second - 5, 10 * second + 3),
        (101 * second, 11 * second),
        // Set back twice.
        (50 * second, 12 * second),
        (51 * second, 13 * second),
        (1, 14 * second),
        (2 * second, 15 * second),
    ];
    for (number, (realtime_us, monotonic_us)) in times.into_iter().enumerate() {
        writer.append(&numbered(number as u64), Timestamps { realtime_us, monotonic_us }).unwrap();
        archived.push(beside(&path).len());
    }
    assert_eq!(archived, [0, 0, 0, 0, 1, 1, 2, 2]);
    writer.close().unwrap();
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..8));
    let mut tail = Tail::open(&path, Start::Oldest).unwrap();
    let mut realtime_us = Vec::new();
    drain(&mut tail, |entry| realtime_us.push(entry.realtime_us()));
    let expected = [100, 100, 100, 101, 50, 51, 0, 2].map(|seconds| (seconds * second).max(1));
    assert_eq!(realtime_us, expected);
    for file in files(dir.path()) {
        verify(&file);
    }
    // A tail that starts at a time misses nothing because of the times in the headers.
    assert_eq!(values(&path, Start::Since(60 * second), "NUMBER"), numbers(0..4));
}

/// Returns files that may already be at the path.
fn earlier(dir: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let path = dir.join("earlier.journal");
    let mut writer = write_numbers(&path, 0..500);
    let killed = fs::read(&path).unwrap();
    writer.append(&numbered(500), Timestamps::now()).unwrap();
    writer.close().unwrap();
    let closed = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = closed.clone();
        change(&mut bytes);
        bytes
    };
    vec![
        ("half of it", changed(&|bytes| bytes.truncate(bytes.len() - 30_000))),
        ("its header", changed(&|bytes| bytes.truncate(272))),
        ("a part of its header", changed(&|bytes| bytes.truncate(100))),
        ("three bytes", changed(&|bytes| bytes.truncate(3))),
        ("garbage behind the signature", changed(&|bytes| bytes[8..272].fill(0xa5))),
        ("zeros instead of a header", changed(&|bytes| bytes[..4096].fill(0))),
        ("a future state", changed(&|bytes| bytes[16] = 3)),
        ("a future format", changed(&|bytes| bytes[14] |= 1)),
        ("a future feature", changed(&|bytes| bytes[11] |= 1)),
        ("killed", killed),
        ("closed", closed),
    ]
}

#[test]
fn any_existing_journal_is_kept_byte_for_byte_and_still_read() {
    let dir = tempfile::tempdir().unwrap();
    for (what, bytes) in earlier(dir.path()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        fs::write(&path, &bytes).unwrap();
        let read_alone = Tail::open(&path, Start::File).map(|mut tail| drain(&mut tail, |_| {}).entries);
        let everything_goes = FileOptions { archives_bytes_max: Some(bytes.len() as u64), ..small() };
        let mut writer = FileWriter::create(&path, everything_goes).unwrap();
        let aside = beside(&path);
        assert_eq!(aside.len(), 1, "{what}");
        assert_eq!(fs::read(&aside[0]).unwrap(), bytes, "{what}");
        let mut own = EntryBuf::new();
        own.push("OWN", b"1");
        writer.append(&own, Timestamps::now()).unwrap();
        writer.close().unwrap();
        assert_eq!(values(&path, Start::File, "OWN"), ["1"], "{what}");
        let mut in_folder = Tail::open(folder.path(), Start::Oldest).unwrap();
        let entries = drain(&mut in_folder, |_| {}).entries;
        assert_eq!(entries, read_alone.unwrap_or(0) + 1, "{what}");
    }
}

#[test]
fn an_existing_archive_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    write_numbers(&path, 0..5).close().unwrap();
    drop(write_numbers(&path, 5..8));
    let archive = beside(&path).pop().unwrap();
    let bytes = fs::read(&archive).unwrap();
    // Somebody restores the older file.
    fs::remove_file(&path).unwrap();
    fs::copy(&archive, &path).unwrap();
    for round in 1..3 {
        drop(write_numbers(&path, 5..8));
        let all = beside(&path);
        assert_eq!(all.len(), 1 + round);
        assert!(all.iter().all(|file| fs::read(file).unwrap() == bytes));
        assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..8));
        fs::remove_file(&path).unwrap();
        fs::copy(&archive, &path).unwrap();
    }
}

#[test]
fn only_the_oldest_archives_are_removed_for_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.journal");
    let other = folder.path().join("other.journal");
    let begin = |path: &Path, archives_bytes_max| {
        let options = FileOptions { size_max: 4 << 20, archives_bytes_max, ..FileOptions::default() };
        let mut writer = FileWriter::create(path, options).unwrap();
        let mut entry = EntryBuf::new();
        entry.push("MESSAGE", b"one");
        writer.append(&entry, Timestamps::now()).unwrap();
        writer.close().unwrap();
        fs::metadata(path).unwrap().len()
    };
    let archives = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut kept: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("kept@")).collect();
        kept.sort();
        kept
    };
    begin(&other, None);
    begin(&other, None);
    let size = (0..5).map(|_| begin(&path, None)).max().unwrap();
    assert_eq!(archives().len(), 4, "without a bound all are kept");
    begin(&path, Some(2 * size));
    assert_eq!(archives().len(), 2, "the newest that fit are kept");
    begin(&path, Some(0));
    assert_eq!(archives().len(), 0);
    assert!(path.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "others are left alone");
}
