//! Follows a journal while it is written; checks the entries and prints their delay.
//!
//! `cargo run --release -p tlsdash-journal --example follow -- [ENTRIES [A_SECOND [SIZE_MAX [FOLDER]]]]`: by default,
//! it writes 100,000 entries at full speed into files of 4 MiB. With `A_SECOND`, it writes and flushes them
//! at this rate, and polls every 20 ms, as the dashboard does.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use journal::{Entry, EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps, WriteError};

/// The interval between polls when nothing is new.
const POLL: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let a_second: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let size_max: u64 = arguments.next().map_or(Ok(4 << 20), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("follow.{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("follow.journal");
    let options = FileOptions { size_max, ..FileOptions::default() };
    let writer = FileWriter::create(&path, options)?;

    let is_written = AtomicBool::new(false);
    let start = Instant::now();
    let (wrote, read) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let result = write(writer, entries, a_second);
            is_written.store(true, Ordering::Release);
            result.map(|()| start.elapsed())
        });
        let read = follow(&path, &is_written);
        (writing.join(), read)
    });
    let (wrote, read) = (wrote.map_err(|_| "the writer panicked")??, read?);
    let took = start.elapsed();
    std::fs::remove_dir_all(&folder)?;
    print(&read, entries, wrote, took);
    Ok(())
}

/// Writes numbered entries at a rate, or at full speed.
fn write(mut writer: FileWriter, entries: u64, a_second: u64) -> Result<(), WriteError> {
    let start = Instant::now();
    let mut entry = EntryBuf::new();
    for number in 0..entries {
        if let Some(due_ns) = (number * 1_000_000_000).checked_div(a_second) {
            std::thread::sleep(Duration::from_nanos(due_ns).saturating_sub(start.elapsed()));
        }
        entry.clear();
        entry.push_display("NUMBER", number);
        entry.push_display("BYTES", number * 7919);
        entry.push_display("CLIENT", format_args!("127.0.0.{}", number % 200));
        entry.push("MESSAGE", b"an entry like many others");
        writer.append(&entry, Timestamps::now())?;
        if a_second > 0 || number % 100 == 0 {
            writer.flush()?;
        }
    }
    writer.close()
}

/// The entries that the tail read.
#[derive(Default)]
struct ReadCounts {
    entries: u64,
    sum: u64,
    out_of_order: u64,
    rotations: u64,
    skipped_bytes: u64,
    lags_us: Vec<u64>,
}

impl ReadCounts {
    fn take(&mut self, entry: &Entry) {
        let number = entry.text("NUMBER").and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        self.out_of_order += u64::from(number != self.entries);
        self.entries += 1;
        self.sum = self.sum.wrapping_add(number);
        self.lags_us.push(Timestamps::now().realtime_us.saturating_sub(entry.realtime_us()));
    }
}

fn follow(path: &Path, is_written: &AtomicBool) -> Result<ReadCounts, Box<dyn Error>> {
    let mut tail = Tail::open(path, Start::Oldest)?;
    let mut read = ReadCounts::default();
    loop {
        let is_last = is_written.load(Ordering::Acquire);
        loop {
            let progress = tail.poll(|entry| read.take(entry))?;
            read.rotations += progress.rotations;
            read.skipped_bytes += progress.skipped_bytes;
            if !progress.more {
                break;
            }
        }
        if is_last {
            return Ok(read);
        }
        std::thread::sleep(POLL);
    }
}

fn print(read: &ReadCounts, entries: u64, wrote: Duration, took: Duration) {
    let sum = entries * entries.saturating_sub(1) / 2;
    let is_exact = (read.entries, read.sum, read.out_of_order, read.skipped_bytes) == (entries, sum, 0, 0);
    println!(
        "{} of {entries} entries over {} rotations, {} out of order, {} bytes skipped, sum {}: {}",
        read.entries,
        read.rotations,
        read.out_of_order,
        read.skipped_bytes,
        read.sum,
        if is_exact { "exact" } else { "NOT EXACT" }
    );
    println!("wrote in {:.2} s, all read after {:.2} s", wrote.as_secs_f64(), took.as_secs_f64());
    let mut lags = read.lags_us.clone();
    lags.sort_unstable();
    let at = |quantile: f64| {
        let rank = ((lags.len() as f64 * quantile) as usize).min(lags.len().saturating_sub(1));
        lags.get(rank).map_or(0.0, |lag| *lag as f64 / 1e3)
    };
    println!("lag from append to hand-over: p50 {:.1}, p99 {:.1}, max {:.1} ms", at(0.5), at(0.99), at(1.0));
}
