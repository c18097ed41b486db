//! A few small journals for the fuzzer to begin with.
//!
//! A file of the writer has large hash tables, which the tail passes over. Without them it is a few hundred bytes.

use std::error::Error;
use std::fs;
use std::path::Path;

use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};

const DATA: u8 = 1;
const ENTRY: u8 = 3;

/// Flags of compressed values, and the same of the file, which says that it has some.
const LZ4: (u8, u8) = (2, 2);
const ZSTD: (u8, u8) = (4, 8);

/// Writes them all.
pub(crate) fn write_all(folder: &Path) -> Result<(), Box<dyn Error>> {
    let written = write()?;
    let zstd = |value: &[u8]| zstd::bulk::compress(value, 3).unwrap_or_default();
    let lz4 =
        |value: &[u8]| [&(value.len() as u64).to_le_bytes()[..], &lz4_flex::block::compress(value)].concat();
    let files = [
        ("plain", squeeze(&written, (0, 0), <[u8]>::to_vec)),
        ("zstd", squeeze(&written, ZSTD, zstd)),
        ("lz4", squeeze(&written, LZ4, lz4)),
    ];
    for (name, file) in files {
        check(&file)?;
        for (how, part) in [(0, 255), (3, 255), (4, 255), (0, 150), (6, 200)] {
            fs::write(folder.join(format!("{name}-{how}-{part}")), [&file[..], &[how, part]].concat())?;
        }
        // Two files, one after the other.
        fs::write(folder.join(format!("{name}-twice")), [&file[..], &file[..], &[12, 127]].concat())?;
    }
    Ok(())
}

/// Makes sure that a seed leads the fuzzer to where there is something to find.
fn check(file: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.journal");
    fs::write(&path, file)?;
    let mut values = 0;
    let progress = Tail::open(&path, Start::File)?.poll(|entry| values += entry.iter().count())?;
    assert_eq!((progress.entries, progress.skipped_bytes, values), (4, 0, 12));
    Ok(())
}

/// Has the writer write a few entries.
fn write() -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.journal");
    let options = FileOptions { common: EntryBuf::new(), ..FileOptions::default() };
    let mut writer = FileWriter::create(&path, options)?;
    let mut entry = EntryBuf::new();
    for number in 0..4 {
        entry.clear();
        entry.push_display("NUMBER", number);
        entry.push("SAME", b"value");
        entry.push("LONG", "long ".repeat(20 + number as usize % 2).as_bytes());
        let at = Timestamps { realtime_us: 1_700_000_000_000_000 + number, monotonic_us: 1 + number };
        writer.append(&entry, at)?;
    }
    writer.close()?;
    Ok(fs::read(path)?)
}

/// Leaves only what a tail reads: the header, values and entries. Long values become what `compress` makes of them.
fn squeeze(file: &[u8], (flag, file_flag): (u8, u8), compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = file[..number(file, 88)].to_vec();
    out[12] |= file_flag;
    let mut moved = Vec::new();
    let mut at = out.len();
    let mut last = at;
    while at + 16 <= file.len() {
        let (kind, size) = (file[at], number(file, at + 8));
        let mut object = file[at..at + size].to_vec();
        if kind == DATA && size > 150 && flag != 0 {
            object.truncate(72);
            object.extend(compress(&file[at + 72..at + size]));
            object[1] = flag;
            let size = object.len() as u64;
            object[8..16].copy_from_slice(&size.to_le_bytes());
        }
        if kind == ENTRY {
            for item in object[64..].chunks_exact_mut(4) {
                let old = u32::from_le_bytes([item[0], item[1], item[2], item[3]]);
                let new = moved.iter().find(|(from, _)| *from == old).map_or(0, |(_, to)| *to);
                item.copy_from_slice(&u32::to_le_bytes(new));
            }
        }
        if kind == DATA || kind == ENTRY {
            moved.push((at as u32, out.len() as u32));
            last = out.len();
            out.extend(object);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        at += size.next_multiple_of(8);
    }
    out[136..144].copy_from_slice(&(last as u64).to_le_bytes());
    out
}

fn number(file: &[u8], at: usize) -> usize {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&file[at..at + 8]);
    u64::from_le_bytes(bytes) as usize
}
