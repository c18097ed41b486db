//! Writes a journal in which few entries have a certain field, and prints how long it takes to read these, or
//! all.
//!
//! `cargo run --release -p journal --example only_with -- [ENTRIES [WANTED [FOLDER]]]`

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(501_000), |text| text.parse())?;
    let wanted: u64 = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("only_with.{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut writer = FileWriter::create(&folder.join("many.journal"), FileOptions::default())?;
    let mut entry = EntryBuf::new();
    // The matching entries are spread over the second half.
    let every = (entries / 2).checked_div(wanted).unwrap_or(u64::MAX).max(1);
    let mut left = wanted;
    for number in 0..entries {
        entry.clear();
        entry.push_display("MESSAGE", format_args!("request {number} of somebody else took a while"));
        entry.push("PRIORITY", b"6");
        entry.push("SYSLOG_IDENTIFIER", b"other");
        for (name, factor) in [("BYTES", 7919), ("OFFSET", 104_729), ("THREAD", 0), ("TIME", 1013)] {
            entry.push_display(name, number * factor);
        }
        if number >= entries / 2 && number % every == 0 && left > 0 {
            entry.push_display("WANTED_KIND", number % 8);
            left -= 1;
        }
        writer.append(&entry, Timestamps::now())?;
    }
    writer.close()?;
    let files: Vec<_> = std::fs::read_dir(&folder)?.flatten().collect();
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum();
    println!("{} files, {} MiB, {entries} entries, {wanted} of them wanted", files.len(), bytes >> 20);
    for (what, names) in [
        ("those with the field", &["WANTED_KIND"][..]),
        ("those with a field that none has", &["NOBODY_HAS_THIS"]),
        ("all", &[]),
    ] {
        read(&folder, what, names)?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn read(folder: &Path, what: &str, names: &[&str]) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut tail = Tail::open(folder, Start::Oldest)?.only_with(names);
    let mut entries = 0;
    loop {
        let progress = tail.poll(|_| ())?;
        entries += progress.entries;
        if !progress.more {
            break;
        }
    }
    println!("{what}: {entries} entries in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
