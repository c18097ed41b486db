//! Tests that stop a writer after every single disk operation.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../tests/common/verify.rs"]
mod verify;

use super::disk::stop;
use super::*;
use crate::{Start, Tail};

const BEGIN_US: u64 = 1_700_000_000_000_000;

/// Returns an entry with a shared value, its own values, and sometimes a new field.
fn entry(number: u64) -> EntryBuf {
    let mut entry = EntryBuf::new();
    entry.push_display("NUMBER", number);
    entry.push("SAME", b"value");
    entry.push_display("PARITY", number % 2);
    if number.is_multiple_of(4) {
        entry.push(&format!("FIELD_{number}"), b"rare");
    }
    entry
}

/// Appends entries; the first one has the time `realtime_us`.
fn append_at(writer: &mut FileWriter, realtime_us: u64, range: Range<u64>) -> Result<(), WriteError> {
    let first = range.start;
    range.into_iter().try_for_each(|number| {
        let at = Timestamps { realtime_us: realtime_us + number - first, monotonic_us: 1_000 + number };
        writer.append(&entry(number), at)
    })
}

fn append(writer: &mut FileWriter, range: Range<u64>) {
    append_at(writer, BEGIN_US + range.start, range).unwrap();
}

fn create(path: &Path) -> Result<FileWriter, WriteError> {
    FileWriter::create(path, FileOptions { size_max: 4 << 20, ..FileOptions::default() })
}

fn numbers(range: Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

fn numbers_by_tail(path: &Path) -> Vec<String> {
    let mut numbers = Vec::new();
    let Ok(mut tail) = Tail::open(path, Start::Oldest) else { return numbers };
    loop {
        let progress = tail.poll(|entry| numbers.push(entry.text("NUMBER").unwrap().to_owned())).unwrap();
        assert_eq!(progress.skipped_bytes, 0);
        if !progress.more {
            return numbers;
        }
    }
}

fn journalctl(path: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new("journalctl")
        .arg(format!("--file={}", path.display()))
        .args(arguments)
        .output()
        .expect("journalctl cannot be run: install the Debian package systemd");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn numbers_by_journalctl(path: &Path, matches: &[&str]) -> Vec<String> {
    let arguments = [&["--quiet", "-o", "cat", "--output-fields=NUMBER"], matches].concat();
    let (ok, numbers, errors) = journalctl(path, &arguments);
    assert!(ok || numbers.is_empty(), "{errors}");
    assert_eq!(errors, "");
    numbers.lines().map(str::to_owned).collect()
}

fn assert_valid(path: &Path, is_interrupted: bool) {
    if is_interrupted {
        verify::assert_valid_or_unfinished_links(path);
    } else {
        assert_eq!(verify::complaint(path), None);
    }
}

/// Reads the files of a stopped writer with both readers, and lets another writer continue them. The first
/// `flushed` entries must be there; returns how many are.
fn check_remaining(dir: &Path, flushed: u64) -> u64 {
    let path = dir.join("a.journal");
    let left = numbers_by_tail(&path);
    let count = left.len() as u64;
    assert_eq!(left, numbers(0..count));
    assert!(count >= flushed, "{count} of at least {flushed}");
    let mut by_journalctl: Vec<u64> = journals(dir)
        .iter()
        .flat_map(|file| numbers_by_journalctl(file, &["SAME=value"]))
        .map(|number| number.parse().unwrap())
        .collect();
    by_journalctl.sort_unstable();
    // It may find entries that are linked from their value, but not yet from the header.
    by_journalctl.truncate(left.len());
    assert_eq!(by_journalctl, (0..count).collect::<Vec<_>>());

    let mut writer = create(&path).unwrap();
    append(&mut writer, count..count + 2);
    writer.flush().unwrap();
    assert_eq!(numbers_by_tail(&path), numbers(0..count + 2));
    assert!(!dir.join(".a.journal.new").exists(), "a file that was begun is still there");
    count
}

fn journals(dir: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes()[0] == b'.';
    fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).filter(|path| !is_hidden(path)).collect()
}

#[test]
fn a_flush_stopped_after_any_write_keeps_earlier_entries_readable() {
    for steps in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut writer = create(&path).unwrap();
        append(&mut writer, 0..9);
        writer.flush().unwrap();
        append(&mut writer, 9..16);
        let ((), is_stopped) = stop::after(steps, || drop(writer));
        let expected = numbers(0..if is_stopped { 9 } else { 16 });
        assert_eq!(numbers_by_journalctl(&path, &[]), expected, "after step {steps}");
        assert_valid(&path, is_stopped);
        assert_eq!(check_remaining(dir.path(), 9), expected.len() as u64, "after step {steps}");
        if !is_stopped {
            assert!(steps > 10, "{steps} steps are hardly all kinds of links");
            break;
        }
    }
}

#[test]
fn a_rotation_stopped_after_any_step_keeps_flushed_entries_readable() {
    for steps in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut writer = create(&path).unwrap();
        append(&mut writer, 0..9);
        writer.flush().unwrap();
        append(&mut writer, 9..12);
        // The clock is set back, which starts the next file.
        let (_, is_stopped) = stop::after(steps, || {
            append_at(&mut writer, BEGIN_US - 10_000_000, 12..15).and_then(|()| writer.flush())?;
            writer.close()
        });
        for file in journals(dir.path()) {
            assert_valid(&file, is_stopped);
        }
        let left = check_remaining(dir.path(), 9);
        assert!([9, 12, 15].contains(&left), "{left} after step {steps}");
        if !is_stopped {
            assert_eq!((left, journals(dir.path()).len()), (15, 3));
            break;
        }
    }
}

#[test]
fn a_create_stopped_after_any_step_keeps_existing_entries_readable() {
    for steps in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut killed = create(&path).unwrap();
        append(&mut killed, 0..9);
        killed.flush().unwrap();
        append(&mut killed, 9..12);
        let ((), is_killed) = stop::after(5, || drop(killed));
        assert!(is_killed);
        let (writer, is_stopped) = stop::after(steps, || create(&path));
        assert_eq!(writer.is_err(), is_stopped);
        if writer.is_ok() {
            assert_valid(&path, false);
        }
        drop(writer);
        assert_eq!(check_remaining(dir.path(), 9), 9);
        if !is_stopped {
            break;
        }
    }
}

#[test]
fn a_partly_failed_flush_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path).unwrap();
    append(&mut writer, 0..5);
    writer.flush().unwrap();
    for number in 5..40 {
        append(&mut writer, number..number + 1);
        // Each round stops one step later.
        let (result, is_stopped) = stop::after(number as usize - 5, || writer.flush());
        assert_eq!(result.is_err(), is_stopped);
    }
    append(&mut writer, 40..41);
    writer.flush().unwrap();
    assert_eq!(numbers_by_tail(&path), numbers(0..41));
    assert_eq!(numbers_by_journalctl(&path, &["SAME=value"]), numbers(0..41));
    assert_valid(&path, false);
}

#[test]
fn a_staged_file_is_removed_only_if_it_is_an_empty_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    fs::write(dir.path().join(".a.journal.new"), "precious").unwrap();
    let refused = create(&path).unwrap_err();
    assert!(matches!(refused, WriteError::NotAJournal { .. }), "{refused}");
    assert_eq!(fs::read_to_string(dir.path().join(".a.journal.new")).unwrap(), "precious");
}

#[test]
fn a_file_appears_only_when_it_is_complete() {
    for steps in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let (writer, is_stopped) = stop::after(steps, || create(&path));
        assert_eq!(path.exists(), writer.is_ok(), "after step {steps}");
        assert_eq!(Tail::open(&path, Start::File).is_ok(), writer.is_ok());
        drop(writer);
        check_remaining(dir.path(), 0);
        if !is_stopped {
            assert!(steps > 3);
            break;
        }
    }
}
