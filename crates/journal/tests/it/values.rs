//! Exact values of entries, and their metadata.

use std::fs;

use crate::common::journald::{Journald, JournaldFormat, folder, send_varied};
use crate::common::*;
use journal::{EntryBuf, Start, Tail, Timestamps};

#[test]
fn binary_and_repeated_values_of_journald_are_exact() {
    for compact in [true, false] {
        let journald = Journald::start(JournaldFormat { compact, ..JournaldFormat::USUAL });
        let mut tail = Tail::open(&journald.live(), Start::File).unwrap();
        let (mut all, mut found) = (Vec::new(), 0);
        send_varied(&journald, 0..60);
        wait_until("the entries", || {
            drain(&mut tail, |entry| {
                found += u64::from(entry.text("NUMBER").is_some());
                all.push(fields_read(entry));
                if entry.values("TWICE").next().is_some() {
                    let mut lens: Vec<_> = entry.values("TWICE").map(<[u8]>::len).collect();
                    lens.sort_unstable();
                    // The value that was sent twice appears once, as in journalctl.
                    assert_eq!(lens, [1500, 70_000]);
                    assert_eq!(entry.value("TWICE"), entry.values("TWICE").last());
                }
            });
            found == 60
        });
        let binary =
            |value: &[u8]| all.iter().flatten().any(|(name, other)| name == "BINARY" && other == value);
        assert!(binary(b"\0\x01=\n\xff"));
        let root = journald.stop();
        let path = folder(root.path()).unwrap().join("system.journal");
        // The entries that journald wrote while stopping are missing.
        let exported = export(&path, &[]);
        assert_eq!(all, exported[..all.len()]);
    }
}

#[test]
fn entries_have_sequence_number_boot_and_monotonic_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    for number in 0..3 {
        let times = Timestamps { realtime_us: 1_700_000_000_000_000 + number, monotonic_us: 42 + number };
        writer.append(&numbered(number), times).unwrap();
    }
    writer.close().unwrap();
    let mut read = Vec::new();
    drain(&mut Tail::open(&path, Start::File).unwrap(), |entry| {
        assert_eq!(format!("{:032x}", entry.boot_id()), entry.text("_BOOT_ID").unwrap());
        read.push((entry.seqnum(), entry.monotonic_us(), entry.realtime_us() - 1_700_000_000_000_000));
    });
    assert_eq!(read, [(1, 42, 0), (2, 43, 1), (3, 44, 2)]);
}

#[test]
fn a_field_with_an_invalid_name_is_refused_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    let mut entry = EntryBuf::new();
    for name in ["FIRST_NAME", "OTHER_NAME", "THIRD_NAME"] {
        entry.push(name, b"value");
    }
    writer.append(&entry, Timestamps::now()).unwrap();
    writer.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let mut replace = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|part| part == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
    };
    replace(b"FIRST_NAME=value", b"FIRST\xffNAME=value");
    replace(b"OTHER_NAME=value", b"OTHER_NAME_value");
    fs::write(&path, &bytes).unwrap();
    let mut names = Vec::new();
    let progress = drain(&mut Tail::open(&path, Start::File).unwrap(), |entry| {
        names.extend(entry.iter().map(|(name, _)| name.to_owned()).filter(|name| !name.starts_with('_')));
    });
    assert_eq!(names, ["THIRD_NAME"]);
    // Two objects of 72 bytes plus the field, padded.
    assert_eq!(progress.skipped_bytes, 2 * 88);
}

#[test]
fn bytes_that_are_not_utf_8_are_exact_as_value_and_replaced_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    let mut entry = EntryBuf::new();
    entry.push("BYTES", b"a\xffb");
    entry.push("TEXT", "a\u{fffd}b".as_bytes());
    entry.push("EMPTY", b"");
    writer.append(&entry, Timestamps::now()).unwrap();
    writer.close().unwrap();
    drain(&mut Tail::open(&path, Start::File).unwrap(), |entry| {
        assert_eq!((entry.value("BYTES"), entry.text("BYTES")), (Some(&b"a\xffb"[..]), Some("a\u{fffd}b")));
        assert_eq!(
            (entry.value("TEXT"), entry.text("TEXT")),
            (Some("a\u{fffd}b".as_bytes()), entry.text("BYTES"))
        );
        assert_eq!((entry.value("EMPTY"), entry.text("EMPTY")), (Some(&b""[..]), Some("")));
        assert_eq!((entry.value("NONE"), entry.text("NONE"), entry.values("NONE").count()), (None, None, 0));
    });
}

#[test]
fn values_dropped_from_the_cache_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &journal::FileOptions::default());
    let mut tail = Tail::open(&path, Start::File).unwrap();
    // More than the tail caches, with another value of many entries in between.
    for number in 0..60_u64 {
        let mut entry = numbered(number);
        entry.push_display("HALF", number / 30);
        entry.push("LARGE", &vec![b'a' + (number % 26) as u8; 900_000 + number as usize]);
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    let mut read = 0;
    drain(&mut tail, |entry| {
        let expected = [read.to_string(), (read / 30).to_string(), "value".to_owned()];
        assert_eq!(["NUMBER", "HALF", "SAME"].map(|name| entry.text(name).unwrap().to_owned()), expected);
        assert_eq!(entry.value("LARGE").unwrap().len() as u64, 900_000 + read);
        read += 1;
    });
    assert_eq!(read, 60);
}
