//! Resources of the whole machine.

use std::fs;
use std::io;
use std::path::Path;

use super::sampler::{SampleTimes, Sampler};
use super::timeline::{TimeSpan, Timeline};
use crate::results::{MachineUsage, ResourceUsage};

/// The folder of the cores.
const CORES: &str = "/sys/devices/system/cpu";

/// Samples the state of the machine until it is dropped.
#[derive(Debug)]
pub struct MachineMeter {
    sampler: Sampler<Timeline<MachineSample>>,
}

/// Totals of all cores since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MachineSample {
    /// Time that passed, in ticks of each core.
    ticks: u64,
    /// Time that processes and interrupts used.
    busy_ticks: u64,
    /// Time that the hypervisor gave to others.
    stolen_ticks: u64,
    /// How often a core's clock was lowered for heat; 0 where the kernel does not count it.
    throttled: u64,
}

impl MachineMeter {
    /// Begins to sample.
    ///
    /// # Errors
    /// If the sampling thread cannot be started.
    pub fn start(times: SampleTimes) -> io::Result<Self> {
        let take =
            |samples: &mut Timeline<MachineSample>, at_us| samples.push_at(at_us, MachineSample::read());
        Ok(Self { sampler: Sampler::start(Timeline::new(times), take, times)? })
    }

    /// The machine within spans of the monotonic clock. `known` is the use of target, generator and upstream there.
    /// `run_queue_delay` is the target's.
    pub fn usage(
        &self,
        spans: &[TimeSpan],
        known: &[ResourceUsage],
        run_queue_delay: Option<f64>,
    ) -> MachineUsage {
        self.sampler.sample();
        let known_us: u64 = known.iter().map(ResourceUsage::cpu_us).sum();
        self.sampler.look(|samples| {
            let grown = |of: fn(&MachineSample) -> u64| samples.growth(spans, of);
            let ticks = grown(|sample| sample.ticks);
            let known_ticks = known_us as f64 / 1e6 * rustix::param::clock_ticks_per_second() as f64;
            let share = |part: f64| if ticks > 0.0 { (part / ticks).clamp(0.0, 1.0) } else { 0.0 };
            MachineUsage {
                steal: share(grown(|sample| sample.stolen_ticks)),
                other: share(grown(|sample| sample.busy_ticks) - known_ticks),
                run_queue_delay,
                is_throttled: grown(|sample| sample.throttled) > 0.0,
            }
        })
    }
}

impl MachineSample {
    fn read() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self { throttled: throttled(Path::new(CORES)), ..Self::parse(&stat) }
    }

    /// From the first line of `/proc/stat`: user nice system idle iowait irq softirq steal, and guests, who are in user.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let field = |index: usize| {
            line.split_whitespace().nth(index).and_then(|field| field.parse().ok()).unwrap_or(0)
        };
        let sum = |indices: &[usize]| indices.iter().map(|&index| field(index)).fold(0, u64::saturating_add);
        let busy_ticks = sum(&[1, 2, 3, 6, 7]);
        Self { ticks: busy_ticks + sum(&[4, 5, 8]), busy_ticks, stolen_ticks: field(8), throttled: 0 }
    }
}

/// How often a clock was lowered, summed over cores.
fn throttled(cores: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(cores) else { return 0 };
    let count = |core: &Path, file: &str| {
        let text = fs::read_to_string(core.join("thermal_throttle").join(file)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let counts = entries.flatten().map(|entry| {
        let core = entry.path();
        count(&core, "core_throttle_count").unwrap_or(0) + count(&core, "package_throttle_count").unwrap_or(0)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_divides_the_time() {
        let sample = MachineSample::parse("cpu  100 1 20 300 40 5 6 7 9 9\ncpu0 1 2\n");
        let expected = MachineSample { ticks: 479, busy_ticks: 132, stolen_ticks: 7, throttled: 0 };
        assert_eq!(sample, expected);
        assert_eq!(MachineSample::parse(""), MachineSample::default());
    }

    #[test]
    fn clocks_lowered_are_counted_over_all_cores() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(throttled(folder.path()), 0);
        for (core, count) in [("cpu0", "3\n"), ("cpu1", "4\n")] {
            let counters = folder.path().join(core).join("thermal_throttle");
            fs::create_dir_all(&counters).unwrap();
            fs::write(counters.join("core_throttle_count"), count).unwrap();
        }
        assert_eq!(throttled(folder.path()), 7);
    }
}
