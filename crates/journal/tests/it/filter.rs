//! Tails that return only entries with certain fields.

use std::fs;
use std::path::Path;

use crate::common::journald::{Journald, JournaldFormat};
use crate::common::recompress::number_at;
use crate::common::*;
use journal::{EntryBuf, FileWriter, Start, Tail, Timestamps};

/// The offset in a DATA object of the link to the next value of its field.
const NEXT_OF_FIELD_AT: usize = 32;

/// Appends entries, every tenth of which matches.
fn append(writer: &mut FileWriter, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut entry = numbered(number);
        if number % 10 == 0 {
            entry.push_display("WANTED", number % 100);
        }
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
}

/// Reads the numbers of the matching entries, and the skipped bytes.
fn read(tail: &mut Tail) -> (Vec<u64>, u64) {
    let mut read = Vec::new();
    let progress = drain(tail, |entry| {
        assert_eq!(entry.text("SAME"), Some("value"), "the other fields are there");
        read.push(entry.text("NUMBER").unwrap().parse().unwrap());
    });
    assert_eq!(progress.entries, read.len() as u64);
    (read, progress.skipped_bytes)
}

/// Returns the numbers of the entries with one of these fields or values.
fn numbers_with(path: &Path, fields: &[&str]) -> Vec<u64> {
    let mut read = Vec::new();
    drain(&mut Tail::open(path, Start::Oldest).unwrap().only_with(fields), |entry| {
        read.push(entry.text("NUMBER").unwrap().parse().unwrap());
    });
    read
}

fn tens(range: std::ops::Range<u64>) -> Vec<u64> {
    range.filter(|number| number % 10 == 0).collect()
}

fn open(path: &Path) -> Tail {
    Tail::open(path, Start::Oldest).unwrap().only_with(&["NOBODYS", "WANTED"])
}

#[test]
fn only_entries_with_the_field_are_returned_and_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    append(&mut writer, 1..1000);
    // A file and its folder.
    let mut tails = [open(&path), open(dir.path())];
    for tail in &mut tails {
        assert_eq!(read(tail), (tens(1..1000), 0));
    }
    for begin in [1000, 2000, 3000] {
        append(&mut writer, begin..begin + 1000);
        for tail in &mut tails {
            assert_eq!(read(tail), (tens(begin..begin + 1000), 0));
        }
        // The next file gets the field again.
        writer.close().unwrap();
        writer = create(&path, &small());
    }
    for path in [&path, dir.path()] {
        assert_eq!(read(&mut open(path)), (tens(1..4000), 0));
    }
}

#[test]
fn a_file_that_gets_the_field_later_is_read_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    let mut tail = open(&path);
    for begin in [1, 101, 201] {
        for number in begin..begin + 100 {
            writer.append(&numbered(number), Timestamps::now()).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(read(&mut tail), (vec![], 0));
    }
    append(&mut writer, 301..400);
    assert_eq!(read(&mut tail), (tens(301..400), 0));
}

#[test]
fn a_file_without_the_field_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    for number in 0..100 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    let middle = writer.size_bytes() as usize;
    for number in 100..200 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[middle..middle + 1000].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert!(drain(&mut Tail::open(&path, Start::File).unwrap(), |_| {}).skipped_bytes >= 1000);
    // Reading the file would reveal the damage.
    assert_eq!(read(&mut open(&path)), (vec![], 0));
}

#[test]
fn a_file_with_damaged_tables_is_read_completely() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    append(&mut writer, 1..1000);
    writer.close().unwrap();
    let good = fs::read(&path).unwrap();
    let value = |text: &[u8]| good.windows(text.len()).position(|part| part == text).unwrap() - 72;
    let (first, later) = (value(b"WANTED=10"), value(b"WANTED=20"));
    assert_eq!(number_at(&good, later + NEXT_OF_FIELD_AT), first);
    let field = good.windows(6).position(|part| part == b"WANTED").unwrap() - 40;
    for (at, number) in [
        // A list that leads nowhere, to another object, and in a circle.
        (later + NEXT_OF_FIELD_AT, u64::MAX),
        (later + NEXT_OF_FIELD_AT, number_at(&good, 88) as u64),
        (later + NEXT_OF_FIELD_AT, later as u64),
        // A table without a size, at an invalid offset, and a field of another kind.
        (128, 0),
        (120, 1 << 60),
        (field, 6),
    ] {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let (read, _) = read(&mut open(&path));
        assert_eq!(read, tens(1..1000), "{number} at {at}");
    }
}

#[test]
fn matching_entries_are_found_in_every_format_of_journald() {
    for (compact, keyed_hash) in [(true, true), (false, false)] {
        let journald = Journald::start(JournaldFormat { compact, keyed_hash, compressed: true });
        let mut tail = open(&journald.live());
        let long = vec![b'x'; 5000];
        let mut found = Vec::new();
        for number in 0..60_u64 {
            let text = number.to_string();
            let mut fields = vec![("NUMBER", text.as_bytes()), ("SAME", b"value")];
            match number % 10 {
                0 => fields.push(("WANTED", b"short")),
                // A compressed value does not show its field.
                1 => fields.push(("WANTED", &long)),
                2 => fields.push(("OTHER", &long)),
                _ => {}
            }
            journald.send(&fields);
        }
        wait_until("the entries", || {
            let (read, skipped_bytes) = read(&mut tail);
            assert_eq!(skipped_bytes, 0);
            found.extend(read);
            found.len() == 12
        });
        assert_eq!(found, (0..60).filter(|number| number % 10 < 2).collect::<Vec<_>>());
    }
}

#[test]
fn too_many_values_for_the_index_are_matched_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &journal::FileOptions::default());
    let mut entry = EntryBuf::new();
    for number in 0..70_000 {
        entry.clear();
        entry.push("SAME", b"value");
        entry.push_display(if number % 100 == 0 { "OTHER" } else { "WANTED" }, number);
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(drain(&mut open(&path), |entry| assert!(entry.text("WANTED").is_some())).entries, 69_300);
}

#[test]
fn one_value_of_a_field_is_distinguished_from_similar_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    let mut tail = Tail::open(&path, Start::Oldest).unwrap().only_with(&["RUN=ab", "NOBODYS=1"]);
    let values = ["a", "ab", "abc", "b", "AB", "", "ab=", "ab"];
    for number in 0..800_u64 {
        let mut entry = numbered(number);
        entry.push("RUN", values[number as usize % 8].as_bytes());
        entry.push("OTHERRUN", b"ab");
        writer.append(&entry, Timestamps::now()).unwrap();
        if number == 300 {
            // Part of it is read before the rest is there.
            writer.flush().unwrap();
            assert_eq!(read(&mut tail).0.len(), 75);
        }
    }
    writer.close().unwrap();
    assert_eq!(read(&mut tail).0.len(), 125);
    let wanted = |number: &u64| matches!(number % 8, 1 | 7);
    assert_eq!(numbers_with(&path, &["RUN=ab"]), (0..800).filter(wanted).collect::<Vec<_>>());
    assert_eq!(numbers_with(&path, &["RUN=none"]), [0; 0]);
}

#[test]
fn few_entries_are_found_by_their_lists_and_without_them_if_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &journal::FileOptions::default());
    for number in 0..9_000_u64 {
        let mut entry = numbered(number);
        entry.push_display("RUN", number / 3_000);
        if number % 1_000 == 0 {
            entry.push("RARE", b"x");
        }
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    let of = |path: &Path| {
        let tail = Tail::open(path, Start::Oldest).unwrap();
        read(&mut tail.only_with_or_first_of(&["RARE", "NUMBER=4711"], "RUN")).0
    };
    let rare = [0, 1_000, 2_000, 3_000, 4_000, 4_711, 5_000, 6_000, 7_000, 8_000];
    assert_eq!(of(&path), [&rare[..], &[8_999]].concat(), "the last one is looked at in any case");
    let walked = |fields: &[&str]| {
        let mut tail = Tail::open(&path, Start::Oldest).unwrap().only_with(fields);
        drain(&mut tail, |_| {}).walked_bytes
    };
    assert!(walked(&["RARE"]) * 10 < walked(&["RUN"]));
    // The list of RARE=x leads astray.
    let mut bytes = fs::read(&path).unwrap();
    let value = bytes.windows(6).position(|part| part == b"RARE=x").unwrap() - 72;
    let array = u64::from_le_bytes(bytes[value + 48..value + 56].try_into().unwrap()) as usize;
    bytes[array + 24] ^= 8;
    fs::write(&path, bytes).unwrap();
    let found = of(&path);
    assert!(rare.iter().all(|number| found.contains(number)));
}

#[test]
fn a_value_is_found_where_journald_compresses_those_beside_it() {
    let journald = Journald::start(JournaldFormat { compact: true, keyed_hash: true, compressed: true });
    let long = "x".repeat(5000);
    for number in 0..60_u64 {
        let value = match number % 3 {
            0 => "short".to_owned(),
            1 => long.clone(),
            _ => format!("{long}{number}"),
        };
        journald.send(&[("NUMBER", number.to_string().as_bytes()), ("WANTED", value.as_bytes())]);
    }
    let third = |rest: u64| (0..60).filter(|number| number % 3 == rest).collect::<Vec<_>>();
    let path = journald.live();
    let of_long = format!("WANTED={long}");
    wait_until("the short ones", || numbers_with(&path, &["WANTED=short"]) == third(0));
    wait_until("the long ones", || numbers_with(&path, &[&of_long]) == third(1));
    wait_until("both", || numbers_with(&path, &[&of_long, "WANTED=short"]).len() == 40);
}

#[test]
fn other_values_of_a_field_are_not_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &journal::FileOptions::default());
    let mut entry = EntryBuf::new();
    for number in 0..70_000 {
        entry.clear();
        entry.push_display("NUMBER", number);
        entry.push_display("WANTED", number);
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(numbers_with(&path, &["WANTED=66000"]), [66_000]);
    // None of the others was decoded: this damage would have been noticed.
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(13).position(|part| part == b"NUMBER=600\0\0\0").unwrap();
    bytes[at..at + 6].copy_from_slice(b"number");
    fs::write(&path, bytes).unwrap();
    let mut tail = Tail::open(&path, Start::Oldest).unwrap().only_with(&["WANTED=66000"]);
    assert_eq!(drain(&mut tail, |_| {}).skipped_bytes, 0);
    assert!(drain(&mut Tail::open(&path, Start::Oldest).unwrap(), |_| {}).skipped_bytes > 0);
}
