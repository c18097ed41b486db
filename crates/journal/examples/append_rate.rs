//! Prints how many entries per second are written and read back, with one flush every `BATCH` entries.
//!
//! `cargo run --release -p journal --example append_rate -- [ENTRIES [BATCH [FOLDER]]]`

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(300_000), |text| text.parse())?;
    let batch: u64 = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("append_rate.{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("rate.journal");

    let start = Instant::now();
    let mut writer = FileWriter::create(&path, FileOptions::default())?;
    let mut entry = EntryBuf::new();
    for number in 0..entries {
        fill(&mut entry, number);
        writer.append(&entry, Timestamps::now())?;
        if number % batch == 0 {
            writer.flush()?;
        }
    }
    writer.close()?;
    let wrote = start.elapsed();

    let start = Instant::now();
    let mut tail = Tail::open(&path, Start::Oldest)?;
    let (mut read, mut rotations) = (0, 0);
    loop {
        let progress = tail.poll(|_| ())?;
        read += progress.entries;
        rotations += progress.rotations;
        if !progress.more {
            break;
        }
    }
    let took = start.elapsed();
    let bytes: u64 = std::fs::read_dir(&folder)?.flatten().flat_map(|f| f.metadata()).map(|m| m.len()).sum();
    std::fs::remove_dir_all(&folder)?;

    let rate = |count: u64, seconds: f64| count as f64 / seconds;
    println!(
        "wrote {entries} entries: {:.0}/s, {} bytes each",
        rate(entries, wrote.as_secs_f64()),
        bytes / entries
    );
    println!("read {read} entries over {rotations} rotations: {:.0}/s", rate(read, took.as_secs_f64()));
    Ok(())
}

/// Fills an entry like one of a measurement: six values are new, nine are repeated.
fn fill(entry: &mut EntryBuf, number: u64) {
    entry.clear();
    entry.push_display("MESSAGE", format_args!("client 127.0.0.{} did {number}", number % 200));
    entry.push("PRIORITY", b"6");
    entry.push("SYSLOG_IDENTIFIER", b"append_rate");
    entry.push("KIND", b"client");
    entry.push_display("CLIENT", format_args!("127.0.0.{}", number % 200));
    for (name, factor) in
        [("BYTES_IN", 7919), ("BYTES_OUT", 104_729), ("SEQUENCE", 1), ("MONOTONIC_US", 1013)]
    {
        entry.push_display(name, number * factor);
    }
}
