//! The writer among existing files, other writers, and limits.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::common::*;
use journal::{
    ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryBuf, EntryFault, FileOptions, FileWriter, Start, Tail,
    Timestamps, WriteError,
};

#[test]
fn a_second_writer_is_refused_until_the_first_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut first = write_numbers(&path, 0..10);
    let refused = FileWriter::create(&path, small()).unwrap_err();
    assert!(matches!(refused, WriteError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains("another program is writing it"), "{refused}");
    // The writer keeps its lock through a rotation.
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
fn rotation_continues_sequence_numbers_and_marks_the_archive() {
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
fn a_removed_moved_or_truncated_file_is_followed_by_a_new_one() {
    type Change = fn(&Path, &Path);
    let cases: [(Change, u64, &str); 5] = [
        (|path, _| fs::remove_file(path).unwrap(), 10, "was removed"),
        (|path, old| fs::rename(path, old).unwrap(), 0, "was moved"),
        // As logrotate does with `create`.
        (
            |path, old| {
                fs::rename(path, old).unwrap();
                fs::write(path, "").unwrap();
            },
            0,
            "was moved",
        ),
        (|path, _| shorten(path, 0), 10, "was truncated"),
        (|path, _| shorten(path, 300), 10, "was truncated"),
    ];
    for (case, (change, lost, reason)) in cases.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("a.journal"), dir.path().join("old.journal"));
        let mut writer = write_numbers(&path, 0..10);
        let mut tail = Tail::open(&path, Start::File).unwrap();
        drain(&mut tail, |_| {});
        change(&path, &old);
        writer.append(&numbered(10), Timestamps::now()).unwrap();
        let loss = writer.take_loss().unwrap();
        let text = loss.to_string();
        assert!(text.contains(reason) && text.contains("10 entries"), "{case}: {text}");
        assert_eq!(loss.entries_lost(), lost, "{case}");
        writer.append(&numbered(11), Timestamps::now()).unwrap();
        assert!(writer.take_loss().is_none(), "{case}");
        writer.flush().unwrap();
        let mut read = Vec::new();
        drain(&mut tail, |entry| read.extend(entry.text("NUMBER").map(str::to_owned)));
        assert_eq!(read, numbers(10..12), "{case}: a reader goes on");
        writer.close().unwrap();
        verify(&path);
        assert_eq!(values(&path, Start::File, "NUMBER"), numbers(10..12), "{case}");
        if old.exists() {
            verify(&old);
            assert_eq!(values(&old, Start::File, "NUMBER"), numbers(0..10), "{case}");
        }
    }
}

#[test]
fn a_file_is_not_ended_in_order_if_its_entries_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let writer = write_numbers(&path, 0..10);
    fs::remove_file(&path).unwrap();
    assert!(matches!(writer.close(), Err(WriteError::Lost(loss)) if loss.entries_lost() == 10));
    let writer = write_numbers(&path, 0..10);
    fs::rename(&path, dir.path().join("old.journal")).unwrap();
    writer.close().unwrap();
    verify(&dir.path().join("old.journal"));
}

#[test]
fn a_file_in_the_place_of_a_moved_one_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("a.journal"), dir.path().join("old.journal"));
    let mut writer = write_numbers(&path, 0..10);
    fs::rename(&path, &old).unwrap();
    fs::write(&path, "a diary").unwrap();
    let refused = writer.append(&numbered(10), Timestamps::now()).unwrap_err();
    assert!(matches!(refused, WriteError::NotAJournal { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "a diary");
    fs::remove_file(&path).unwrap();
    writer.append(&numbered(10), Timestamps::now()).unwrap();
    writer.close().unwrap();
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(10..11));
}

fn shorten(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn files_that_are_not_journals_are_left_alone() {
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
fn an_unwritable_folder_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write everywhere except where the kernel forbids it.
    let folder = if fs::write(folder.join("probe"), "").is_ok() { Path::new("/proc/self") } else { &folder };
    let error = FileWriter::create(&folder.join("a.journal"), small()).unwrap_err().to_string();
    let expected = format!("{}", folder.join("a.journal").display());
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn files_are_readable_only_by_owner_and_journal_group() {
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
fn an_entry_that_cannot_be_written_whole_is_refused() {
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

    // The largest entries of both kinds fit, even in the smallest file and after rotations.
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
