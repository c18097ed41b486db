//! Resources of process trees and the machine, sampled over time. `docs/bench.md` defines each figure.

mod machine;
mod sampler;
mod timeline;

use std::time::Duration;

use recorder::host::{ProcessTree, SlowReading, ThreadSchedule, TreeMemory};

use self::sampler::Sampler;
use self::timeline::Timeline;
use crate::results::ResourceUsage;

pub use machine::MachineMeter;
pub use sampler::SampleTimes;
pub use timeline::{TimeSpan, growth_within};

/// How often memory is read: the kernel walks all pages of each process for it.
const MEMORY_EVERY: Duration = Duration::from_secs(1);

/// Samples the resources of a process tree until it is dropped.
#[derive(Debug)]
pub struct UsageMeter {
    sampler: Sampler<TreeSamples>,
}

#[derive(Debug)]
struct TreeSamples {
    tree: ProcessTree,
    schedule: ThreadSchedule,
    memory: SlowReading<TreeMemory>,
    samples: Timeline<TreeSample>,
}

/// A sample; times and counts only grow.
#[derive(Clone, Copy, Debug, Default)]
struct TreeSample {
    cpu_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
    delay_ns: Option<u64>,
    switches: u64,
    memory: TreeMemory,
    threads: u64,
    descriptors: u64,
}

impl UsageMeter {
    /// Begins to sample. The present memory is the idle memory.
    ///
    /// # Errors
    /// If the sampling thread cannot be started.
    pub fn start(tree: ProcessTree, times: SampleTimes) -> std::io::Result<Self> {
        let samples = TreeSamples {
            tree,
            schedule: ThreadSchedule::default(),
            memory: SlowReading::default(),
            samples: Timeline::new(times),
        };
        Ok(Self { sampler: Sampler::start(samples, TreeSamples::sample, times)? })
    }

    /// Resources of the tree within spans of the monotonic clock, in microseconds ([`records::kinds::Timestamps`], the
    /// `mono_us` of records). Times and counts of other moments than the samples' are interpolated, but not in turns.
    pub fn usage(&self, spans: &[TimeSpan]) -> ResourceUsage {
        self.sampler.sample();
        self.sampler.look(|state| state.usage(spans))
    }

    /// How long the tree's threads waited for a core within these spans, as a share of their CPU time; `None` if the
    /// kernel hides it, or they used none.
    pub fn run_queue_delay(&self, spans: &[TimeSpan]) -> Option<f64> {
        self.sampler.sample();
        self.sampler.look(|state| {
            let shows_delay = state.samples.values().any(|sample| sample.delay_ns.is_some());
            let grown = |of: fn(&TreeSample) -> u64| state.samples.growth(spans, of);
            let cpu_ns = grown(|sample| sample.cpu_ns);
            let delay_ns = grown(|sample| sample.delay_ns.unwrap_or(0));
            (shows_delay && cpu_ns > 0.0).then(|| delay_ns / cpu_ns)
        })
    }
}

impl TreeSamples {
    fn sample(&mut self, at_us: u64) {
        let reading = self.tree.read();
        self.schedule.update(&reading);
        let before = self.samples.last().copied().unwrap_or_default();
        let sample = TreeSample {
            // A process that is not yet waited for takes its CPU time with it.
            cpu_ns: reading.cpu_ns.max(before.cpu_ns),
            user_ticks: reading.user_ticks.max(before.user_ticks),
            system_ticks: reading.system_ticks.max(before.system_ticks),
            delay_ns: self.schedule.delay_ns().max(before.delay_ns),
            switches: self.schedule.switches(),
            memory: self.memory.get(MEMORY_EVERY, || reading.memory()),
            threads: reading.threads(),
            descriptors: reading.descriptors(),
        };
        self.samples.push_at(at_us, sample);
    }

    /// The share of CPU time in user mode by the ticks of a span, or by all ticks if the span has none.
    fn user_share(&self, [user, system]: [f64; 2]) -> f64 {
        let last = self.samples.last().copied().unwrap_or_default();
        let spans = [(user, system), (last.user_ticks as f64, last.system_ticks as f64)];
        let with_ticks = spans.into_iter().find(|(user, system)| user + system > 0.0);
        with_ticks.map_or(1.0, |(user, system)| user / (user + system))
    }

    fn usage(&self, spans: &[TimeSpan]) -> ResourceUsage {
        let grown = |of: fn(&TreeSample) -> u64| self.samples.growth(spans, of);
        let most = |of: fn(&TreeSample) -> u64| self.samples.within(spans).map(of).max().unwrap_or(0);
        let at_rest = self.samples.values().next().copied().unwrap_or_default();
        let at_end = self.samples.within(spans).last().copied().unwrap_or_default();
        let cpu_us = (grown(|sample| sample.cpu_ns) / 1e3).round() as u64;
        let ticks = [grown(|sample| sample.user_ticks), grown(|sample| sample.system_ticks)];
        let user_us = (cpu_us as f64 * self.user_share(ticks)).round() as u64;
        ResourceUsage {
            user_us,
            system_us: cpu_us - user_us,
            wall_us: spans.iter().map(TimeSpan::length_us).sum(),
            rss_peak: most(|sample| sample.memory.resident_bytes),
            pss_peak: most(|sample| sample.memory.pss_bytes),
            rss_at_rest: at_rest.memory.resident_bytes,
            pss_at_rest: at_rest.memory.pss_bytes,
            rss_at_end: at_end.memory.resident_bytes,
            threads_max: most(|sample| sample.threads),
            descriptors_max: most(|sample| sample.descriptors),
            context_switches: grown(|sample| sample.switches).round() as u64,
        }
    }
}
