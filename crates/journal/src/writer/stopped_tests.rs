//! A writer that is stopped after any single step of what it does.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::{Start, Tail};

/// Entries that share some values, have some of their own, and use a field that is new now and then.
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

fn append(writer: &mut FileWriter, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let at = Timestamps { realtime_us: 1_700_000_000_000_000 + number, monotonic_us: 1_000 + number };
        writer.append(&entry(number), at).unwrap();
    }
}

fn numbers_by_tail(path: &Path) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut tail = Tail::open(path, Start::File).unwrap();
    let progress = tail.poll(|entry| numbers.push(entry.text("NUMBER").unwrap().to_owned())).unwrap();
    assert!(!progress.more);
    assert_eq!(progress.skipped_bytes, 0);
    numbers
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

#[test]
fn a_writer_stopped_after_any_write_of_a_flush_leaves_every_earlier_entry_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let options = FileOptions { size_max: 4 << 20, ..FileOptions::default() };
    let mut writer = FileWriter::create(&path, options).unwrap();
    append(&mut writer, 0..9);
    writer.flush().unwrap();
    let before: Vec<String> = (0..9).map(|number| number.to_string()).collect();
    let after: Vec<String> = (0..16).map(|number| number.to_string()).collect();

    append(&mut writer, 9..16);
    let plan = writer.image.plan();
    let steps = plan.steps();
    assert!(steps > 10, "{steps} steps are hardly all kinds of links");
    for stopped_after in 0..=steps {
        let copy = dir.path().join(format!("stopped_{stopped_after}.journal"));
        fs::copy(&path, &copy).unwrap();
        let file = File::options().write(true).open(&copy).unwrap();
        plan.apply_first(stopped_after, &file).unwrap();

        let expected = if stopped_after < steps { &before } else { &after };
        assert_eq!(&numbers_by_tail(&copy), expected, "after step {stopped_after} of {steps}");
        assert_eq!(&numbers_by_journalctl(&copy, &[]), expected, "after step {stopped_after} of {steps}");
        let matching = numbers_by_journalctl(&copy, &["SAME=value"]);
        assert!(matching.starts_with(&before), "after step {stopped_after}: {matching:?}");
        assert_clean_or_unclean_end(&copy, stopped_after < steps);
    }
}

/// The links of the flush that was cut short lead behind the end that the header knows. That is all that
/// `journalctl --verify` may find, and only then.
fn assert_clean_or_unclean_end(path: &Path, may_be_unclean: bool) {
    let (clean, _, complaint) = journalctl(path, &["--verify"]);
    let loose_ends = [
        "Invalid data object at hash entry",
        "Tail hash pointer mismatch",
        "Data object references invalid entry",
    ];
    let is_loose_end = loose_ends.iter().any(|loose_end| complaint.contains(loose_end));
    assert!(clean || may_be_unclean && is_loose_end, "{complaint}");
}

#[test]
fn a_flush_that_failed_half_way_is_right_once_it_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    append(&mut writer, 0..5);
    writer.flush().unwrap();
    for number in 5..40 {
        append(&mut writer, number..number + 1);
        let file = writer.file.try_clone().unwrap();
        let plan = writer.image.plan();
        // One step further each time, until a whole plan was carried out without the writer's knowing.
        plan.apply_first(number as usize - 5, &file).unwrap();
        writer.image.not_written();
    }
    append(&mut writer, 40..41);
    writer.flush().unwrap();
    let all: Vec<String> = (0..41).map(|number| number.to_string()).collect();
    assert_eq!(numbers_by_tail(&path), all);
    assert_eq!(numbers_by_journalctl(&path, &["SAME=value"]), all);
    assert_clean_or_unclean_end(&path, false);
}

#[test]
fn what_is_under_the_hidden_name_is_removed_only_if_it_is_a_journal_without_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    fs::write(dir.path().join(".a.journal.new"), "precious").unwrap();
    let refused = FileWriter::create(&path, FileOptions::default()).unwrap_err();
    assert!(matches!(refused, WriteError::NotAJournal { .. }), "{refused}");
    assert_eq!(fs::read_to_string(dir.path().join(".a.journal.new")).unwrap(), "precious");
}

#[test]
fn a_writer_stopped_after_any_write_of_its_creation_leaves_nothing_that_hurts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let ids = Ids { file: 1, machine: 2, boot: 3, seqnum: 4 };
    let mut image = Image::new(ids, 4 << 20, 1);
    let steps = image.plan().steps();
    image.not_written();
    for stopped_after in 0..=steps {
        let candidate = Candidate::create(&path).unwrap();
        image.plan().apply_first(stopped_after, &candidate.file).unwrap();
        image.not_written();
        let abandoned = dir.path().join("abandoned.journal");
        fs::copy(dir.path().join(".a.journal.new"), &abandoned).unwrap();
        // The end of the process would release the lock and leave the file.
        drop(candidate);
        fs::copy(&abandoned, dir.path().join(".a.journal.new")).unwrap();

        assert!(!path.exists(), "a file must not be seen before it is complete");
        assert_eq!(Tail::open(&abandoned, Start::File).is_ok(), stopped_after == steps);
        let writer = FileWriter::create(&path, FileOptions::default()).unwrap();
        assert!(!dir.path().join(".a.journal.new").exists());
        drop(writer);
        fs::remove_file(&path).unwrap();
    }
}
