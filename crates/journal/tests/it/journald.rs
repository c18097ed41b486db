//! Files of a real journald; each test starts its own.

use std::fs;
use std::path::Path;

use crate::common::journald::{Journald, JournaldFormat, folder, is_same, send_varied, written};
use crate::common::recompress::{LZ4, XZ, lz4, recompress, xz};
use crate::common::*;
use journal::{Start, Tail};

/// Compares all entries of a file as read by the tail and by journalctl; returns the skipped bytes.
fn assert_reads_like_journalctl(path: &Path, entries_min: usize) -> u64 {
    let exported = export(path, &[]);
    let mut read = Vec::new();
    let progress = drain(&mut Tail::open(path, Start::File).unwrap(), |entry| read.push(fields_read(entry)));
    assert_eq!(read.len(), exported.len());
    assert!(read.len() >= entries_min, "{}", read.len());
    for (read, exported) in read.iter().zip(&exported) {
        assert!(is_same(read, exported), "{read:?}\nis not\n{exported:?}");
    }
    progress.skipped_bytes
}

#[test]
fn journald_entries_of_every_format_read_like_journalctl() {
    for (compact, keyed_hash, compressed) in [
        (true, true, true),
        (true, false, true),
        (false, true, true),
        (false, false, true),
        (true, true, false),
    ] {
        let format = JournaldFormat { compact, keyed_hash, compressed };
        let journald = Journald::start(format);
        let path = journald.live();
        let mut tail = Tail::open(&path, Start::File).unwrap();
        // Read while they arrive, so that scanning resumes between any two objects.
        let mut read = Vec::new();
        for begin in [0, 100, 200] {
            send_varied(&journald, begin..begin + 100);
            wait_until("the entries", || {
                drain(&mut tail, |entry| read.extend(entry.text("NUMBER").map(str::to_owned)));
                read.len() as u64 >= begin + 100
            });
        }
        assert_eq!(read, numbers(0..300));
        let root = journald.stop();
        let path = folder(root.path()).unwrap().join("system.journal");
        let header = String::from_utf8(journalctl(&path, &["--header"])).unwrap();
        for (name, is_set) in
            [("COMPACT", compact), ("KEYED-HASH", keyed_hash), ("COMPRESSED-ZSTD", compressed)]
        {
            assert_eq!(header.contains(name), is_set, "{format:?}: {header}");
        }
        assert_eq!(assert_reads_like_journalctl(&path, 300), 0);
    }
}

#[test]
fn an_unclosed_file_that_journald_renamed_is_readable() {
    let mut journald = Journald::start(JournaldFormat::USUAL);
    let mut tail = Tail::open(&journald.live(), Start::File).unwrap();
    send_varied(&journald, 0..50);
    let mut read = 0;
    wait_until("the entries", || {
        drain(&mut tail, |entry| read += u64::from(entry.text("NUMBER").is_some()));
        read == 50
    });
    journald.kill_and_start();
    let aside = journald.disposed_files();
    assert_eq!(aside.len(), 1, "{:?}", files(&journald.folder()));
    assert_eq!(assert_reads_like_journalctl(&aside[0], 50), 0);
}

#[test]
fn lz4_and_xz_values_of_journald_read_like_journalctl() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    for compact in [true, false] {
        let plain = written(JournaldFormat { compact, compressed: false, ..JournaldFormat::USUAL }, 60);
        for (compression, compress) in [(LZ4, lz4 as fn(&[u8]) -> Vec<u8>), (XZ, xz)] {
            let mut file = plain.clone();
            let recompressed = recompress(&mut file, compression, compress);
            assert!(recompressed.values >= 20, "{recompressed:?}");
            fs::write(&path, &file).unwrap();
            assert_eq!(assert_reads_like_journalctl(&path, 60), recompressed.unused_bytes);
        }
    }
}
