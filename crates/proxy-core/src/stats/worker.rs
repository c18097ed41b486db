//! What a worker reports of itself: its own share of the counts that are added up.

use std::time::Duration;

use records::delta::ProxyDelta;
use records::metrics::{ProxyCounter, TlsLatency};
use records::values::WorkerCounts;
use rustix::time::{ClockId, clock_gettime};

/// Reports a worker. Runs on its thread.
#[derive(Debug)]
pub(crate) struct WorkerReporter {
    number: u32,
    /// CPU time of the thread at the last report, in microseconds.
    cpu_us: u64,
}

impl WorkerReporter {
    pub(crate) fn new(index: usize) -> Self {
        Self { number: index as u32, cpu_us: 0 }
    }

    /// Adds to the delta of an interval what the worker did in it.
    pub(crate) fn hand_over(&mut self, delta: &mut ProxyDelta) {
        let before_us = std::mem::replace(&mut self.cpu_us, thread_cpu_us());
        let counters = &delta.counters;
        let delay_ns = |class| delta.tls.latencies[class].max_ns();
        let delay_ns_max = delay_ns(TlsLatency::WorkerFull).max(delay_ns(TlsLatency::WorkerResumed));
        delta.workers.push(WorkerCounts {
            number: self.number,
            cpu_us: self.cpu_us.saturating_sub(before_us),
            open: counters[ProxyCounter::Accepted] as i64 - counters[ProxyCounter::Closed] as i64,
            accepted: counters[ProxyCounter::Accepted],
            handshakes_full: counters[ProxyCounter::HandshakesFull],
            handshakes_resumed: counters[ProxyCounter::HandshakesResumed],
            loop_delay_us_max: delay_ns_max.div_ceil(1_000),
        });
    }
}

fn thread_cpu_us() -> u64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).map_or(0, |used| used.as_micros() as u64)
}
