//! Damaged and hostile variants of a journald's files, and what reading them costs.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::journald::{JournaldFormat, written};
use crate::common::recompress::{LZ4, XZ, ZSTD, lz4, number_at, recompress, xz};
use crate::common::*;
use journal::{Start, Tail};

const ENTRIES: u64 = 120;

/// Returns a value from `/proc/self/status`, in MiB.
fn memory_mib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Returns the offsets of all objects.
fn objects(file: &[u8]) -> Vec<usize> {
    let mut all = vec![number_at(file, 88)];
    while all[all.len() - 1] < number_at(file, 136) {
        let last = all[all.len() - 1];
        all.push(last + number_at(file, last + 8).next_multiple_of(8));
    }
    all
}

/// Damages bits, object headers, the sizes in compressed values, and the end of the file.
fn damage(file: &mut Vec<u8>, objects: &[usize], random: &mut Random) {
    for _ in 0..=random.below(12) {
        let object = objects[random.below(objects.len() as u64) as usize];
        let any = random.below(file.len() as u64 - 600_000) as usize + 500_000;
        let size = [0, 1, 15, 16, 63, 64, 72, 80, 1 << 20, 1 << 24, 1 << 32, 1 << 62, u64::MAX - 7, u64::MAX]
            [random.below(14) as usize];
        match random.below(8) {
            0 => file[random.below(272) as usize] ^= 1 << random.below(8),
            1 => file[any..any + 64].fill(0xff),
            2 => file[any] ^= 1 << random.below(8),
            3 => file[object] = random.below(9) as u8,
            4 => file[object + 1] ^= 1 << random.below(8),
            5 => file[object + 8..object + 16].copy_from_slice(&size.to_le_bytes()),
            // The start of a value: magic numbers, claimed sizes, windows and dictionaries.
            6 => file[object + 72 + random.below(24) as usize] = random.below(256) as u8,
            _ => file[object + 72..object + 80].copy_from_slice(&size.to_le_bytes()),
        }
    }
    if random.below(5) == 0 {
        let len = random.below(file.len() as u64) as usize;
        file.truncate(len);
    }
}

#[test]
fn damaged_and_hostile_files_need_bounded_time_and_memory() {
    if !is_alone("damaged::damaged_and_hostile_files_need_bounded_time_and_memory") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let plain = written(JournaldFormat { compressed: false, ..JournaldFormat::USUAL }, ENTRIES);
    let (mut by_lz4, mut by_xz) = (plain.clone(), plain.clone());
    recompress(&mut by_lz4, LZ4, lz4);
    recompress(&mut by_xz, XZ, xz);
    let by_zstd = written(JournaldFormat::USUAL, ENTRIES);
    let older = written(JournaldFormat { compact: false, keyed_hash: false, compressed: true }, ENTRIES);
    let files = [by_zstd, by_lz4, by_xz, older, plain].map(|mut file| {
        // Space behind the last object for damage there.
        file.resize(file.len() + 200, 0);
        let objects = objects(&file);
        (file, objects)
    });
    let (mut read_at_all, mut skipped, mut longest) = (0, 0, Duration::ZERO);
    for seed in 0..750 {
        let mut random = Random(seed);
        let (file, objects) = &files[seed as usize % files.len()];
        let mut file = file.clone();
        damage(&mut file, objects, &mut random);
        fs::write(&path, &file).unwrap();
        let start = Instant::now();
        let Ok(mut tail) = Tail::open(&path, Start::File) else { continue };
        let progress = drain(&mut tail, |_| {});
        longest = longest.max(start.elapsed());
        // journald adds a few entries of its own.
        assert!(progress.entries <= ENTRIES + 50, "seed {seed}: {progress:?}");
        assert!(progress.skipped_bytes <= skipped_bytes_max(&file), "seed {seed}: {progress:?}");
        read_at_all += u32::from(progress.entries > 0);
        skipped += u32::from(progress.skipped_bytes > 0);
    }
    assert!(read_at_all > 400 && skipped > 200, "{read_at_all} could be read, {skipped} with parts skipped");
    assert!(longest < Duration::from_secs(5), "{longest:?} for one file");
    let (resident, virtually) = (memory_mib("VmHWM"), memory_mib("VmPeak"));
    assert!(resident < 200 && virtually < 1000, "{resident} MiB used, {virtually} MiB asked for");

    highly_compressed_values_need_bounded_memory();
}

/// About 500 values of a few hundred bytes decompress to a million bytes each, or to more than the limit.
fn highly_compressed_values_need_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut file = written(JournaldFormat { compressed: false, ..JournaldFormat::USUAL }, 1000);
    let (mut number, mut oversize) = (0, 0);
    let recompressed = recompress(&mut file, ZSTD, |_| {
        number += 1;
        oversize += u64::from(number % 4 == 0);
        let mut value = format!("LARGE={number}").into_bytes();
        value.resize(if number % 4 == 0 { 1_100_000 } else { 1_000_000 }, b'x');
        zstd::bulk::compress(&value, 3).unwrap()
    });
    assert!(recompressed.values - oversize > 300, "{recompressed:?}, {oversize} of them too large");
    fs::write(&path, &file).unwrap();
    let (mut entries, mut large) = (0, std::collections::HashSet::new());
    let progress = drain(&mut Tail::open(&path, Start::File).unwrap(), |entry| {
        entries += 1;
        large.extend(entry.values("LARGE").map(|value| (value.len(), value[..4].to_vec())));
    });
    assert!(entries >= 1000, "{entries}");
    // This exceeds the bound for a file of this size, so the last values are refused.
    assert!(large.len() > 150, "{} large values", large.len());
    assert!(large.iter().all(|(len, _)| *len > 900_000));
    let lost_bytes = progress.skipped_bytes - recompressed.unused_bytes;
    assert!(lost_bytes > oversize * 72, "{progress:?} of {recompressed:?}, {oversize} too large");
    let resident = memory_mib("VmHWM");
    assert!(resident < 200, "{resident} MiB used for {} of them", large.len());
}
