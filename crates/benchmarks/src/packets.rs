//! Captured connections and requests, and the instructions that counting each takes.

use std::fs::File;

use wire::capture::{CaptureReader, Frame};
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

use crate::Result;
use crate::callgrind::{self, Thread};

/// How often a capture is counted: the difference leaves out what the program needs once.
const ROUNDS: [u64; 2] = [1, 21];
/// The least of so many runs counts.
const RUNS: usize = 3;
/// From each round to the next, in nanoseconds: the connections of the one before are forgotten by then.
const ROUND_NS: u64 = 60_000_000_000;

/// A capture of the tests of wire, with the name of its budget and how many of these it has.
pub type CaptureCase = (&'static str, &'static str, u64);

/// Each capture that is counted.
pub const CASES: [CaptureCase; 3] = [
    ("packets of a connection of TLS 1.2", "tls12.pcap", 8),
    ("packets of a connection of TLS 1.3", "tls13.pcap", 12),
    // With a hundredth of a connection.
    ("packets of a request on a kept connection", "kept.pcap", 100),
];

/// Counts the packets of a capture so many times, and does nothing else.
///
/// # Errors
/// If the capture cannot be read.
pub fn count(capture: &str, rounds: u64) -> Result<()> {
    let mut capture = CaptureReader::new(File::open(capture)?)?;
    let mut frames = Vec::new();
    while let Some(frame) = capture.next_frame()? {
        frames.push(Frame { data: frame.data.to_vec().leak(), ..frame });
    }
    let mut counter = WireCounter::new(WireOptions::default());
    for round in 0..rounds {
        for frame in &frames {
            let frame = Frame { time_ns: frame.time_ns + round * ROUND_NS, ..*frame };
            counter.packet(&frame, &Packet::parse(&frame));
        }
    }
    std::hint::black_box(counter.counted.counters());
    Ok(())
}

/// Counts the instructions for the packets of one connection or request. The program runs itself with
/// `--part packets CAPTURE ROUNDS`, which must call [`count`].
///
/// # Errors
/// If the program or valgrind cannot be run.
pub fn instructions((_, capture, count): CaptureCase) -> Result<f64> {
    let capture = format!("{}/../wire/tests/captures/{capture}", env!("CARGO_MANIFEST_DIR"));
    let mut totals = [u64::MAX; 2];
    // Now and then a run takes a sixth more.
    for _ in 0..RUNS {
        for (least, rounds) in totals.iter_mut().zip(ROUNDS) {
            let threads = callgrind::run_part("packets", &[&capture, &rounds.to_string()])?;
            *least = threads.iter().map(Thread::total).sum::<u64>().min(*least);
        }
    }
    Ok(totals[1].saturating_sub(totals[0]) as f64 / ((ROUNDS[1] - ROUNDS[0]) * count) as f64)
}
