//! Measures what watching costs: the proxy's work per CPU-second with records against `--journal off`.
//!
//! `just bench-watching [--only PART_OF_A_NAME] [--pairs N] [--seconds S]` gives two answers for each of
//! its situations, three in TCP mode and six in HTTP mode; `docs/measurements.md` describes the method and its limits:
//!
//! 1. By instructions. Callgrind counts the worker's instructions for a request, and those for an interval's
//!    records. Callgrind slows the program but not the clock, so the two are counted separately, and combined
//!    with the program's rate without callgrind.
//! 2. By CPU time, in pairs of runs without and with records, in direct succession: that of the other
//!    threads, which ignores their effect on the worker's caches, and requests per CPU-second, which include it
//!    and are noisier.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what this program is for")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use benchmarks::interval::IntervalTraffic;
use benchmarks::interval::counted::{self, IntervalCost};
use benchmarks::load::{BenchmarkUpstream, ServeMode, Shape, counted};
use benchmarks::terminator::{Journal, PerRequest, Terminator};
use benchmarks::{Result, argument, move_to_last_core};
use experiment::{Ratio, median};
use loadgen::{KeepAlive, Plan};
use records::metrics::LoadCounter;

/// The share of work that must remain.
const KEPT_MIN: f64 = 0.97;
/// The minimum duration of the load before a measurement.
const WARM_UP: Duration = Duration::from_secs(1);
/// The time limit until every source address has connected once.
const WARM_UP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const ANSWER_BYTES: u64 = 100;

/// The clients' behaviour.
struct Situation {
    name: &'static str,
    mode: ServeMode,
    plan: &'static str,
    /// The same mix over few connections. So callgrind meets returning clients within few requests, and does
    /// not count the memory of hundreds of slow connections served at once, which is rare without it.
    brief: &'static str,
    /// The requests that callgrind counts.
    requests: u64,
}

const ONE_ROUTE: ServeMode = ServeMode::Http { routes: 1 };
const FIFTY_ROUTES: ServeMode = ServeMode::Http { routes: 50 };

const SITUATIONS: [Situation; 9] = [
    Situation {
        name: "one client address",
        mode: ServeMode::Tcp,
        plan: "connections=64,keep-alive=on,source-addresses=1",
        brief: "connections=8,keep-alive=on,source-addresses=1",
        requests: 5_000,
    },
    Situation {
        name: "200 active",
        mode: ServeMode::Tcp,
        plan: "connections=200,keep-alive=on,source-addresses=200",
        brief: "connections=8,keep-alive=on,source-addresses=8",
        requests: 5_000,
    },
    Situation {
        name: "10,000 seen",
        mode: ServeMode::Tcp,
        plan: "connections=200,keep-alive=5,resume=80%,source-addresses=10000",
        brief: "connections=8,keep-alive=5,resume=80%,source-addresses=8",
        requests: 1_000,
    },
    one_client("HTTP, one client address, 1 route", ONE_ROUTE),
    one_client("HTTP, one client address, 50 routes", FIFTY_ROUTES),
    many_clients("HTTP, 200 active, 1 route", ONE_ROUTE),
    many_clients("HTTP, 200 active, 50 routes", FIFTY_ROUTES),
    new_clients("HTTP, 10,000 seen, 1 route", ONE_ROUTE),
    new_clients("HTTP, 10,000 seen, 50 routes", FIFTY_ROUTES),
];

const fn one_client(name: &'static str, mode: ServeMode) -> Situation {
    Situation {
        name,
        mode,
        plan: "connections=16,keep-alive=on,http2=on,streams=8,source-addresses=1",
        brief: "connections=4,keep-alive=on,http2=on,streams=2,source-addresses=1",
        requests: 4_000,
    }
}

const fn many_clients(name: &'static str, mode: ServeMode) -> Situation {
    Situation {
        name,
        mode,
        plan: "connections=200,keep-alive=on,http2=on,streams=2,source-addresses=200",
        brief: "connections=8,keep-alive=on,http2=on,streams=2,source-addresses=8",
        requests: 4_000,
    }
}

const fn new_clients(name: &'static str, mode: ServeMode) -> Situation {
    Situation {
        name,
        mode,
        plan: "connections=200,keep-alive=5,resume=80%,source-addresses=10000",
        brief: "connections=8,keep-alive=5,resume=80%,source-addresses=8",
        requests: 1_000,
    }
}

impl Situation {
    /// Returns the traffic of an interval of a second in which the proxy answers `requests`.
    fn traffic(&self, requests: f64) -> Result<IntervalTraffic> {
        let plan: Plan = self.plan.parse()?;
        let connections = match plan.keepalive {
            KeepAlive::Requests(n) => requests as u64 / u64::from(n),
            KeepAlive::Unlimited => 0,
        };
        let clients_seen = plan.sources.unwrap_or(1);
        let clients_active = clients_seen.min(plan.connections + connections as u32);
        Ok(IntervalTraffic {
            requests: requests as u64,
            connections,
            resumed: plan.resume,
            clients_active,
            clients_seen,
            routes: match self.mode {
                ServeMode::Tcp => 0,
                ServeMode::Http { routes } => routes,
            },
        })
    }
}

fn main() -> Result<ExitCode> {
    if let Some(records) = counted::run_if_asked()? {
        println!("{records}");
        return Ok(ExitCode::SUCCESS);
    }
    let program: PathBuf =
        argument("program").ok_or("--program PATH is missing: the tlsdash to measure")?.into();
    let pairs: usize = argument("pairs").map_or(Ok(10), |text| text.parse())?;
    let seconds: f64 = argument("seconds").map_or(Ok(4.0), |text| text.parse())?;
    let only = argument("only").unwrap_or_default();
    let core = move_to_last_core()?;
    let mut is_kept = true;
    for situation in SITUATIONS.iter().filter(|situation| situation.name.contains(&only)) {
        let natively = natively(&program, situation, pairs, Duration::from_secs_f64(seconds), core)?;
        let off = natively.iter().map(|(off, _)| off.per_cpu_second());
        let counts = Counts::take(&program, situation, median(off))?;
        is_kept &= counts.kept() >= KEPT_MIN;
        report(situation, &natively, &counts);
    }
    println!(
        "by instructions at least {:.0} % is left: {}",
        KEPT_MIN * 100.0,
        if is_kept { "yes" } else { "NO" }
    );
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One run of the program.
struct RunSample {
    requests: u64,
    elapsed: Duration,
    /// The CPU time of the workers.
    working: Duration,
    /// The CPU time of all other threads.
    watching: Duration,
}

impl RunSample {
    fn per_cpu_second(&self) -> f64 {
        self.requests as f64 / (self.working + self.watching).as_secs_f64()
    }

    /// Returns the share of a fully used core that the other threads leave to the worker.
    fn left_to_the_worker(&self) -> f64 {
        1.0 - self.watching.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    fn watching_ms_per_s(&self) -> f64 {
        self.watching.as_secs_f64() * 1e3 / self.elapsed.as_secs_f64()
    }

    fn utilisation(&self) -> f64 {
        (self.working + self.watching).as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

/// Runs pairs without and with records; the order alternates.
fn natively(
    program: &Path,
    situation: &Situation,
    pairs: usize,
    length: Duration,
    core: usize,
) -> Result<Vec<(RunSample, RunSample)>> {
    let mut samples = Vec::new();
    for pair in 0..pairs {
        let run = |journal| sample(program, situation, journal, length, core);
        let (off, on) = if pair % 2 == 0 {
            let off = run(Journal::Off)?;
            (off, run(Journal::On)?)
        } else {
            let on = run(Journal::On)?;
            (run(Journal::Off)?, on)
        };
        eprintln!(
            "{}, pair {}: {:.0} and {:.0} requests a CPU-second",
            situation.name,
            pair + 1,
            off.per_cpu_second(),
            on.per_cpu_second()
        );
        samples.push((off, on));
    }
    Ok(samples)
}

fn sample(
    program: &Path,
    situation: &Situation,
    journal: Journal,
    length: Duration,
    core: usize,
) -> Result<RunSample> {
    let upstream = BenchmarkUpstream::start()?;
    let shape = Shape::get_in(situation.mode, situation.plan, ANSWER_BYTES);
    let terminator = Terminator::natively(program, &upstream, &shape, journal, core)?;
    let plan: Plan = situation.plan.parse()?;
    let mut load = shape.start(terminator.addr(), "")?;
    let begun = Instant::now();
    let mut opened = 0;
    while begun.elapsed() < WARM_UP || opened < u64::from(plan.sources.unwrap_or(1)) {
        if begun.elapsed() > WARM_UP_MAX {
            return Err(format!("only {opened} connections in {WARM_UP_MAX:?}").into());
        }
        std::thread::sleep(POLL);
        opened += counted(&mut load)[LoadCounter::Opened];
    }
    let (cpu_before, from) = (terminator.cpu()?, Instant::now());
    std::thread::sleep(length);
    let counts = counted(&mut load);
    let (cpu_after, elapsed) = (terminator.cpu()?, from.elapsed());
    drop(load);
    terminator.end()?;
    if counts[LoadCounter::Failed] > 0 {
        return Err(format!("{} requests failed", counts[LoadCounter::Failed]).into());
    }
    let used = |workers: bool| -> Duration {
        let threads = cpu_after.iter().filter(|(name, _)| name.starts_with("proxy") == workers);
        threads
            .map(|(name, after)| after.saturating_sub(cpu_before.get(name).copied().unwrap_or_default()))
            .sum()
    };
    Ok(RunSample { requests: counts[LoadCounter::Ok], elapsed, working: used(true), watching: used(false) })
}

/// Callgrind's counts.
struct Counts {
    /// The program's requests per CPU-second without records and without callgrind.
    requests: f64,
    /// The worker's instructions for one request.
    request: PerRequest,
    on: IntervalCost,
    off: IntervalCost,
}

impl Counts {
    fn take(program: &Path, situation: &Situation, requests: f64) -> Result<Self> {
        let shape = Shape::get_in(situation.mode, situation.brief, ANSWER_BYTES);
        let request = PerRequest::count(program, &shape, situation.requests)?;
        let traffic = situation.traffic(requests)?;
        let interval = |with_journal| IntervalCost::count(&traffic, with_journal);
        Ok(Self { requests, request, on: interval(true)?, off: interval(false)? })
    }

    /// Returns the worker's instructions in a CPU-second.
    fn work(&self) -> f64 {
        self.requests * self.request.total
    }

    /// Returns the share of work that records leave.
    fn kept(&self) -> f64 {
        1.0 - (self.on.total() - self.off.total()) / self.work()
    }
}

fn report(situation: &Situation, natively: &[(RunSample, RunSample)], counts: &Counts) {
    let of = |figure: fn(&RunSample) -> f64| {
        (
            median(natively.iter().map(|(off, _)| figure(off))),
            median(natively.iter().map(|(_, on)| figure(on))),
        )
    };
    let line = |name: &str, (off, on): (f64, f64), digits: usize| {
        println!("  {name:<42}{off:>14.digits$}{on:>14.digits$}");
    };
    println!("{} ({})", situation.name, situation.plan);
    println!("  {:<42}{:>14}{:>14}", "", "records off", "records on");
    line("requests a CPU-second", of(RunSample::per_cpu_second), 0);
    line("CPU of all threads but the worker, ms a s", of(RunSample::watching_ms_per_s), 2);
    line("share of the proxy's core in use", of(RunSample::utilisation), 2);
    line("instructions of the worker a request", (counts.request.total, counts.request.total), 0);
    line("  counting and timing, of them", (counts.request.counting, counts.request.counting), 0);
    let thousands =
        |name, of: fn(&IntervalCost) -> f64| line(name, (of(&counts.off) / 1e3, of(&counts.on) / 1e3), 0);
    thousands("instructions of watching a second, 1,000", IntervalCost::total);
    thousands("  gathering what was counted", |interval| interval.gather);
    thousands("  making, encoding and writing records", |interval| interval.publish);
    thousands("  finding and decoding them", |interval| interval.follow);
    thousands("  the model", |interval| interval.fold);
    line("records a second", (counts.off.records, counts.on.records), 1);
    println!("  work left, by instructions: {:.2} %", counts.kept() * 100.0);
    for (name, figure) in [
        ("CPU time of the other threads", RunSample::left_to_the_worker as fn(&RunSample) -> f64),
        ("requests a CPU-second", RunSample::per_cpu_second),
    ] {
        let pairs: Vec<_> = natively.iter().map(|(off, on)| (figure(off), figure(on))).collect();
        let Ratio { mean, low, high, .. } = Ratio::of_pairs(&pairs);
        let [mean, low, high] = [mean, low, high].map(|share| share * 100.0);
        println!("  work left, by {name}: {mean:.2} % [{low:.2} to {high:.2}], {} pairs", pairs.len());
    }
    println!();
}
