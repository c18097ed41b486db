//! Counts the instructions of each important path with callgrind: a handshake, a request, a line of another
//! terminator's log, writing and reading an interval's records, and a frame of the dashboard.
//!
//! `just bench-instructions` compares each count with the committed budget; with a revision, it also compares
//! the proxy's paths with that revision. Budgets exclude the cryptographic library, which selects its code by
//! the processor.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use benchmarks::budget::{BudgetVerdict, Budgets, TOLERANCE};
use benchmarks::interval::IntervalTraffic;
use benchmarks::interval::counted::{self, IntervalCost};
use benchmarks::load::{ServeMode, Shape};
use benchmarks::terminator::PerRequest;
use benchmarks::{Result, argument, frame, log_lines, packets};
use loadgen::{Share, Template};

/// Above this ratio to the other revision, a path has regressed. Two runs differ by less than a tenth of it.
const REGRESSION: f64 = 1.03;
/// Attempts to count a path within its budget: what else runs on the machine lets a worker wait, and wake, more often.
const TRIES: usize = 3;
/// The traffic of the counted interval: a busy proxy with clients that come and go.
const TRAFFIC: IntervalTraffic = IntervalTraffic {
    requests: 20_000,
    connections: 2_000,
    resumed: Share::ALL,
    clients_active: 200,
    clients_seen: 1_000,
    routes: 0,
};

const HTTP: ServeMode = ServeMode::Http { routes: 1 };

/// Returns the cases: name, load and number of requests. There is one request at a time, so events do not
/// overlap.
fn cases() -> [(&'static str, Shape, u64); 10] {
    let request = Template::post("/echo", 10_000);
    let post = Shape {
        plan: "connections=1,keep-alive=on".to_owned(),
        requests: vec![request],
        mode: ServeMode::Tcp,
    };
    let http1 = "connections=1,keep-alive=on";
    let http2 = "connections=1,keep-alive=on,http2=on,streams=1";
    [
        (
            "connection with a full handshake and a request",
            Shape::get("connections=1,keep-alive=off,resume=0%", 100),
            200,
        ),
        (
            "connection with a resumed handshake and a request",
            Shape::get("connections=1,keep-alive=off,resume=100%", 100),
            200,
        ),
        ("request on a kept connection, 100 B answer", Shape::get("connections=1,keep-alive=on", 100), 2_000),
        (
            "request on a kept connection, 10 kB answer",
            Shape::get("connections=1,keep-alive=on", 10_000),
            1_000,
        ),
        (
            "request on a kept connection, 100 kB answer",
            Shape::get("connections=1,keep-alive=on", 100_000),
            200,
        ),
        ("upload of 10 kB, and 10 kB back", post, 1_000),
        ("HTTP/1.1 request, 100 B answer", Shape::get_in(HTTP, http1, 100), 2_000),
        ("HTTP/2 request, 100 B answer", Shape::get_in(HTTP, http2, 100), 4_000),
        ("HTTP/2 request, 10 kB answer", Shape::get_in(HTTP, http2, 10_000), 2_000),
        ("HTTP/2 request, 100 kB answer", Shape::get_in(HTTP, http2, 100_000), 400),
    ]
}

/// The counts of this run.
struct Check {
    budgets: Budgets,
    counted: Budgets,
    failed: bool,
}

impl Check {
    /// Prints a count and its budget.
    fn note(&mut self, name: &str, count: f64) {
        self.counted.set(name, count);
        let budget = self.budgets.of(name).map_or_else(|| "-".to_owned(), |budget| budget.to_string());
        let verdict = match self.budgets.verdict(name, count) {
            BudgetVerdict::Kept => "",
            BudgetVerdict::Exceeded => " MORE THAN ITS BUDGET",
            BudgetVerdict::Lower => " less: lower the budget (just budgets)",
            BudgetVerdict::Missing => " NO BUDGET (just budgets)",
        };
        self.failed |=
            matches!(self.budgets.verdict(name, count), BudgetVerdict::Exceeded | BudgetVerdict::Missing);
        println!("{name:<52}{count:>12.0}{budget:>12}{verdict}");
    }
}

fn main() -> Result<ExitCode> {
    if let Some(records) = counted::run_if_asked()? {
        println!("{records}");
        return Ok(ExitCode::SUCCESS);
    }
    if run_part_if_asked()? {
        return Ok(ExitCode::SUCCESS);
    }
    let program: PathBuf =
        argument("program").ok_or("--program PATH is missing: the tlsdash to measure")?.into();
    if let Some(against) = argument("against") {
        benchmarks::stay_on_one_core()?;
        return compare(&program, Path::new(&against));
    }
    let path: PathBuf = argument("budgets").ok_or("--budgets FILE is missing")?.into();
    let writes = argument("write").is_some();
    let budgets = if writes { Budgets::default() } else { Budgets::read(&path)? };
    let mut check = Check { budgets, counted: Budgets::default(), failed: false };
    println!("{:<52}{:>12}{:>12}", "instructions", "counted", "budget");
    let parts = std::thread::spawn(|| count_parts().map_err(|error| error.to_string()));
    benchmarks::stay_on_one_core()?;
    for (name, shape, requests) in cases() {
        let mut least = f64::INFINITY;
        for _ in 0..TRIES {
            least = least.min(PerRequest::count(&program, &shape, requests)?.without_cryptography);
            if check.budgets.verdict(name, least) != BudgetVerdict::Exceeded {
                break;
            }
        }
        check.note(name, least);
    }
    for (name, count) in parts.join().map_err(|_| "counting the parts has panicked")?? {
        check.note(name, count);
    }
    if writes {
        check.counted.write(&path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let allowed = (TOLERANCE - 1.0) * 100.0;
    println!("at most {allowed:.0} % above each budget: {}", if check.failed { "NO" } else { "yes" });
    Ok(if check.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Counts what this program runs itself, on the last core, beside the proxy's paths on the first one.
fn count_parts() -> Result<Vec<(&'static str, f64)>> {
    benchmarks::move_to_last_core()?;
    let mut counts = Vec::new();
    for case in log_lines::CASES {
        counts.push((case.0, log_lines::instructions(case)?));
    }
    for case in packets::CASES {
        counts.push((case.0, packets::instructions(case)?));
    }
    let interval = IntervalCost::count(&TRAFFIC, true)?;
    counts.push(("record made and written", (interval.gather + interval.publish) / interval.records));
    counts.push(("record read and folded", (interval.follow + interval.fold) / interval.records));
    counts.push(("frame of the dashboard", frame::instructions()?));
    Ok(counts)
}

/// Does nothing but a part that this program counts, if it runs under callgrind for that.
fn run_part_if_asked() -> Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--part", "frame"] => frame::draw_counted(),
        ["--part", "lines", terminator, log] => log_lines::count(terminator, log)?,
        ["--part", "packets", capture, rounds] => packets::count(capture, rounds.parse()?)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Compares the proxy's paths with those of another build, including the cryptographic library.
fn compare(program: &Path, against: &Path) -> Result<ExitCode> {
    println!(
        "{:<52}{:>12}{:>12}{:>12}{:>8}",
        "instructions of the worker", "counting", "in all", "there", "ratio"
    );
    let mut regressed = false;
    for (name, shape, requests) in cases() {
        let PerRequest { total, counting, .. } = PerRequest::count(program, &shape, requests)?;
        let there = PerRequest::count(against, &shape, requests)?.total;
        let verdict = if total > there * REGRESSION { " more" } else { "" };
        regressed |= !verdict.is_empty();
        println!("{name:<52}{counting:>12.0}{total:>12.0}{there:>12.0}{:>8.3}{verdict}", total / there);
    }
    Ok(if regressed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
