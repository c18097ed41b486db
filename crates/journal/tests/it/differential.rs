//! Compares what the tail reads with what `systemd-journal-reader` alone and journalctl read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use crate::common::journald::{JournaldFormat, written};
use crate::common::recompress::{LZ4, XZ, ZSTD, lz4, recompress, xz};
use crate::common::*;
use journal::{Start, Tail};
use systemd_journal_reader::JournalReader;

const ENTRIES: u64 = 90;

/// The time of an entry, and the values as text; of a repeated field the last one.
type TextEntry = (u64, BTreeMap<String, String>);

/// Reads a file with the tail: as text, and byte for byte.
fn by_tail(path: &Path) -> (Vec<TextEntry>, Vec<Fields>) {
    let (mut texts, mut exact) = (Vec::new(), Vec::new());
    let progress = drain(&mut Tail::open(path, Start::File).unwrap(), |entry| {
        let text = |(name, _): (&str, _)| (name.to_owned(), entry.text(name).unwrap().to_owned());
        texts.push((entry.realtime_us(), entry.iter().map(text).collect()));
        for (name, value) in entry.iter() {
            assert!(entry.values(name).any(|other| other == value));
            assert_eq!(entry.value(name), entry.values(name).last());
        }
        exact.push(fields_read(entry));
    });
    assert_eq!(progress.entries, texts.len() as u64);
    (texts, exact)
}

/// Reads a file with `systemd-journal-reader` alone.
fn by_library(path: &Path) -> Vec<TextEntry> {
    let mut reader = JournalReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let next = || reader.next_entry();
    let owned = |fields: &std::collections::HashMap<_, _>| -> BTreeMap<String, String> {
        let pair =
            |(name, value): (&std::rc::Rc<str>, &std::rc::Rc<str>)| (name.to_string(), value.to_string());
        fields.iter().map(pair).collect()
    };
    std::iter::from_fn(next).map(|entry| (entry.realtime, owned(&entry.fields))).collect()
}

#[test]
fn journald_files_of_every_format_read_like_library_and_journalctl() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    for (compact, keyed_hash) in [(true, true), (true, false), (false, true), (false, false)] {
        for compressed in [true, false] {
            let format = JournaldFormat { compact, keyed_hash, compressed };
            let file = written(format, ENTRIES);
            fs::write(&path, &file).unwrap();
            let (texts, exact) = by_tail(&path);
            assert!(texts.len() as u64 >= ENTRIES, "{format:?}");
            assert_eq!(texts, by_library(&path), "{format:?}");
            assert_eq!(exact, export(&path, &[]), "{format:?}");
            if !compressed {
                assert_same_with_other_compressions(&path, &file, &(texts, exact));
            }
        }
    }
}

/// The library reads neither lz4 nor xz: those files must read like the plain one.
fn assert_same_with_other_compressions(path: &Path, plain: &[u8], expected: &(Vec<TextEntry>, Vec<Fields>)) {
    let zstd = |value: &[u8]| zstd::bulk::compress(value, 3).unwrap();
    for (compression, compress) in [(ZSTD, zstd as fn(&[u8]) -> Vec<u8>), (LZ4, lz4), (XZ, xz)] {
        let mut file = plain.to_vec();
        assert!(recompress(&mut file, compression, compress).values > 20);
        fs::write(path, &file).unwrap();
        let read = by_tail(path);
        assert!(read == *expected, "compression {compression}");
        if compression == ZSTD {
            assert!(by_library(path) == read.0);
        }
    }
}

#[test]
fn our_own_files_read_like_library_and_journalctl() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = create(&path, &small());
    for number in 0..2_000_u64 {
        let mut entry = numbered(number);
        entry.push_display("HALF", number / 2);
        entry.push("EMPTY", b"");
        entry.push("EQUALS", b"a=b=c");
        entry.push("LINES", "first\nsecond \u{e9}".as_bytes());
        if number % 50 == 0 {
            entry.push("BYTES", &[0xff, number as u8, b'=', 0]);
            entry.push("TWICE", b"one");
            entry.push("TWICE", &[b't', 0xfe]);
            entry.push("LARGE", &vec![b'x'; 30_000 + number as usize]);
        }
        writer.append(&entry, journal::Timestamps::now()).unwrap();
    }
    writer.close().unwrap();
    let (texts, exact) = by_tail(&path);
    assert_eq!(texts, by_library(&path));
    assert_eq!(exact, export(&path, &[]));
}
