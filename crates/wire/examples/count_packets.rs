//! Counts a capture, and nothing else: what `just bench-instructions` counts the instructions of.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::fs::File;

use records::metrics::ProxyCounter;
use wire::capture::{CaptureReader, Frame};
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

/// From each round to the next, in nanoseconds: the connections of the one before are forgotten by then.
const ROUND_NS: u64 = 60_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give a capture, and how often to count it")?;
    let rounds: u64 = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    let mut capture = CaptureReader::new(File::open(&path)?)?;
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
    let totals = counter.counted.counters();
    let of = |counter| totals[counter];
    let (all, full) = (of(ProxyCounter::Accepted), of(ProxyCounter::HandshakesFull));
    println!("{} packets, {rounds} times, of {all} connections: {full} full handshakes", frames.len());
    Ok(())
}
