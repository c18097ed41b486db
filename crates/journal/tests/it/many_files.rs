//! The memory of a tail that has many files open at once. Alone in its process, whose memory it measures.

use crate::common::*;
use journal::{EntryBuf, FileOptions, Start, Tail, Timestamps};

const FILES: u64 = 48;
const ENTRIES: u64 = 400;
const FIELDS: u64 = 50;
/// Bytes that reading may take: 64 MiB of caches, and what one file needs while it is read.
const BYTES_MAX: u64 = 90 << 20;

/// The memory of this process.
fn memory_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn open_files_share_a_bound_on_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut entry = EntryBuf::new();
    for file in 0..FILES {
        // Large enough for no rotation: archives are closed once they are read.
        let options = FileOptions { size_max: 64 << 20, ..FileOptions::default() };
        let mut writer = create(&dir.path().join(format!("remote-{file}.journal")), &options);
        for number in 0..ENTRIES {
            entry.clear();
            for field in 0..FIELDS {
                // Each value is new, as those of most figures are.
                entry.push(&format!("FIELD_{field}"), format!("{file}-{number}-{field}").as_bytes());
            }
            writer.append(&entry, Timestamps::now()).unwrap();
        }
        writer.close().unwrap();
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count() as u64, FILES);
    let before = memory_bytes();
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let (mut read, mut most) = (0, 0);
    loop {
        let progress = tail
            .poll(|entry| {
                read += entry.iter().filter(|(name, _)| name.starts_with("FIELD_")).count() as u64;
            })
            .unwrap();
        most = most.max(memory_bytes());
        if !progress.more {
            break;
        }
    }
    assert_eq!(read, FILES * ENTRIES * FIELDS);
    let grown = most.saturating_sub(before);
    assert!(grown < BYTES_MAX, "{grown} bytes");
}
