//! Why the figures of a cell are less certain than they seem.

use model::figures::{BUSY_MAX, generator_limits};
use records::text::Cpus;

use crate::results::{Doubt, DoubtScope, MachineUsage, NegotiatedParameters, ResourceUsage};
use crate::run::disturbance::{self, percent};
use crate::run::recording::{GENERATOR_BUSY, LoadRecording};
use crate::scenario::LatencyBound;

/// From this share of the requests on, those that were answered in the turns of others disturb all figures.
const OUTSIDE_MAX: f64 = 0.1;
/// Below this CPU time, a process's occasional work matters: the kernel's clock is exact, but the load is not
/// constant.
const CPU_US_MIN: u64 = 50_000;

/// The state of a cell after its load.
#[derive(Debug)]
pub(super) struct CellEvidence<'a> {
    pub(super) recording: &'a LoadRecording,
    pub(super) target: Option<&'a ResourceUsage>,
    pub(super) load: &'a ResourceUsage,
    pub(super) upstream: Option<&'a ResourceUsage>,
    pub(super) machine: &'a MachineUsage,
    /// True if bench started the target and its upstream: all their processes are known.
    pub(super) is_started: bool,
    /// The parameters that the target should negotiate.
    pub(super) expected: Option<&'a NegotiatedParameters>,
    /// The latency bound of a capacity case.
    pub(super) bound: Option<LatencyBound>,
    /// True if each rate of the search for a capacity kept the bound.
    pub(super) is_lower_bound: bool,
    /// The requests that were answered in the target's turns; `None` without turns.
    pub(super) answered_in_turns: Option<u64>,
    /// All cores of generator and upstream, if they share any.
    pub(super) shared_cores: Option<&'a Cpus>,
    pub(super) upstream_threads: u32,
}

pub(super) fn doubts(evidence: &CellEvidence<'_>) -> Vec<Doubt> {
    let all = |reason: String| Doubt { spoils: DoubtScope::All, reason };
    let latency = |reason: String| Doubt { spoils: DoubtScope::RateAndLatency, reason };
    let failed = failures(evidence).map(all);
    let other_parameters = negotiated(evidence).map(all);
    let machine = disturbance::doubts(evidence.machine, evidence.is_started);
    let outside = outside_turns(evidence).map(all);
    let too_little = too_little_cpu(evidence).map(|reason| Doubt { spoils: DoubtScope::Usage, reason });
    let (generator_busy, late) = (evidence.recording.figure(GENERATOR_BUSY), evidence.recording.late_share);
    let limits = generator_limits(generator_busy, late)
        .into_iter()
        .map(|limit| latency(format!("generator: {limit}")));
    let busy = saturated(evidence).into_iter().map(latency);
    let rate = rate_missed(evidence.recording).map(latency);
    let capacity = capacity(evidence).map(latency);
    failed
        .into_iter()
        .chain(other_parameters)
        .chain(machine)
        .chain(outside)
        .chain(too_little)
        .chain(limits)
        .chain(busy)
        .chain(rate)
        .chain(capacity)
        .collect()
}

fn failures(evidence: &CellEvidence<'_>) -> Option<String> {
    let recording = evidence.recording;
    let failed = recording.figure("requests.failed");
    if recording.figure("requests.answered") == 0.0 {
        return Some("no request was answered".to_owned());
    }
    (failed > 0.0).then(|| format!("{failed:.0} requests failed: {}", recording.failures.join(", ")))
}

fn negotiated(evidence: &CellEvidence<'_>) -> Option<String> {
    let expected = evidence.expected?;
    let other = evidence.recording.negotiated.iter().find(|found| !found.agrees_with(expected))?;
    Some(format!("connections negotiated {other} and not {expected}"))
}

/// A load that began late, or a target that lags behind.
fn outside_turns(evidence: &CellEvidence<'_>) -> Option<String> {
    let answered = Some(evidence.recording.figure("requests.answered")).filter(|answered| *answered > 0.0)?;
    let share = 1.0 - evidence.answered_in_turns? as f64 / answered;
    (share > OUTSIDE_MAX).then(|| {
        format!(
            "{} of the requests were answered after the target's turns: make turns longer, or write turns = \"off\"",
            percent(share)
        )
    })
}

fn too_little_cpu(evidence: &CellEvidence<'_>) -> Option<String> {
    let used_us = evidence.target?.cpu_us();
    (used_us < CPU_US_MIN).then(|| {
        format!(
            "the target used {:.0} ms of CPU time, too little to measure: make the case longer",
            used_us as f64 / 1e3
        )
    })
}

/// Generator and upstream at the limit of their cores.
fn saturated(evidence: &CellEvidence<'_>) -> Vec<String> {
    let busy = |used_us: u64, wall_us: u64, cores: u32| {
        (used_us as f64 / (wall_us.max(1) as f64 * f64::from(cores.max(1)))).min(1.0)
    };
    let mut reasons = Vec::new();
    if let Some(upstream) = evidence.upstream {
        let busy = busy(upstream.cpu_us(), upstream.wall_us, evidence.upstream_threads);
        if busy > BUSY_MAX {
            reasons.push(format!("the upstream was busy {:.0} % of the time", busy * 100.0));
        }
    }
    if let Some(cores) = evidence.shared_cores {
        let used_us = evidence.load.cpu_us() + evidence.upstream.map_or(0, ResourceUsage::cpu_us);
        let busy = busy(used_us, evidence.load.wall_us, cores.count() as u32);
        if busy > BUSY_MAX {
            let busy = busy * 100.0;
            let word = if cores.count() == 1 { "core" } else { "cores" };
            reasons.push(format!("generator and upstream kept {word} {cores} busy {busy:.0} % of the time"));
        }
    }
    reasons
}

fn rate_missed(recording: &LoadRecording) -> Option<String> {
    let (wanted, achieved) = (recording.figure("rate.wanted"), recording.figure("rate.achieved"));
    (!recording.is_rate_achieved)
        .then(|| format!("{achieved:.0} of {wanted:.0} requests per second were answered"))
}

/// A capacity that is none: the bound does not hold at its rate, or no rate broke it.
fn capacity(evidence: &CellEvidence<'_>) -> Option<String> {
    let LatencyBound { percentile, limit_us } = evidence.bound?;
    let limit_ms = limit_us as f64 / 1e3;
    let measured_us = evidence.recording.response_at(percentile)?;
    if measured_us >= limit_us {
        let shown = measured_us as f64 / 1e3;
        return Some(format!("p{percentile} was {shown} ms and not below {limit_ms} ms"));
    }
    evidence.is_lower_bound.then(|| {
        format!("each rate that was tried kept p{percentile} below {limit_ms} ms: the most is higher")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound cell: a thousand requests in a second.
    struct SoundCell {
        recording: LoadRecording,
        target: ResourceUsage,
        load: ResourceUsage,
        upstream: ResourceUsage,
        machine: MachineUsage,
        is_started: bool,
        expected: Option<NegotiatedParameters>,
        shared_cores: Option<Cpus>,
        bound: Option<LatencyBound>,
        is_lower_bound: bool,
        answered_in_turns: Option<u64>,
    }

    fn used(cpu_us: u64) -> ResourceUsage {
        ResourceUsage { user_us: cpu_us, wall_us: 1_000_000, ..ResourceUsage::default() }
    }

    fn negotiated(cipher: &str) -> NegotiatedParameters {
        let [version, group] = ["TLSv1.3", "X25519"].map(str::to_owned);
        NegotiatedParameters { version, cipher: cipher.to_owned(), group, alpn: String::new() }
    }

    /// The doubts of a sound cell after `change`.
    fn doubts_of(change: impl FnOnce(&mut SoundCell)) -> Vec<(DoubtScope, String)> {
        let figures = [("requests.answered".to_owned(), 1_000.0)].into();
        let recording = LoadRecording { figures, is_rate_achieved: true, ..LoadRecording::default() };
        let mut cell = SoundCell {
            recording,
            target: used(500_000),
            load: used(300_000),
            upstream: used(100_000),
            machine: MachineUsage::default(),
            is_started: true,
            expected: None,
            shared_cores: None,
            bound: None,
            is_lower_bound: false,
            answered_in_turns: None,
        };
        change(&mut cell);
        let doubts = doubts(&CellEvidence {
            recording: &cell.recording,
            target: Some(&cell.target),
            load: &cell.load,
            upstream: Some(&cell.upstream),
            machine: &cell.machine,
            is_started: cell.is_started,
            expected: cell.expected.as_ref(),
            shared_cores: cell.shared_cores.as_ref(),
            bound: cell.bound,
            is_lower_bound: cell.is_lower_bound,
            answered_in_turns: cell.answered_in_turns,
            upstream_threads: 1,
        });
        doubts.into_iter().map(|doubt| (doubt.spoils, doubt.reason)).collect()
    }

    /// The only doubt after `change`.
    fn doubt_of(change: impl FnOnce(&mut SoundCell)) -> (DoubtScope, String) {
        let mut doubts = doubts_of(change);
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        doubts.remove(0)
    }

    #[test]
    fn a_sound_cell_has_no_doubts() {
        assert_eq!(doubts_of(|_| {}), []);
    }

    #[test]
    fn failures_and_other_ciphers_spoil_every_figure() {
        let failed = doubt_of(|cell| {
            cell.recording.figures.insert("requests.failed".to_owned(), 3.0);
            cell.recording.failures = vec!["status 502 (3)".to_owned()];
        });
        assert_eq!(failed, (DoubtScope::All, "3 requests failed: status 502 (3)".to_owned()));
        let silent = doubt_of(|cell| cell.recording.figures.clear());
        assert_eq!(silent, (DoubtScope::All, "no request was answered".to_owned()));
        let other = doubt_of(|cell| {
            cell.expected = Some(negotiated("TLS_AES_128_GCM_SHA256"));
            cell.recording.negotiated = vec![negotiated("TLS_AES_256_GCM_SHA384")];
        });
        assert_eq!(other.0, DoubtScope::All);
        assert!(other.1.contains("negotiated TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 and not"), "{}", other.1);
    }

    #[test]
    fn a_generator_at_its_limit_leaves_the_cost() {
        let busy = doubt_of(|cell| {
            cell.recording.figures.insert(GENERATOR_BUSY.to_owned(), 0.95);
        });
        assert_eq!(busy.0, DoubtScope::RateAndLatency);
        assert!(busy.1.contains("generator: its threads were busy 95 % of the time"), "{}", busy.1);
        let late = doubt_of(|cell| cell.recording.late_share = 0.02);
        assert_eq!(late.0, DoubtScope::RateAndLatency);
        assert!(late.1.contains("it took on 2.0 % of the requests more than 1 ms late"), "{}", late.1);
        let upstream = doubt_of(|cell| cell.upstream = used(950_000));
        assert_eq!(
            upstream,
            (DoubtScope::RateAndLatency, "the upstream was busy 95 % of the time".to_owned())
        );
        let shared = doubt_of(|cell| {
            cell.load = used(850_000);
            cell.shared_cores = Some("1".parse().unwrap());
        });
        assert_eq!(shared.0, DoubtScope::RateAndLatency);
        assert_eq!(shared.1, "generator and upstream kept core 1 busy 95 % of the time");
        let missed = doubt_of(|cell| {
            cell.recording.is_rate_achieved = false;
            cell.recording.figures.insert("rate.wanted".to_owned(), 1_000.0);
            cell.recording.figures.insert("rate.achieved".to_owned(), 900.0);
        });
        assert_eq!(
            missed,
            (DoubtScope::RateAndLatency, "900 of 1000 requests per second were answered".to_owned())
        );
    }

    #[test]
    fn a_capacity_needs_a_rate_that_holds_and_one_that_does_not() {
        let bound = Some(LatencyBound { percentile: 99.0, limit_us: 10_000 });
        let of = |p99_us, is_lower_bound| {
            doubts_of(|cell| {
                cell.recording.response_curve = vec![(50.0, 100), (99.0, p99_us)];
                (cell.bound, cell.is_lower_bound) = (bound, is_lower_bound);
            })
        };
        assert_eq!(of(9_999, false), []);
        let broken = "p99 was 12.5 ms and not below 10 ms".to_owned();
        assert_eq!(of(12_500, false), [(DoubtScope::RateAndLatency, broken)]);
        let higher = "each rate that was tried kept p99 below 10 ms: the most is higher".to_owned();
        assert_eq!(of(9_999, true), [(DoubtScope::RateAndLatency, higher)]);
    }

    #[test]
    fn a_disturbed_machine_is_told() {
        let machine = |change: fn(&mut MachineUsage)| doubt_of(|cell| change(&mut cell.machine));
        assert_eq!(machine(|machine| machine.is_throttled = true).0, DoubtScope::All);
        assert_eq!(machine(|machine| machine.steal = 0.1).0, DoubtScope::All);
        let others = machine(|machine| machine.other = 0.2);
        let words = "other processes used 20 % of the cores' time".to_owned();
        assert_eq!(others, (DoubtScope::RateAndLatency, words));
        assert_eq!(machine(|machine| machine.other = 0.6).0, DoubtScope::All);
        let running = doubts_of(|cell| (cell.machine.other, cell.is_started) = (0.6, false));
        assert_eq!(running, [], "the others may be the target");
    }

    #[test]
    fn answers_in_the_turns_of_others_are_told() {
        assert_eq!(doubts_of(|cell| cell.answered_in_turns = Some(950)), []);
        let outside = doubt_of(|cell| cell.answered_in_turns = Some(800));
        assert_eq!(outside.0, DoubtScope::All);
        assert!(
            outside.1.contains("20 % of the requests were answered after the target's turns"),
            "{outside:?}"
        );
    }

    #[test]
    fn too_little_cpu_time_is_told() {
        let (spoils, reason) = doubt_of(|cell| cell.target = used(20_000));
        assert_eq!(spoils, DoubtScope::Usage);
        assert!(reason.contains("the target used 20 ms of CPU time"), "{reason}");
    }
}
