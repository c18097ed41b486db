//! Measures what a request costs the generator: `tlsdash load` beside well-known generators, on the same
//! server.
//!
//! `just bench-load [--only PART_OF_A_NAME] [--pairs N] [--seconds S]`. nginx with one worker has the first
//! core, the generator the last one. A pair is two runs in direct succession; the order alternates. The
//! result is requests, or full handshakes, per second of the generator's CPU time: on a shared machine, wall
//! time says little. Our process counts with its journal, histograms and summary. Lag includes that of other
//! programs on the core. A program that is not installed is named and left out.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what this program is for")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use benchmarks::generator::nginx::Nginx;
use benchmarks::generator::{self, CountPattern, GeneratorRun};
use benchmarks::{Result, argument};
use experiment::{Ratio, median};

/// The numbers of requests after which memory is measured.
const REQUESTS: [u64; 3] = [100_000, 1_000_000, 5_000_000];
/// Requests per second of the open loop.
const RATE: u64 = 20_000;
/// The maximum lag at the 99th percentile, in microseconds.
const LAG_US_MAX: f64 = 1_000.0;

/// A comparison of two generators with the same work.
struct GeneratorComparison {
    name: &'static str,
    /// The other generator's program.
    other: &'static str,
    /// How to install it.
    from: &'static str,
    arguments: fn(&NginxTarget<'_>) -> Vec<String>,
    count: CountPattern,
    /// Our options after `load`.
    ours: fn(&NginxTarget<'_>) -> Vec<String>,
    our_count: CountPattern,
    /// The goal for the ratio.
    aim: f64,
}

/// The server and the duration.
struct NginxTarget<'a> {
    nginx: &'a Nginx,
    seconds: u64,
}

const OK: CountPattern = CountPattern::Column("requests.ok");
const BARE: &str = "cargo build --release -p tlsdash-loadgen --example bare_handshakes";
const DEBIAN_WRK: &str = "apt-get install wrk";

const COMPARISONS: [GeneratorComparison; 9] = [
    GeneratorComparison {
        name: "HTTP, 64 connections, 13 bytes: wrk",
        other: "wrk",
        from: DEBIAN_WRK,
        arguments: |at| words(&format!("-t 1 -c 64 -d {}s {}", at.seconds, at.nginx.http("small"))),
        count: CountPattern::Before(" requests in"),
        ours: |at| words(&format!("{} -c 64 -d {}s", at.nginx.http("small"), at.seconds)),
        our_count: OK,
        aim: 1.0,
    },
    GeneratorComparison {
        name: "HTTPS, 64 connections, 13 bytes: wrk",
        other: "wrk",
        from: DEBIAN_WRK,
        arguments: |at| words(&format!("-t 1 -c 64 -d {}s {}", at.seconds, at.nginx.https("small"))),
        count: CountPattern::Before(" requests in"),
        ours: |at| words(&format!("{} -c 64 -d {}s --insecure", at.nginx.https("small"), at.seconds)),
        our_count: OK,
        aim: 1.0,
    },
    GeneratorComparison {
        name: "HTTP, 64 connections, 13 bytes: oha",
        other: "oha",
        from: "cargo install oha",
        arguments: |at| oha(at, &at.nginx.http("small")),
        count: CountPattern::Before(" responses"),
        ours: |at| words(&format!("{} -c 64 -d {}s", at.nginx.http("small"), at.seconds)),
        our_count: OK,
        aim: 1.4,
    },
    GeneratorComparison {
        name: "HTTPS, 64 connections, 13 bytes: oha",
        other: "oha",
        from: "cargo install oha",
        arguments: |at| oha(at, &at.nginx.https("small")),
        count: CountPattern::Before(" responses"),
        ours: |at| words(&format!("{} -c 64 -d {}s --insecure", at.nginx.https("small"), at.seconds)),
        our_count: OK,
        aim: 1.4,
    },
    GeneratorComparison {
        name: "HTTP/2, 16 connections x 32 streams, 13 bytes: h2load",
        other: "h2load",
        from: "apt-get install nghttp2-client",
        arguments: |at| words(&format!("-t 1 -c 16 -m 32 -D {} {}", at.seconds, at.nginx.https("small"))),
        count: CountPattern::Before(" succeeded"),
        ours: |at| {
            let url = at.nginx.https("small");
            words(&format!("{url} --http2 -c 16 -m 32 -d {}s --insecure", at.seconds))
        },
        our_count: OK,
        aim: 1.0,
    },
    GeneratorComparison {
        name: "full handshakes, chain and signature checked: openssl s_time -new -CAfile",
        other: "openssl",
        from: "apt-get install openssl",
        arguments: |at| {
            let (port, seconds) = (at.nginx.tls_port(), at.seconds);
            let ca = at.nginx.certificate();
            words(&format!("s_time -connect localhost:{port} -new -time {seconds} -tls1_3 -CAfile {ca}"))
        },
        count: CountPattern::Before(" connections in"),
        ours: |at| {
            let mut all = handshakes(at);
            all.retain(|word| word != "--insecure");
            all.extend(["--ca".to_owned(), at.nginx.certificate()]);
            all
        },
        our_count: CountPattern::Column("handshakes.full"),
        aim: 1.5,
    },
    GeneratorComparison {
        name: "full handshakes, signature checked by the other only: openssl s_time -new",
        other: "openssl",
        from: "apt-get install openssl",
        arguments: |at| {
            let (port, seconds) = (at.nginx.tls_port(), at.seconds);
            words(&format!("s_time -connect 127.0.0.1:{port} -new -time {seconds} -tls1_3"))
        },
        // It prints the count twice, first per second of its own CPU time.
        count: CountPattern::Before(" connections in"),
        ours: handshakes,
        our_count: CountPattern::Column("handshakes.full"),
        aim: 1.5,
    },
    GeneratorComparison {
        name: "full handshakes with a request each: a bare rustls client loop",
        other: "bare_handshakes",
        from: BARE,
        arguments: |at| words(&format!("127.0.0.1:{} {} /small", at.nginx.tls_port(), at.seconds)),
        count: CountPattern::Before(" handshakes"),
        ours: handshakes,
        our_count: CountPattern::Column("handshakes.full"),
        aim: 1.0,
    },
    GeneratorComparison {
        name: "full handshakes, a request with ours only: a bare rustls client loop",
        other: "bare_handshakes",
        from: BARE,
        arguments: |at| words(&format!("127.0.0.1:{} {}", at.nginx.tls_port(), at.seconds)),
        count: CountPattern::Before(" handshakes"),
        ours: handshakes,
        our_count: CountPattern::Column("handshakes.full"),
        aim: 1.0,
    },
];

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn oha(at: &NginxTarget<'_>, url: &str) -> Vec<String> {
    words(&format!("--no-tui --insecure -w -c 64 -z {}s {url}", at.seconds))
}

/// The other generators complete a handshake and close. Ours always sends a request, so it requests the
/// smallest answer, and carries that cost.
fn handshakes(at: &NginxTarget<'_>) -> Vec<String> {
    let url = at.nginx.https("small");
    words(&format!(
        "{url} -X HEAD -k off -c 1 -d {}s --insecure --groups X25519 --tls-version 1.3",
        at.seconds
    ))
}

/// The installed generators.
struct GeneratorPrograms {
    tlsdash: PathBuf,
    bare: Option<PathBuf>,
}

impl GeneratorPrograms {
    fn of_arguments() -> Result<Self> {
        let tlsdash = argument("program").ok_or("--program PATH is missing: the tlsdash to measure")?.into();
        Ok(Self { tlsdash, bare: argument("bare").map(PathBuf::from) })
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        if name == "bare_handshakes" {
            return self.bare.clone();
        }
        let found = Command::new("which").arg(name).stderr(Stdio::null()).output().ok()?;
        let path = String::from_utf8(found.stdout).ok()?;
        found.status.success().then(|| path.trim_end().into())
    }

    /// Runs ours with a journal, like a watched run.
    fn load(&self, at: &Nginx, words: &[String], core: usize, count: CountPattern) -> Result<GeneratorRun> {
        let mut all = vec!["load".to_owned()];
        all.extend_from_slice(words);
        let journal = at.folder().join("load.journal");
        all.extend(["--headless", "--csv", "--journal"].map(str::to_owned));
        all.push(format!("file:{}", journal.display()));
        let outcome = generator::run(&self.tlsdash, &all, core, count);
        remove_journals(at.folder())?;
        outcome
    }
}

/// Every run would keep the former journal, and many would fill the disk.
fn remove_journals(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn main() -> Result<ExitCode> {
    let programs = GeneratorPrograms::of_arguments()?;
    let pairs: usize = argument("pairs").map_or(Ok(5), |text| text.parse())?;
    let seconds: u64 = argument("seconds").map_or(Ok(4), |text| text.parse())?;
    let only = argument("only").unwrap_or_default();
    let core = std::thread::available_parallelism()?.get() - 1;
    if core == 0 {
        return Err("two cores are needed: one for the server and one for the generator".into());
    }
    let nginx = Nginx::start(0)?;
    let place = NginxTarget { nginx: &nginx, seconds };
    let mut is_complete = true;
    for comparison in COMPARISONS.iter().filter(|comparison| comparison.name.contains(&only)) {
        is_complete &= compare(&programs, comparison, &place, pairs, core)?;
    }
    if "memory".contains(&only) {
        memory(&programs, &nginx, core)?;
    }
    if "lag".contains(&only) {
        lag(&programs, &place, pairs, core)?;
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the pairs and prints the comparison; returns false if the other generator is missing.
fn compare(
    programs: &GeneratorPrograms,
    comparison: &GeneratorComparison,
    place: &NginxTarget<'_>,
    pairs: usize,
    core: usize,
) -> Result<bool> {
    let Some(other) = programs.find(comparison.other) else {
        println!("{}: MISSING, {} is not installed: {}", comparison.name, comparison.other, comparison.from);
        return Ok(false);
    };
    let theirs = || generator::run(&other, &(comparison.arguments)(place), core, comparison.count);
    let ours = || programs.load(place.nginx, &(comparison.ours)(place), core, comparison.our_count);
    let mut measured = Vec::new();
    for pair in 0..pairs {
        let (theirs, ours) = if pair % 2 == 0 {
            let first = theirs()?;
            (first, ours()?)
        } else {
            let first = ours()?;
            (theirs()?, first)
        };
        eprintln!(
            "{}: {:.0} and ours {:.0}",
            comparison.name,
            theirs.per_cpu_second(),
            ours.per_cpu_second()
        );
        measured.push((theirs.per_cpu_second(), ours.per_cpu_second()));
    }
    let ratios = || measured.iter().map(|(theirs, ours)| ours / theirs);
    let (low, high) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
    let mean = Ratio::of_pairs(&measured);
    println!(
        "{}: {:.2} (pairs from {low:.2} to {high:.2}; mean {:.2}, 95 % {:.2} to {:.2}; aim {:.1}); a CPU-second: {:.0}, ours {:.0}",
        comparison.name,
        median(ratios()),
        mean.mean,
        mean.low,
        mean.high,
        comparison.aim,
        median(measured.iter().map(|(theirs, _)| *theirs)),
        median(measured.iter().map(|(_, ours)| *ours)),
    );
    Ok(true)
}

/// Prints the peak memory after each number of requests.
fn memory(programs: &GeneratorPrograms, nginx: &Nginx, core: usize) -> Result<()> {
    for requests in REQUESTS {
        let words = words(&format!("{} -c 64 -n {requests}", nginx.http("small")));
        let outcome = programs.load(nginx, &words, core, OK)?;
        println!("memory after {} requests: at most {} KiB", outcome.done, outcome.peak_kib);
    }
    Ok(())
}

/// Prints the lag of an open loop in several tries; it includes other programs on the core.
fn lag(programs: &GeneratorPrograms, place: &NginxTarget<'_>, tries: usize, core: usize) -> Result<()> {
    let url = place.nginx.http("small");
    let words = words(&format!("{url} -c 64 -r {RATE} --warmup 1s -d {}s", place.seconds + 1));
    // Whole microseconds suffice. The warm-up opens the connections.
    for column in ["lag.p50", "lag.p99", "lag.p999", "lag.max"] {
        let mut all = Vec::new();
        for _ in 0..tries {
            all.push(programs.load(place.nginx, &words, core, CountPattern::Column(column))?.done as f64);
        }
        let best = all.iter().copied().fold(f64::MAX, f64::min);
        println!(
            "{column} at {RATE}/s, us: best {best:.0}, median {:.0}, all {all:?}; aim at p99 {LAG_US_MAX}",
            median(all.clone())
        );
    }
    Ok(())
}
