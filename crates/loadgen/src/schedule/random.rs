//! Random numbers for Poisson arrivals: the same in every run.

/// `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): small, and good enough for
/// distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Begins a sequence; the same one for the same seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From an exponential distribution with a mean of 1.
    pub(super) fn exponential(&mut self) -> f64 {
        // Above 0 and up to 1.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln()
    }
}
