//! Prints how many entries a second are read from a journal file or a folder; for a file also by the reader below alone.
//!
//! `cargo run --release -p journal --example read_rate -- PATH`, to compare with
//! `time journalctl --file PATH -o json | wc -l`.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Instant;

use journal::{Start, Tail};
use systemd_journal_reader::JournalReader;

/// The best of so many runs is printed.
const RUNS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file, or folder?")?);
    rate("tail", || {
        let mut tail = Tail::open(&path, Start::Oldest)?;
        let (mut entries, mut bytes) = (0, 0);
        loop {
            let progress =
                tail.poll(|entry| bytes += entry.iter().map(|(_, value)| value.len()).sum::<usize>())?;
            entries += progress.entries;
            if !progress.more {
                return Ok((entries, bytes));
            }
        }
    })?;
    if path.is_file() {
        rate("reader alone", || {
            let mut reader = JournalReader::new(BufReader::new(File::open(&path)?))?;
            let (mut entries, mut bytes) = (0, 0);
            while let Some(entry) = reader.next_entry() {
                entries += 1;
                bytes += entry.fields.values().map(|value| value.len()).sum::<usize>();
            }
            Ok((entries, bytes))
        })?;
    }
    Ok(())
}

fn rate(
    name: &str,
    mut run: impl FnMut() -> Result<(u64, usize), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut best = f64::INFINITY;
    let mut found = (0, 0);
    for _ in 0..RUNS {
        let start = Instant::now();
        found = run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
    let (entries, bytes) = found;
    println!(
        "{name}: {entries} entries, {bytes} bytes of values, {best:.3} s, {:.0} entries/s; {peak} of memory at most so far",
        entries as f64 / best
    );
    Ok(())
}
