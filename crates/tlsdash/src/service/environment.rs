//! The host and the command line, for a run's first record.

use std::fs;
use std::num::NonZeroUsize;

use records::kinds::RunRecord;
use records::text::clean;

/// The command line, quoted for a shell.
pub(crate) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = clean::text(&word.to_string_lossy());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("tlsdash".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The part of a run's first record that is the same for all runs on this host.
pub(crate) fn header() -> RunRecord {
    RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        kernel: clean::bytes(rustix::system::uname().release().to_bytes()),
        cpu_model: line_of("/proc/cpuinfo", "model name").unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(0, NonZeroUsize::get) as u64,
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        host_memory_bytes: memory_bytes().unwrap_or(0),
        ..RunRecord::default()
    }
}

/// The path of this program's file.
pub(crate) fn program() -> String {
    std::env::current_exe().map_or_else(|_| "tlsdash".to_owned(), |path| path.display().to_string())
}

pub(crate) fn host_name() -> String {
    clean::bytes(rustix::system::uname().nodename().to_bytes())
}

fn memory_bytes() -> Option<u64> {
    let kib: u64 = line_of("/proc/meminfo", "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The value of the first line `begin: value`.
fn line_of(path: &str, begin: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(begin))?;
    Some(clean::text(line.split_once(':')?.1.trim()))
}

/// A file of one line; empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| clean::text(text.trim())).unwrap_or_default()
}
