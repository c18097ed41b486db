//! Counts a capture once, without writing records: for measuring what a packet costs.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::fs::File;

use records::metrics::ProxyCounter;
use wire::capture::CaptureReader;
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a capture")?;
    let mut capture = CaptureReader::new(File::open(path)?)?;
    let (mut counter, mut packets) = (WireCounter::new(WireOptions::default()), 0_u64);
    while let Some(frame) = capture.next_frame()? {
        packets += 1;
        if let Packet::Tcp(segment) = Packet::parse(&frame) {
            counter.segment(&frame, &segment);
        }
    }
    let totals = &counter.counted.delta.counters;
    let (full, resumed) = (totals[ProxyCounter::HandshakesFull], totals[ProxyCounter::HandshakesResumed]);
    println!("{packets} packets, {full} full and {resumed} resumed handshakes");
    Ok(())
}
