//! Instructions of the proxy's worker for a handshake and for forwarding, counted by callgrind.
//!
//! `just bench-instructions [REVISION]`: with a revision, both are measured and compared. Counts differ between
//! machines, since the library of cryptography chooses its code by what the processor can do, so none are kept.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use bench::load::Shape;
use bench::terminator::PerRequest;
use bench::{Result, argument};
use loadgen::Template;

/// A case above this share of the other revision's count is a regression. Two runs differ by less than a tenth of it.
const REGRESSION: f64 = 1.03;

/// Each case: its name, what is asked, and how often. One connection at a time, so that each event comes alone.
fn cases() -> [(&'static str, Shape, u64); 6] {
    let post =
        Shape { plan: "connections=1,keepalive=on".to_owned(), request: Template::post("/echo", 10_000) };
    [
        (
            "connection with a full handshake and a request",
            Shape::get("connections=1,keepalive=off,resume=0%", 100),
            200,
        ),
        (
            "connection with a resumed handshake and a request",
            Shape::get("connections=1,keepalive=off,resume=100%", 100),
            200,
        ),
        ("request on a kept connection, 100 B answer", Shape::get("connections=1,keepalive=on", 100), 2_000),
        (
            "request on a kept connection, 10 kB answer",
            Shape::get("connections=1,keepalive=on", 10_000),
            1_000,
        ),
        (
            "request on a kept connection, 100 kB answer",
            Shape::get("connections=1,keepalive=on", 100_000),
            200,
        ),
        ("upload of 10 kB, and 10 kB back", post, 1_000),
    ]
}

fn main() -> Result<ExitCode> {
    let program: PathBuf =
        argument("program").ok_or("--program PATH is missing: the tlsdash to measure")?.into();
    let against: Option<PathBuf> = argument("against").map(Into::into);
    println!(
        "{:<52}{:>12}{:>12}{:>12}{:>8}",
        "instructions of the worker", "counting", "in all", "there", "ratio"
    );
    let mut regressed = false;
    for (name, shape, requests) in cases() {
        let PerRequest { total, counting } = PerRequest::count(&program, &shape, requests)?;
        print!("{name:<52}{counting:>12.0}{total:>12.0}");
        let Some(against) = &against else {
            println!();
            continue;
        };
        let there = PerRequest::count(against, &shape, requests)?.total;
        let verdict = if total > there * REGRESSION { " more" } else { "" };
        regressed |= !verdict.is_empty();
        println!("{there:>12.0}{:>8.3}{verdict}", total / there);
    }
    Ok(if regressed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
