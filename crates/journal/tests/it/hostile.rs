//! A file that is built to exhaust its reader.

use std::fs;

use crate::common::*;
use journal::{FileOptions, FileWriter, Start, Tail, Timestamps};

/// The offsets of the payload in DATA objects and of the items in ENTRY objects of a compact file.
const PAYLOAD_AT: usize = 72;
const ITEMS_AT: usize = 64;

/// A field begins every `STEP` bytes, and all end at the same offset.
const FIELDS_BYTES: usize = 12 << 20;
const STEP: usize = 80;

const ENTRIES: usize = 1000;
const ITEMS: usize = 500;

fn put(file: &mut [u8], at: usize, number: usize) {
    file[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
}

/// Builds a file of 14 MiB whose entries would add up to 3 TB.
fn overlapping_fields(file: &mut Vec<u8>, filler: u8) {
    let fields_at = file.len();
    let fields_end = fields_at + FIELDS_BYTES / STEP * STEP;
    file.resize(fields_end, filler);
    for at in (fields_at..fields_end).step_by(STEP) {
        file[at..at + PAYLOAD_AT].fill(0);
        file[at] = 1;
        put(file, at + 8, fields_end - at);
        file[at + PAYLOAD_AT..at + STEP].copy_from_slice(b"FIELD=ab");
    }
    let count = FIELDS_BYTES / STEP;
    for entry in 0..ENTRIES {
        let at = file.len();
        file.resize(at + ITEMS_AT + ITEMS * 4, 0);
        file[at] = 3;
        put(file, at + 8, ITEMS_AT + ITEMS * 4);
        for item in 0..ITEMS {
            let field = fields_at + (entry * ITEMS + item) % count * STEP;
            let item_at = at + ITEMS_AT + item * 4;
            file[item_at..item_at + 4].copy_from_slice(&(field as u32).to_le_bytes());
        }
    }
    let last = file.len() - ITEMS_AT - ITEMS * 4;
    put(file, 136, last);
    put(file, 152, 1 + ENTRIES);
}

#[test]
fn overlapping_fields_need_bounded_time_and_memory() {
    if !is_alone("hostile::overlapping_fields_need_bounded_time_and_memory") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    writer.append(&numbered(0), Timestamps::now()).unwrap();
    let end = writer.size_bytes() as usize;
    writer.close().unwrap();
    let mut good = fs::read(&path).unwrap();
    good.truncate(end);
    // Text, and bytes that are not UTF-8, which the library decodes too.
    for filler in [b'x', 0xff] {
        let mut file = good.clone();
        overlapping_fields(&mut file, filler);
        fs::write(&path, &file).unwrap();
        let progress = drain(&mut Tail::open(&path, Start::File).unwrap(), |_| {});
        assert_eq!(progress.entries, 1 + ENTRIES as u64);
        assert!(progress.skipped_bytes > 0 && progress.skipped_bytes <= file.len() as u64, "{progress:?}");
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(peak_kib < 256 << 10, "{peak_kib} KiB used");
}
