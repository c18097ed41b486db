//! Made-up latencies, the same in every run.

use std::time::Duration;

/// Draws latencies around a median.
#[derive(Debug)]
pub struct LatencySpread {
    random: u64,
}

impl Default for LatencySpread {
    fn default() -> Self {
        Self { random: 1 }
    }
}

impl LatencySpread {
    /// Returns a random latency: half of them lie within a third of the median, with a tail upwards.
    pub fn draw(&mut self, median_us: f64) -> Duration {
        let mut exponent = -1.5;
        for _ in 0..3 {
            // Knuth's generator for MMIX; its upper bits are random enough.
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            exponent += (self.random >> 40) as f64 / f64::from(1 << 24);
        }
        Duration::from_secs_f64(median_us * exponent.exp() / 1e6)
    }
}
