//! Counts the lines of a log, and nothing else: what `just bench-instructions` counts the instructions of.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::fs::File;

use observe::{LineReader, LogCounter, LogKind};
use records::metrics::ProxyCounter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(kind), Some(path)) = (words.next(), words.next()) else {
        return Err("usage: count_lines TERMINATOR LOG".into());
    };
    let mut parser = kind.parse::<LogKind>()?.parser();
    let (mut lines, mut counter, mut bad) = (LineReader::default(), LogCounter::default(), 0_u64);
    let mut count = |line: &[u8]| {
        let read = parser.parse(line, |event| event.iter().for_each(|event| counter.count(event)));
        bad += u64::from(read.is_err());
    };
    let mut log = File::open(path)?;
    while lines.read(&mut log, &mut count)? > 0 {}
    lines.finish(&mut count);
    counter.counted.seal();
    println!(
        "{} connections, {bad} lines not readable",
        counter.counted.delta.counters[ProxyCounter::Accepted]
    );
    if bad > 0 { Err("a line cannot be read".into()) } else { Ok(()) }
}
