//! Prints how many entries per second are sent, how often journald's queue was full, and the cost.
//!
//! `cargo run --release -p journal --example send_rate -- [ENTRIES [INSTANCE|SOCKET]]`
//!
//! Without a socket, it sends to a thread of its own that only receives.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::{EntryBuf, JournaldInstance, SendError, Sender};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    match arguments.next() {
        None => measure_to_thread(entries),
        Some(path) if path.starts_with('/') => measure(Sender::open_at(Path::new(&path))?, entries),
        Some(instance) => measure(Sender::open(&instance.parse::<JournaldInstance>()?)?, entries),
    }
}

fn measure_to_thread(entries: u64) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("send_rate.{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("socket");
    let receiver = UnixDatagram::bind(&path)?;
    // The thread ends when the sender has failed.
    receiver.set_read_timeout(Some(Duration::from_secs(2)))?;
    let sender = Sender::open_at(&path)?;
    std::fs::remove_dir_all(&folder)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 1 << 16];
            (0..entries).try_for_each(|_| receiver.recv(&mut buffer).map(drop))
        });
        measure(sender, entries)
    })
}

fn measure(mut sender: Sender, entries: u64) -> Result<(), Box<dyn Error>> {
    let mut entry = EntryBuf::new();
    let (mut full, mut bytes) = (0_u64, 0);
    let (start, cpu_start) = (Instant::now(), cpu_time());
    for number in 0..entries {
        fill(&mut entry, number);
        bytes += entry.iter().map(|(name, value)| name.len() + value.len() + 10).sum::<usize>();
        while let Err(error) = sender.send(&entry) {
            let SendError::Full { .. } = error else { return Err(error.into()) };
            full += 1;
            sender.wait(Duration::from_secs(1));
        }
    }
    let (took, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu_start));
    println!(
        "sent {entries} entries of {} bytes: {:.0}/s, {:.1} µs of CPU each; no room {full} times",
        bytes as u64 / entries,
        entries as f64 / took.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / entries as f64,
    );
    Ok(())
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Fills an entry like one of a measurement.
fn fill(entry: &mut EntryBuf, number: u64) {
    entry.clear();
    entry.push_display("MESSAGE", format_args!("client 127.0.0.{} did {number}", number % 200));
    entry.push("PRIORITY", b"6");
    entry.push("SYSLOG_IDENTIFIER", b"send_rate");
    entry.push("KIND", b"client");
    entry.push_display("CLIENT", format_args!("127.0.0.{}", number % 200));
    for (name, factor) in
        [("BYTES_IN", 7919), ("BYTES_OUT", 104_729), ("SEQUENCE", 1), ("MONOTONIC_US", 1013)]
    {
        entry.push_display(name, number * factor);
    }
    entry.push("HISTOGRAM", &[b'x'; 600]);
}
