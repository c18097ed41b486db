//! A reading that is slow to take.

use std::time::{Duration, Instant};

/// A reading that is slow to take: it is taken once in a period, and used again until the next.
#[derive(Clone, Copy, Debug)]
pub struct SlowReading<T> {
    last: Option<(Instant, T)>,
}

impl<T> Default for SlowReading<T> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<T: Copy> SlowReading<T> {
    /// The last reading, if it was taken less than `every` ago, or else a new one.
    pub fn get(&mut self, every: Duration, read: impl FnOnce() -> T) -> T {
        let now = Instant::now();
        match self.last {
            Some((read_at, reading)) if now - read_at < every => reading,
            _ => self.last.insert((now, read())).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_used_again_for_a_period() {
        let mut reading = SlowReading::default();
        let hour = Duration::from_secs(3_600);
        assert_eq!(reading.get(hour, || 1), 1);
        assert_eq!(reading.get(hour, || panic!("it was read an instant ago")), 1);
        assert_eq!(reading.get(Duration::ZERO, || 2), 2);
    }
}
