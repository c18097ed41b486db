//! A made-up system whose truth is known: what it answers in a second depends on what it did in the seconds before.

#![allow(dead_code, reason = "each user of this file uses a part of it")]

use experiment::BlockValue;
use records::histogram::Histogram;

/// How a system behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// By how much the level of a second differs from the usual one, as a standard deviation of its logarithm.
    pub(crate) level_sd: f64,
    /// How much of that is left in the next second.
    pub(crate) carried: f64,
    /// Swing of a slow drift, such as that of a neighbour's work, of which a cycle takes seven minutes.
    pub(crate) drift: f64,
    /// By how much the level differs while a neighbour is busy, which it is for 20 s at a time, and idle for 40 s, on
    /// average.
    pub(crate) neighbour: f64,
    /// Standard deviation of the logarithm of a single latency.
    pub(crate) spread: f64,
    /// Requests a second.
    pub(crate) rate: u32,
}

/// A shared machine on an ordinary day.
pub(crate) const ORDINARY: Noise =
    Noise { level_sd: 0.04, carried: 0.8, drift: 0.1, neighbour: 0.0, spread: 0.3, rate: 50 };

/// A machine without a drift, whose neighbour works now and then.
pub(crate) const BESIDE_A_NEIGHBOUR: Noise = Noise { drift: 0.0, neighbour: 0.15, ..ORDINARY };

/// A system under load; a second at a time.
#[derive(Debug)]
pub(crate) struct SimulatedSystem {
    noise: Noise,
    rng: fastrand::Rng,
    level: f64,
    second: u32,
    phase: f64,
    neighbour_is_busy: bool,
}

impl SimulatedSystem {
    pub(crate) fn new(noise: Noise, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let phase = rng.f64() * std::f64::consts::TAU;
        let level = normal(&mut rng) * noise.level_sd;
        let neighbour_is_busy = noise.neighbour > 0.0 && rng.u32(..3) == 0;
        Self { noise, rng, level, second: 0, phase, neighbour_is_busy }
    }

    /// Goes on by a second in which latencies are `factor` of the usual ones; gives them to `each`, in nanoseconds.
    pub(crate) fn second(&mut self, factor: f64, mut each: impl FnMut(u64)) {
        let Noise { level_sd, carried, drift, neighbour, spread, rate } = self.noise;
        let fresh = (1.0 - carried * carried).sqrt() * level_sd;
        self.level = carried * self.level + fresh * normal(&mut self.rng);
        self.second += 1;
        let turn = f64::from(self.second) / 420.0 * std::f64::consts::TAU;
        let stays_s = if self.neighbour_is_busy { 20 } else { 40 };
        if neighbour > 0.0 && self.rng.u32(..stays_s) == 0 {
            self.neighbour_is_busy = !self.neighbour_is_busy;
        }
        let busy = if self.neighbour_is_busy { neighbour } else { 0.0 };
        let level = self.level + busy + drift * (turn + self.phase).sin();
        for _ in 0..rate {
            // Some requests in a hundred wait for something else, and much longer.
            let stall = if self.rng.u32(..100) < 2 { 4.0 } else { 1.0 };
            let latency = (level + spread * normal(&mut self.rng)).exp() * stall * factor * 1e6;
            each(latency as u64);
        }
    }

    /// Pairs of blocks of ten seconds of which the first two do not count, in the order that a coin gives; the second
    /// value makes latencies `effect` times the first's.
    pub(crate) fn pairs(&mut self, pairs: u32, effect: f64) -> Vec<(BlockValue, BlockValue)> {
        let mut histogram = Histogram::new();
        (0..pairs)
            .map(|_| {
                let is_swapped = self.rng.bool();
                let factors = if is_swapped { [effect, 1.0] } else { [1.0, effect] };
                let [first, second] = factors.map(|factor| {
                    histogram.clear();
                    (0..2).for_each(|_| self.second(factor, |_| {}));
                    (0..8).for_each(|_| self.second(factor, |ns| histogram.record_ns(ns)));
                    BlockValue::Latencies(histogram.to_sparse())
                });
                if is_swapped { (second, first) } else { (first, second) }
            })
            .collect()
    }

    /// A run of so many blocks of three seconds, each with a value of the same latencies for every metric of `metrics`.
    /// Latencies are `factor` of the usual ones.
    pub(crate) fn blocks(&mut self, blocks: u32, factor: f64, metrics: usize) -> Vec<Vec<BlockValue>> {
        let mut histogram = Histogram::new();
        (0..blocks)
            .map(|_| {
                histogram.clear();
                (0..3).for_each(|_| self.second(factor, |ns| histogram.record_ns(ns)));
                vec![BlockValue::Latencies(histogram.to_sparse()); metrics]
            })
            .collect()
    }

    /// The medians of single seconds under either value, as somebody would compare them who takes seconds for
    /// independent of each other.
    pub(crate) fn medians(&mut self, seconds: u32, factor: f64) -> Vec<f64> {
        let mut histogram = Histogram::new();
        (0..seconds)
            .map(|_| {
                histogram.clear();
                self.second(factor, |ns| histogram.record_ns(ns));
                histogram.quantile_ns(0.5).unwrap_or(0) as f64
            })
            .collect()
    }
}

/// Box and Muller's way to a normal number.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (rng.f64() * std::f64::consts::TAU).cos()
}
