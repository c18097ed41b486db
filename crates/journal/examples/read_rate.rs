//! Prints how many entries per second are read from a journal file or a folder; for a file also with
//! `systemd-journal-reader` alone, alternating, and the ratio of the two.
//!
//! `cargo run --release -p journal --example read_rate -- PATH`, to compare with
//! `time journalctl --file PATH -o json | wc -l`.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

use journal::{Start, Tail};
use systemd_journal_reader::JournalReader;

/// The number of runs: the best one is printed, and the median of their ratios.
const RUNS: usize = 7;

/// The entries, and the bytes of their values.
type Found = (u64, usize);

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file, or folder?")?);
    let (mut tail_s, mut alone_s, mut ratios) = (f64::INFINITY, f64::INFINITY, Vec::new());
    let (mut by_tail, mut by_reader) = ((0, 0), (0, 0));
    let mut peak = String::new();
    for _ in 0..RUNS {
        let (found, seconds) = timed(|| tail(&path))?;
        (by_tail, tail_s) = (found, tail_s.min(seconds));
        if peak.is_empty() {
            peak = peak_memory()?;
        }
        if path.is_file() {
            let (found, alone_seconds) = timed(|| reader_alone(&path))?;
            (by_reader, alone_s) = (found, alone_s.min(alone_seconds));
            ratios.push(alone_seconds / seconds);
        }
    }
    print("tail", by_tail, tail_s);
    println!("{peak} of memory at most");
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(RUNS / 2) {
        print("reader alone", by_reader, alone_s);
        println!("the tail is {median:.2} times as fast, from {:.2} to {:.2}", ratios[0], ratios[RUNS - 1]);
    }
    Ok(())
}

fn tail(path: &Path) -> Result<Found, Box<dyn Error>> {
    let start = if path.is_dir() { Start::Oldest } else { Start::File };
    let mut tail = Tail::open(path, start)?;
    let (mut entries, mut bytes) = (0, 0);
    loop {
        let progress =
            tail.poll(|entry| bytes += entry.iter().map(|(_, value)| value.len()).sum::<usize>())?;
        entries += progress.entries;
        if !progress.more {
            return Ok((entries, bytes));
        }
    }
}

fn reader_alone(path: &Path) -> Result<Found, Box<dyn Error>> {
    let mut reader = JournalReader::new(BufReader::new(File::open(path)?))?;
    let (mut entries, mut bytes) = (0, 0);
    while let Some(entry) = reader.next_entry() {
        entries += 1;
        bytes += entry.fields.values().map(|value| value.len()).sum::<usize>();
    }
    Ok((entries, bytes))
}

fn timed(run: impl FnOnce() -> Result<Found, Box<dyn Error>>) -> Result<(Found, f64), Box<dyn Error>> {
    let start = Instant::now();
    let found = run()?;
    Ok((found, start.elapsed().as_secs_f64()))
}

fn peak_memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.unwrap_or("unknown").trim().to_owned())
}

fn print(name: &str, (entries, bytes): Found, seconds: f64) {
    let rate = entries as f64 / seconds;
    println!("{name}: {entries} entries, {bytes} bytes of values, {seconds:.3} s, {rate:.0} entries/s");
}
