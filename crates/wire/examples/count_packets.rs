//! Counts a capture, and nothing else: what `just bench-instructions` counts the instructions of.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::fs::File;

use records::metrics::ProxyCounter;
use wire::capture::CaptureReader;
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give a capture, and how often to count it")?;
    let rounds: u32 = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let mut capture = CaptureReader::new(File::open(&path)?)?;
        let (mut counter, mut packets) = (WireCounter::new(WireOptions::default()), 0_u64);
        while let Some(frame) = capture.next_frame()? {
            packets += 1;
            counter.packet(&frame, &Packet::parse(&frame));
        }
        let totals = &counter.counted.delta.counters;
        let of = |counter| totals[counter];
        let (all, full) = (of(ProxyCounter::Accepted), of(ProxyCounter::HandshakesFull));
        println!("{packets} packets of {all} connections: {full} full handshakes");
    }
    Ok(())
}
