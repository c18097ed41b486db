//! Compares the proxy with the installed terminators: work per CPU-second, and memory.
//!
//! `just bench-peers [--only PART_OF_A_NAME] [--peers NAME,...] [--rounds N] [--seconds S] [--workers N]
//! [--sozu PATH]`. Each round measures every terminator in direct succession, starting with a different one
//! each time; ratios are within rounds. `docs/performance.md` says how reliable the figures are.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what this program is for")]

use std::process::ExitCode;
use std::time::Duration;

use benchmarks::peers::{
    self, CASES, Certificates, Conditions, Goal, InstalledPeer, PeerCase, PeerFigure, PeerKind, PeerSample,
};
use benchmarks::{Result, argument, move_to_last_core};
use experiment::{Ratio, median};

fn main() -> Result<ExitCode> {
    let rounds: usize = argument("rounds").map_or(Ok(5), |text| text.parse())?;
    let seconds: f64 = argument("seconds").map_or(Ok(3.0), |text| text.parse())?;
    let workers: usize = argument("workers").map_or(Ok(1), |text| text.parse())?;
    let only = argument("only").unwrap_or_default();
    peers::allow_all_descriptors()?;
    peers::terminate_children_on_signal()?;
    let core = if workers == 1 { Some(move_to_last_core()?) } else { None };
    let conditions = Conditions { workers, core, length: Duration::from_secs_f64(seconds) };
    let folder = tempfile::tempdir()?;
    let certificates = peers::certificates(folder.path())?;
    let found = InstalledPeer::find(folder.path())?;
    for InstalledPeer { kind, version, .. } in &found {
        println!("{kind} {version}");
    }
    println!("{rounds} rounds of {seconds} s, {workers} workers\n");
    println!("| case | terminator | figure | ratio, 95 % interval | aim | cores in use |");
    println!("|---|---|---|---|---|---|");
    let mut reached = true;
    for case in CASES.iter().filter(|case| case.name.contains(&only)) {
        let samples = run(case, &found, &certificates, conditions, rounds);
        reached &= report(case, &found, &samples);
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// For each round, the result of each terminator, or `None` if it failed.
type PeerRounds = Vec<Vec<Option<PeerSample>>>;

fn run(
    case: &PeerCase,
    found: &[InstalledPeer],
    certificates: &Certificates,
    conditions: Conditions,
    rounds: usize,
) -> PeerRounds {
    let mut samples = PeerRounds::new();
    for round in 0..rounds {
        let mut taken = vec![None; found.len()];
        for turn in 0..found.len() {
            let index = (round + turn) % found.len();
            let peer = &found[index];
            match peers::take(peer, case, certificates, conditions) {
                Ok(sample) => {
                    let PeerSample { value, utilisation } = sample;
                    let unit = case.figure.unit();
                    eprintln!(
                        "{}, {}, {}: {value:.1} {unit}, {utilisation:.2}",
                        case.name,
                        round + 1,
                        peer.kind
                    );
                    taken[index] = Some(sample);
                }
                Err(error) => eprintln!("{}, {}, {}: {error}", case.name, round + 1, peer.kind),
            }
        }
        samples.push(taken);
    }
    samples
}

/// Prints a line per terminator; returns false if a goal was missed.
fn report(case: &PeerCase, found: &[InstalledPeer], samples: &PeerRounds) -> bool {
    let mut reached = true;
    for (index, peer) in found.iter().enumerate() {
        let mine = || samples.iter().filter_map(|round| round[index]);
        if mine().count() == 0 {
            println!("| {} | {} | failed | | | |", case.name, peer.kind);
            reached &= peer.kind != PeerKind::Tlsdash;
            continue;
        }
        let value = median(mine().map(|sample| sample.value));
        let utilisation = median(mine().map(|sample| sample.utilisation));
        // The program comes first.
        let pairs: Vec<_> =
            samples.iter().filter_map(|round| Some((round[index]?.value, round[0]?.value))).collect();
        let Ratio { mean, low, high, .. } = Ratio::of_pairs(&pairs);
        let is_program = peer.kind == PeerKind::Tlsdash;
        let (aim, is_reached) = aim(case, peer.kind, if is_program { value } else { mean });
        reached &= is_reached;
        let ratio = if is_program { String::new() } else { format!("{mean:.2} ({low:.2} to {high:.2})") };
        let figure = match case.figure {
            PeerFigure::Work => format!("{value:.0}"),
            PeerFigure::KibPerConnection | PeerFigure::MibWithoutConnection => {
                format!("{value:.1} {}", case.figure.unit())
            }
        };
        let used = if case.figure == PeerFigure::Work { format!("{utilisation:.2}") } else { String::new() };
        println!("| {} | {} | {figure} | {ratio} | {aim} | {used} |", case.name, peer.kind);
    }
    reached
}

/// Returns the goal beside this terminator, and whether it was reached.
fn aim(case: &PeerCase, kind: PeerKind, reached: f64) -> (String, bool) {
    for goal in case.goals {
        let (text, is_reached) = match *goal {
            Goal::Times(peer, times) if peer == kind => (format!("≥ {times}"), reached >= times),
            Goal::AtMost(most) if kind == PeerKind::Tlsdash => (format!("≤ {most}"), reached <= most),
            _ => continue,
        };
        let verdict = if is_reached { "" } else { " **missed**" };
        return (text + verdict, is_reached);
    }
    (String::new(), true)
}
