//! The writer among other files, other writers, and limits.

#![allow(clippy::unwrap_used, reason = "this is test code, though outside of test functions")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use common::*;
use journal::{
    ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryBuf, EntryFault, FileOptions, FileWriter, Start, Tail,
    Timestamps, WriteError,
};
use rustix::process::{Resource, Rlimit};

fn write_numbers(path: &Path, range: std::ops::Range<u64>) -> FileWriter {
    let mut writer = FileWriter::create(path, small()).unwrap();
    for number in range {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
    writer
}

/// Starts one test of this program as a process of its own, for the part of it that may not happen in this one.
fn start_part(test: &str, path: &Path) -> Running {
    // A signal that the shell ignores stays ignored in the program it becomes: a file size above the limit is an
    // error then, as a full disk is.
    Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -c 0; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("JOURNAL_TEST_PART", path)
        .spawn()
        .map(Running)
        .unwrap()
}

fn part_path() -> Option<std::path::PathBuf> {
    std::env::var_os("JOURNAL_TEST_PART").map(Into::into)
}

#[test]
fn a_killed_writers_file_reads_to_its_last_flushed_entry() {
    if let Some(path) = part_path() {
        let mut writer = write_numbers(&path, 0..1234);
        writer.append(&numbered(9999), Timestamps::now()).unwrap();
        std::process::abort();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut part = start_part("a_killed_writers_file_reads_to_its_last_flushed_entry", &path);
    assert!(!part.0.wait().unwrap().success());
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..1234));
    assert_eq!(export(&path, &["SAME=value"]).len(), 1234);
    verify(&path);
    // Nobody holds the lock of the dead, and nothing of what it wrote is overwritten.
    let writer = write_numbers(&path, 1234..1240);
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..1240));
    drop(writer);
}

#[test]
fn a_writer_killed_at_any_moment_leaves_all_entries_to_some_point() {
    const TEST: &str = "a_writer_killed_at_any_moment_leaves_all_entries_to_some_point";
    if let Some(path) = part_path() {
        let mut writer = FileWriter::create(&path, small()).unwrap();
        for number in 0.. {
            writer.append(&numbered(number), Timestamps::now()).unwrap();
            if number % 3 == 0 {
                writer.flush().unwrap();
            }
        }
    }
    for entries_at_least in [1, 100, 1000, 3000, 9000] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let part = start_part(TEST, &path);
        wait_until("the first file", || path.exists());
        let mut tail = Tail::open(&path, Start::File).unwrap();
        let mut followed = 0;
        wait_until("some entries", || {
            followed += drain(&mut tail, |_| ()).entries;
            followed >= entries_at_least
        });
        drop(part);
        followed += drain(&mut tail, |_| ()).entries;
        assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..followed));
        assert!(export(&path, &[]).len() as u64 <= followed);
    }
}

/// Lets this process write files of at most this size.
fn limit_file_size(bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    rustix::process::setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn without_space_writing_fails_cleanly_and_goes_on_once_there_is_some() {
    const TEST: &str = "without_space_writing_fails_cleanly_and_goes_on_once_there_is_some";
    if let Some(path) = part_path() {
        limit_file_size(Some(1 << 20));
        let error = FileWriter::create(&path, FileOptions::default()).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert!(files(path.parent().unwrap()).is_empty(), "the failure left something behind");

        limit_file_size(Some(10 << 20));
        let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
        let mut taken = 0;
        let mut append = |writer: &mut FileWriter| {
            let mut entry = numbered(taken);
            entry.push("LARGE", taken.to_string().repeat(50_000).as_bytes());
            writer.append(&entry, Timestamps::now()).inspect(|()| taken += 1)
        };
        let mut flushed = 0;
        let error = loop {
            append(&mut writer).unwrap();
            match writer.flush() {
                Ok(()) => flushed += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_full(), "{error}");
        assert!(error.to_string().starts_with(&format!("cannot write to {}: ", path.display())), "{error}");
        assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..flushed));
        // Entries wait in memory, but not without a bound.
        let refused = (0..100).position(|_| append(&mut writer).is_err());
        assert!(refused.is_some_and(|kept| kept < 30), "{refused:?}");

        limit_file_size(None);
        append(&mut writer).unwrap();
        writer.close().unwrap();
        assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..taken));
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    assert!(start_part(TEST, &path).0.wait().unwrap().success());
    verify(&path);
}

#[test]
fn a_writer_killed_in_the_middle_of_a_rotation_leaves_everything_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(FileWriter::create(&path, small()).unwrap());
    let next = dir.path().join(".a.journal.new");
    fs::rename(&path, &next).unwrap();
    let elsewhere = dir.path().join("b.journal");
    write_numbers(&elsewhere, 0..10).close().unwrap();
    // The next file was begun, the full one archived, and then came the end.
    fs::rename(elsewhere, dir.path().join(format!("a@{:032x}-{:016x}-{:016x}.journal", 1, 1, 1))).unwrap();
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..10));
    drop(write_numbers(&path, 10..20));
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..20));
    assert_eq!(files(dir.path()).len(), 2, "the file that was begun is still there");
}

#[test]
fn a_second_writer_on_the_same_file_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut first = write_numbers(&path, 0..10);
    let refused = FileWriter::create(&path, small()).unwrap_err();
    assert!(matches!(refused, WriteError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains("another program is writing it"), "{refused}");
    // The first writer's lock goes with it through a rotation.
    let mut number = 10;
    while files(dir.path()).len() == 1 {
        first.append(&numbered(number), Timestamps::now()).unwrap();
        number += 1;
    }
    assert!(matches!(FileWriter::create(&path, small()), Err(WriteError::Locked { .. })));
    assert_eq!(files(dir.path()).len(), 2, "the refused writer left something behind");
    first.close().unwrap();
    FileWriter::create(&path, small()).unwrap();
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..number));
}

#[test]
fn a_journal_that_exists_is_archived_under_the_name_that_journald_would_give_it() {
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
fn rotation_keeps_the_seqnum_id_continues_the_numbers_and_marks_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = write_numbers(&path, 0..1);
    let mut number = 1;
    while files(dir.path()).len() < 4 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
        number += 1;
    }
    writer.close().unwrap();
    let mut next = 1;
    let mut ids = Vec::new();
    let mut archives = files(dir.path());
    archives.rotate_left(1);
    for file in &archives {
        verify(file);
        let header = String::from_utf8(journalctl(file, &["--header"])).unwrap();
        let field = |name: &str| header.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        ids.push(field("Sequential number ID:").to_owned());
        let seqnum = |name: &str| field(name).split(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(seqnum("Head sequential number:"), next);
        next = seqnum("Tail sequential number:") + 1;
        let is_live = *file == path;
        assert_eq!(field("State:"), if is_live { "OFFLINE" } else { "ARCHIVED" });
        assert!(fs::metadata(file).unwrap().len() <= 4 << 20);
    }
    assert_eq!(next, number + 1);
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..number));
}

#[test]
fn a_file_that_was_removed_is_begun_anew_at_the_next_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = write_numbers(&path, 0..10);
    fs::remove_file(&path).unwrap();
    let mut number = 10;
    while !path.exists() {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
        number += 1;
    }
    writer.close().unwrap();
    assert_eq!(files(dir.path()), [path.as_path()]);
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(number - 1..number));
}

#[test]
fn what_is_no_journal_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let create = |name: &str| FileWriter::create(&at(name), small()).unwrap_err();

    fs::write(at("text.journal"), "a diary").unwrap();
    assert!(matches!(create("text.journal"), WriteError::NotAJournal { .. }));
    assert_eq!(fs::read_to_string(at("text.journal")).unwrap(), "a diary");

    fs::create_dir(at("folder.journal")).unwrap();
    assert!(matches!(create("folder.journal"), WriteError::NotRegular { what: "a folder", .. }));
    symlink(at("elsewhere"), at("link.journal")).unwrap();
    assert!(matches!(create("link.journal"), WriteError::NotRegular { what: "a symbolic link", .. }));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket.journal")).unwrap();
    assert!(matches!(create("socket.journal"), WriteError::NotRegular { what: "a socket", .. }));

    assert!(matches!(create("none/a.journal"), WriteError::NoFolder { .. }));
    for name in ["a.log", "a@b.journal", ".journal"] {
        assert!(matches!(create(name), WriteError::Name { .. }), "{name}");
    }
    assert_eq!(files(dir.path()).len(), 4, "something was left behind");
}

#[test]
fn an_empty_file_is_replaced_and_a_journal_with_a_damaged_header_put_aside() {
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

#[test]
fn a_folder_that_may_not_be_written_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write anywhere but where the kernel itself says no.
    let folder = if fs::write(folder.join("probe"), "").is_ok() { Path::new("/proc/self") } else { &folder };
    let error = FileWriter::create(&folder.join("a.journal"), small()).unwrap_err().to_string();
    let expected = format!("{}", folder.join("a.journal").display());
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn files_are_readable_by_their_owner_and_at_most_the_journals_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    drop(write_numbers(&path, 0..1));
    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    let has_group =
        fs::read_to_string("/etc/group").unwrap().lines().any(|l| l.starts_with("systemd-journal:"));
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    assert_eq!(mode, if is_root && has_group { 0o640 } else { 0o600 });
}

#[test]
fn an_entry_that_cannot_be_written_whole_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions { common: EntryBuf::new(), ..small() }).unwrap();
    let size = writer.size_bytes();
    let mut refuse = |entry: &EntryBuf| match writer.append(entry, Timestamps::now()) {
        Err(WriteError::Entry { fault, .. }) => fault,
        other => panic!("{other:?}"),
    };
    let mut entry = EntryBuf::new();
    assert_eq!(refuse(&entry), EntryFault::Empty);
    entry.push("GOOD", b"1");
    entry.push("bad", b"1");
    assert_eq!(refuse(&entry), EntryFault::FieldName("bad".to_owned()));
    entry.clear();
    entry.push("LARGE", &vec![0; ENTRY_BYTES_MAX]);
    assert_eq!(refuse(&entry), EntryFault::TooLarge);
    entry.clear();
    (0..=ENTRY_FIELDS_MAX).for_each(|index| entry.push("MANY", &index.to_le_bytes()));
    assert_eq!(refuse(&entry), EntryFault::TooManyFields);
    assert_eq!(writer.size_bytes(), size);

    // The largest entries of both kinds fit, also into the smallest file and over its rotations.
    for round in 0..4 {
        entry.clear();
        entry.push("LARGE", &vec![round; ENTRY_BYTES_MAX - "LARGE=".len()]);
        writer.append(&entry, Timestamps::now()).unwrap();
        entry.clear();
        (0..ENTRY_FIELDS_MAX).for_each(|i| entry.push(&format!("F{i}"), &[round]));
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    for file in files(dir.path()) {
        verify(&file);
    }
}

#[test]
fn the_oldest_archives_make_room_and_nothing_else_does() {
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
