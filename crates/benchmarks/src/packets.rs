//! Captured connections and requests, and the instructions that counting each takes.

use std::path::Path;

use crate::Result;
use crate::callgrind;

/// How often a capture is counted: the difference leaves out what the program needs once.
const ROUNDS: [u64; 2] = [1, 21];
/// The least of so many runs counts.
const RUNS: usize = 3;

/// A capture of the tests of wire, with the name of its budget and how many of these it has.
pub type CaptureCase = (&'static str, &'static str, u64);

/// Each capture that is counted.
pub const CASES: [CaptureCase; 3] = [
    ("packets of a connection of TLS 1.2", "tls12.pcap", 8),
    ("packets of a connection of TLS 1.3", "tls13.pcap", 12),
    // With a hundredth of a connection.
    ("packets of a request on a kept connection", "kept.pcap", 100),
];

/// Counts the instructions for the packets of one connection or request. `program` is the example `count_packets`.
///
/// # Errors
/// If the program or valgrind cannot be run.
pub fn instructions(program: &Path, (_, capture, count): CaptureCase) -> Result<f64> {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/captures").join(capture);
    let folder = tempfile::tempdir()?;
    let mut totals = [u64::MAX; 2];
    // Now and then a run takes a sixth more.
    for run in 0..RUNS {
        for (least, rounds) in totals.iter_mut().zip(ROUNDS) {
            let out = folder.path().join(format!("{run}-{rounds}"));
            let total =
                callgrind::total(&out, |command| command.arg(program).arg(&capture).arg(rounds.to_string()))?;
            *least = total.min(*least);
        }
    }
    Ok(totals[1].saturating_sub(totals[0]) as f64 / ((ROUNDS[1] - ROUNDS[0]) * count) as f64)
}
