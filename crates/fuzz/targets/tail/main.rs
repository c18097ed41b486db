//! Feeds the tail any bytes as a journal file, or as several in a folder.
//!
//! The last two bytes of the input say how it is read: where the tail begins, whether the file is followed by its name
//! or in its folder, and how much of it is there only at the second look. libFuzzer bounds time and memory.

#![no_main]

mod seeds;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use fuzz::seeds_if_asked;
use journal::{Start, Tail};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    seeds_if_asked(seeds::write_all);
    FOLDER.set(tempfile::tempdir().expect("a folder for the files")).expect("called once");
}, |input: &[u8]| {
    let Some((bytes, &[how, part])) = input.split_last_chunk::<2>() else { return };
    let folder = FOLDER.get().expect("set at the start").path();
    let live = folder.join("a.journal");
    let start = match how & 3 {
        0 => Start::Oldest,
        1 => Start::File,
        2 => Start::End,
        _ => Start::Since(1_700_000_000_000_000),
    };
    let path = if how & 4 == 0 { &live } else { folder };
    let (early, late) = bytes.split_at(bytes.len() * usize::from(part) / 255);
    if how & 8 == 0 {
        grow(&live, path, start, early, late);
    } else {
        replace(&live, path, start, early, late);
    }
    for file in fs::read_dir(folder).expect("it is ours").flatten() {
        fs::remove_file(file.path()).expect("it is ours");
    }
});

static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();

/// Has a file that grows read at two moments.
fn grow(live: &Path, path: &Path, start: Start, early: &[u8], late: &[u8]) {
    let mut file = File::create(live).expect("a file");
    file.write_all(early).expect("room");
    let Ok(mut tail) = Tail::open(path, start) else { return };
    drain(&mut tail, early.len());
    file.write_all(late).expect("room");
    // The header as it is when all is there, as a writer does it.
    drain(&mut tail, early.len() + late.len());
}

/// Has a file read that is archived and replaced by another one.
fn replace(live: &Path, path: &Path, start: Start, first: &[u8], second: &[u8]) {
    fs::write(live, first).expect("room");
    let Ok(mut tail) = Tail::open(path, start) else { return };
    drain(&mut tail, first.len());
    let archive = format!("a@{:032x}-{:016x}-{:016x}.journal", 1, 1, 1);
    fs::rename(live, live.with_file_name(archive)).expect("it is ours");
    fs::write(live, second).expect("room");
    drain(&mut tail, first.len() + second.len());
}

/// Polls until there is nothing more, which must come to an end.
fn drain(tail: &mut Tail, bytes: usize) {
    // An entry takes 64 bytes of a file, and a poll takes at least one step; each file may be read twice.
    let entries_max = bytes as u64 / 32;
    let mut entries = 0;
    for _ in 0..=bytes + 100 {
        let mut fields = 0;
        let polled = tail.poll(|entry| fields += entry.iter().map(|(_, value)| value.len()).sum::<usize>());
        let Ok(progress) = polled else { return };
        entries += progress.entries;
        assert!(entries <= entries_max, "{entries} entries in {bytes} bytes");
        if !progress.more {
            return;
        }
    }
    panic!("no end of {bytes} bytes");
}
