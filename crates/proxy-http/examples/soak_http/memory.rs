//! The memory of the process: that it stays flat, and small.

use std::time::Duration;

use crate::Failure;

/// How much more the last third of a run may take than the first, in percent and in bytes.
const GROWTH_MAX: (usize, usize) = (10, 4 << 20);
/// A shorter run says nothing: clients that read nothing take turns of seconds.
const DURATION_MIN: Duration = Duration::from_secs(60);

/// The bytes that are resident (`VmRSS`), or the most that have been (`VmHWM`).
pub(crate) fn resident_bytes(field: &str) -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.strip_suffix("kB"));
    Ok(kilobytes.ok_or_else(|| format!("no {field}"))?.trim().parse::<usize>()? << 10)
}

/// Checks that memory stays flat, by samples of the whole run, and below `bytes_max`. The first quarter is left out: there
/// everything is allocated for the first time. The highest sample of the last third is compared with that of the first.
/// Returns what is wrong.
pub(crate) fn check(
    samples: &[usize],
    duration: Duration,
    bytes_max: usize,
) -> Result<Option<String>, Failure> {
    let warm = &samples[samples.len() / 4..];
    let third = |n| &warm[n * warm.len() / 3..(n + 1) * warm.len() / 3];
    let highest = [0, 1, 2].map(|n| third(n).iter().copied().max().unwrap_or(0));
    let peak = resident_bytes("VmHWM")?;
    let mib = highest.map(|bytes| bytes >> 20);
    println!("memory: at most {mib:?} MiB in the thirds, {} MiB at all", peak >> 20);
    let (percent, bytes) = GROWTH_MAX;
    let is_growing = highest[2] > highest[0] + highest[0] * percent / 100 + bytes;
    Ok(if is_growing && duration >= DURATION_MIN {
        Some(format!("memory grows: {mib:?} MiB"))
    } else if peak > bytes_max {
        Some(format!("the process took more than {} MiB", bytes_max >> 20))
    } else {
        None
    })
}
