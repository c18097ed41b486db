//! Measures how long exchanges on established connections take while many other clients connect, beside
//! `HAProxy` and nginx.
//!
//! `just bench-burst [--rounds N] [--seconds S] [--rate HANDSHAKES_A_SECOND]`. Each terminator has one worker
//! on its own core, and an RSA-2048 certificate. It is offered 1,000 handshakes a second, and twice as many
//! as the program completes here. Each round measures every terminator in random order; ratios are within
//! rounds.
//!
//! `just bench-flood [--rounds N] [--seconds S]`: 10,000 addresses connect as often as they can, and may once a
//! minute; `HAProxy` counts them in a stick table.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what this program is for")]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process::ExitCode;
use std::time::Duration;

use bench::scenario::CommandServer;
use bench::template::ServerTemplate;
use benchmarks::burst::{self, Burst, BurstConditions, Crowd};
use benchmarks::{Result, argument, move_to_last_core};
use experiment::{Ratio, median};

/// A measured terminator: its name, and how it is started.
type Peer = (&'static str, CommandServer);

/// How `HAProxy` lets an address connect once a minute.
const ONCE_A_MINUTE: &str = "stick-table type ip size 100k expire 60s store conn_rate(60s)
    tcp-request connection track-sc0 src
    tcp-request connection reject if { sc0_conn_rate gt 1 }
    default_backend";
/// The goal beside [`AIM_PEER`]: p99 at most as long, with the interval's upper end below this.
const AIM_HIGH: f64 = 1.2;
const AIM_PEER: &str = "HAProxy";

fn main() -> Result<ExitCode> {
    let is_flood = argument("flood").is_some();
    let rounds: usize = argument("rounds").map_or(Ok(14), |text| text.parse())?;
    let seconds: f64 = argument("seconds").map_or(Ok(2.0), |text| text.parse())?;
    let rate: u32 = argument("rate").map_or(Ok(1_000), |text| text.parse())?;
    let program = argument("program").ok_or("--program PATH is missing: the tlsdash to measure")?.into();
    burst::allow_all_descriptors()?;
    let core = move_to_last_core()?;
    let conditions = BurstConditions { program, core, length: Duration::from_secs_f64(seconds) };
    let peers = if is_flood { peers_with_bounds()? } else { peers()? };
    let crowds = if is_flood {
        println!("{rounds} rounds of {seconds} s\n");
        vec![("flood".to_owned(), Crowd::flood())]
    } else {
        let completed = conditions.handshakes_completed(&peers[0].1)?;
        println!("{rounds} rounds of {seconds} s; tlsdash completes {completed:.0} handshakes/s\n");
        let offered = [rate, (2.0 * completed) as u32];
        offered.map(|offered| (offered.to_string(), Crowd::burst(offered))).into()
    };
    println!(
        "| offered/s | terminator | completed/s | refused/s | p50 ms | p99 ms | tlsdash's p99 to its, 95 % interval | tlsdash's connections to its | aim |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut reached = true;
    for (offered, crowd) in &crowds {
        let samples = run(&conditions, &peers, rounds, crowd);
        reached &= report(&samples, &peers, offered);
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the terminators; the program comes first.
fn peers() -> Result<Vec<Peer>> {
    let templates = [("tlsdash", "tlsdash-tcp"), (AIM_PEER, "haproxy-tcp"), ("nginx", "nginx-stream")];
    let peer = |(name, template)| {
        let known = ServerTemplate::named(template).ok_or_else(|| format!("there is no {template}"))?;
        Ok((name, known.server()?))
    };
    templates.into_iter().map(peer).collect()
}

/// Returns those that let an address connect once a minute.
fn peers_with_bounds() -> Result<Vec<Peer>> {
    let mut peers = peers()?;
    peers.truncate(2);
    let [(_, tlsdash), (_, haproxy)] = &mut peers[..] else { return Err("there are too few peers".into()) };
    tlsdash.command.extend(["--connection-rate", "1/m"].map(str::to_owned));
    for config in haproxy.files.values_mut() {
        *config = config.replace("default_backend", ONCE_A_MINUTE);
    }
    Ok(peers)
}

/// For each round, the result of each terminator, or `None` if it failed.
type BurstRounds = Vec<Vec<Option<Burst>>>;

fn run(conditions: &BurstConditions, peers: &[Peer], rounds: usize, crowd: &Crowd) -> BurstRounds {
    let mut samples = BurstRounds::new();
    for round in 1..=rounds {
        let mut taken = vec![None; peers.len()];
        for index in shuffled(peers.len()) {
            let (name, server) = &peers[index];
            match conditions.take(server, crowd) {
                Ok(burst) => {
                    let Burst { completed, refused, p50_s, p99_s, lag_p99_s } = burst;
                    let [p50, p99, lag] = [p50_s, p99_s, lag_p99_s].map(|s| s * 1e3);
                    eprintln!(
                        "{round}, {name}: {completed:.0}/s, {refused:.0} refused/s, p50 {p50:.3} ms, \
                         p99 {p99:.3} ms, p99 of the generator's lag {lag:.3} ms"
                    );
                    taken[index] = Some(burst);
                }
                Err(error) => eprintln!("{round}, {name}: {error}"),
            }
        }
        samples.push(taken);
    }
    samples
}

/// Returns the numbers below `n` in random order.
fn shuffled(n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let keys = RandomState::new();
    order.sort_by_cached_key(|index| keys.hash_one(index));
    order
}

/// Prints a line per terminator; returns false if the goal was missed.
fn report(samples: &BurstRounds, peers: &[Peer], offered: &str) -> bool {
    let mut reached = true;
    for (index, (name, _)) in peers.iter().enumerate() {
        let all =
            |of: fn(&Burst) -> f64| median(samples.iter().filter_map(|round| round[index].as_ref().map(of)));
        let (completed, refused) = (all(|burst| burst.completed), all(|burst| burst.refused));
        let (p50, p99) = (all(|burst| burst.p50_s) * 1e3, all(|burst| burst.p99_s) * 1e3);
        print!("| {offered} | {name} | {completed:.0} | {refused:.0} | {p50:.2} | {p99:.2} |");
        if index == 0 {
            println!(" | | |");
            continue;
        }
        let ratio = |of: fn(&Burst) -> f64| {
            let pair =
                |round: &Vec<Option<Burst>>| Some((of(round[index].as_ref()?), of(round[0].as_ref()?)));
            Ratio::of_pairs(&samples.iter().filter_map(pair).collect::<Vec<_>>())
        };
        let (latency, work) = (ratio(|burst| burst.p99_s), ratio(|burst| burst.completed + burst.refused));
        let mut aim = String::new();
        if *name == AIM_PEER {
            let is_reached = latency.mean <= 1.0 && latency.high < AIM_HIGH;
            aim = format!("≤ 1, interval < {AIM_HIGH}{}", if is_reached { "" } else { " **missed**" });
            reached &= is_reached;
        }
        let show = |Ratio { mean, low, high, .. }| format!("{mean:.2} ({low:.2} to {high:.2})");
        println!(" {} | {} | {aim} |", show(latency), show(work));
    }
    reached
}
