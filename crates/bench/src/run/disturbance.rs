//! What disturbs a measurement on this machine: judged before a run, and for each cell.

use std::collections::HashMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use recorder::host::processes;
use records::kinds::Timestamps;
use records::text::clean;

use crate::results::{Doubt, DoubtScope, MachineUsage};
use crate::scenario::{Placement, core_count};
use crate::target::{MachineMeter, SampleTimes, TimeSpan};

/// From this share of the cores' time on, other processes disturb latencies.
const OTHERS_MAX: f64 = 0.1;
/// And from this one on the cost too, through caches and frequency.
const OTHERS_SPOIL_ALL: f64 = 0.5;
/// From this share on, CPU time stolen by a hypervisor disturbs all figures.
const STEAL_MAX: f64 = 0.05;
/// How long the machine is watched before a run.
const LOOK: Duration = Duration::from_millis(500);
/// The most processes that are named.
const NAMED_MAX: usize = 3;
/// The governor that leaves the frequency alone.
const STEADY_GOVERNOR: &str = "performance";

/// The name of each process and its CPU time in ticks, by its id.
type ProcessTimes = HashMap<u32, (String, u64)>;

/// The doubts that the machine gives rise to. Of a target that bench did not start, the other processes are unknown: they
/// may be its helpers.
pub(super) fn doubts(machine: &MachineUsage, are_others_known: bool) -> Vec<Doubt> {
    let throttled = machine.is_throttled.then(|| {
        let reason = "the clock of the cores was lowered (thermal throttling)".to_owned();
        Doubt { spoils: DoubtScope::All, reason }
    });
    let stolen = (machine.steal > STEAL_MAX).then(|| {
        let reason = format!("the hypervisor gave {} of the cores' time to others", percent(machine.steal));
        Doubt { spoils: DoubtScope::All, reason }
    });
    let others = (are_others_known && machine.other > OTHERS_MAX).then(|| {
        let spoils =
            if machine.other > OTHERS_SPOIL_ALL { DoubtScope::All } else { DoubtScope::RateAndLatency };
        Doubt {
            spoils,
            reason: format!("other processes used {} of the cores' time", percent(machine.other)),
        }
    });
    throttled.into_iter().chain(stolen).chain(others).collect()
}

/// What would disturb a run that began now, in words. Watches the machine for half a second.
pub fn disturbances(placement: &Placement, governor: &str) -> Vec<String> {
    let before = process_times();
    let machine = watch();
    let mut words: Vec<String> = doubts(&machine, true).iter().map(with_consequence).collect();
    if machine.other > OTHERS_MAX {
        words.extend(busiest(&before, &process_times()));
    } else {
        words.extend(was_busy(&fs::read_to_string("/proc/loadavg").unwrap_or_default(), core_count(None)));
    }
    words.extend(placement.notes());
    if cfg!(debug_assertions) {
        words.push("this is a debug build, several times slower than what users run".to_owned());
    }
    if !governor.is_empty() && governor != STEADY_GOVERNOR {
        words.push(format!("the governor {governor} changes the cores' frequency, and CPU times with it"));
    }
    words
}

fn watch() -> MachineUsage {
    let Ok(meter) = MachineMeter::start(SampleTimes::Periodic) else { return MachineUsage::default() };
    let from_us = Timestamps::now().monotonic_us;
    sleep(LOOK);
    let to_us = Timestamps::now().monotonic_us;
    meter.usage(&[TimeSpan { from_us, to_us }], &[], None)
}

/// The load average of the last minute, from `/proc/loadavg`, if it was that of a busy machine.
fn was_busy(averages: &str, cores: u32) -> Option<String> {
    let average: f64 = averages.split_whitespace().next()?.parse().ok()?;
    (average > f64::from(cores))
        .then(|| format!("the load average of the last minute is {average:.1}: it may be busy again"))
}

/// A doubt about the figures of a run that began now.
fn with_consequence(doubt: &Doubt) -> String {
    let consequence = match doubt.spoils {
        DoubtScope::RateAndLatency => "if that goes on, rates and latencies are in doubt",
        DoubtScope::Usage | DoubtScope::All => "if that goes on, no figure counts",
    };
    format!("{}: {consequence}", doubt.reason)
}

/// The processes that used most CPU time while the machine was watched; `None` if each used little.
fn busiest(before: &ProcessTimes, after: &ProcessTimes) -> Option<String> {
    let ticks_watched = LOOK.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
    let share = |(id, (name, ticks)): (&u32, &(String, u64))| {
        let earlier = before.get(id).map_or(0, |(_, ticks)| *ticks);
        (ticks.saturating_sub(earlier) as f64 / ticks_watched, clean::text(name))
    };
    let mut busy: Vec<(f64, String)> = after.iter().map(share).collect();
    busy.retain(|(share, _)| *share > OTHERS_MAX);
    busy.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let named =
        busy.iter().take(NAMED_MAX).map(|(share, name)| format!("{name} {} of a core", percent(*share)));
    (!busy.is_empty()).then(|| format!("busiest: {}", named.collect::<Vec<_>>().join(", ")))
}

fn process_times() -> ProcessTimes {
    processes().into_iter().map(|process| (process.pid, (process.name, process.cpu_ticks))).collect()
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_processes_are_named() {
        let stat = |name: &str, ticks: u64| (name.to_owned(), ticks + 5);
        let before = [(1, stat("init", 100)), (2, stat("a) b", 100))].into();
        let ticks = rustix::param::clock_ticks_per_second();
        let after =
            [(1, stat("init", 100)), (2, stat("a) b", 100 + ticks / 4)), (3, stat("cc", ticks / 2 - 5))];
        let named = busiest(&before, &after.into());
        assert_eq!(named.as_deref(), Some("busiest: cc 100 % of a core, a) b 50 % of a core"));
        assert_eq!(busiest(&before, &before), None);
    }

    #[test]
    fn a_machine_that_was_busy_a_minute_ago_is_told() {
        let words = "the load average of the last minute is 2.3: it may be busy again";
        assert_eq!(was_busy("2.31 1.0 0.5 3/170 30758\n", 2).as_deref(), Some(words));
        assert_eq!((was_busy("1.9 9.0 9.0 1/1 1\n", 2), was_busy("", 2)), (None, None));
    }

    #[test]
    fn a_disturbed_machine_is_told_with_what_follows() {
        let words = |other| {
            let machine = MachineUsage { other, ..MachineUsage::default() };
            doubts(&machine, true).iter().map(with_consequence).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(words(0.1), "");
        let some =
            "other processes used 20 % of the cores' time: if that goes on, rates and latencies are in doubt";
        assert_eq!(words(0.2), some);
        let much = "other processes used 60 % of the cores' time: if that goes on, no figure counts";
        assert_eq!(words(0.6), much);
    }
}
