//! Draws from distributions, in the right proportions from the first draws on.

/// Draws numbers from counts of them. As it goes in equal steps around the distribution, few draws have its shares already,
/// and the same plan draws the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// Each number with the share of those up to it, from 0 to 1.
    numbers: Vec<(f64, u64)>,
    steps: Steps,
}

/// Points in 0 to 1 that are spread evenly: multiples of an irrational number, without their whole parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    at: f64,
    step: f64,
}

impl Steps {
    /// Each step must be another irrational number, or draws would go together.
    pub(crate) const fn new(step: f64) -> Self {
        Self { at: 0.5, step }
    }

    pub(crate) fn next(&mut self) -> f64 {
        let at = self.at;
        self.at = (self.at + self.step).fract();
        at
    }
}

impl Draw {
    /// `None` if nothing was counted.
    pub(crate) fn new(counts: impl IntoIterator<Item = (u64, u64)>, steps: Steps) -> Option<Self> {
        let mut below = 0_u64;
        let counted = counts.into_iter().map(|(number, n)| {
            below = below.saturating_add(n);
            (below, number)
        });
        let counted: Vec<_> = counted.collect();
        let numbers: Vec<_> =
            counted.into_iter().map(|(up_to, number)| (up_to as f64 / below as f64, number)).collect();
        (!numbers.is_empty()).then_some(Self { numbers, steps })
    }

    pub(crate) fn next(&mut self) -> u64 {
        let at = self.steps.next();
        let place = self.numbers.partition_point(|(share, _)| *share <= at);
        self.numbers[place.min(self.numbers.len() - 1)].1
    }
}

/// Chooses among names so that each has its share of what was chosen, by weight, at any time.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    /// The share of each, and the weight that was given to it.
    given: Vec<(f64, f64)>,
    all: f64,
}

impl Quota {
    pub(crate) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let weights: Vec<f64> = weights.into_iter().collect();
        let all: f64 = weights.iter().sum();
        Self { given: weights.into_iter().map(|weight| (weight / all, 0.0)).collect(), all: 0.0 }
    }

    /// The index of the one that lacks most among those that are possible, if there is one.
    pub(crate) fn next(&mut self, weight: f64, is_possible: impl Fn(usize) -> bool) -> Option<usize> {
        self.all += weight;
        let possible = (0..self.given.len()).filter(|at| is_possible(*at));
        let most = possible.rev().max_by(|a, b| self.lack(*a).total_cmp(&self.lack(*b)))?;
        self.given[most].1 += weight;
        Some(most)
    }

    /// What one lacks of its share, by weight.
    pub(crate) fn lack(&self, one: usize) -> f64 {
        let (share, given) = self.given[one];
        share * self.all - given
    }

    /// Notes that one was chosen.
    pub(crate) fn give(&mut self, one: usize) {
        self.all += 1.0;
        self.given[one].1 += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use records::values::ValueCounts;

    use super::*;

    #[test]
    fn few_draws_have_the_shares_of_the_distribution() {
        let counts: ValueCounts = "1:90 10:9 60:1".parse().unwrap();
        let mut draw = Draw::new(counts.iter(), Steps::new(0.618_033_988_749_895)).unwrap();
        let drawn: Vec<u64> = (0..1_000).map(|_| draw.next()).collect();
        for (number, n) in counts.iter() {
            let is = drawn.iter().filter(|drawn| **drawn == number).count();
            assert!(is.abs_diff(n as usize * 10) <= 2, "{number}: {is}");
        }
        assert!(Draw::new([], Steps::new(0.1)).is_none());
    }

    #[test]
    fn a_quota_is_met_by_weight() {
        let mut quota = Quota::new([8.0, 1.0, 1.0]);
        let chosen: Vec<_> = (0..100).map(|_| quota.next(1.0, |_| true).unwrap()).collect();
        assert_eq!([0, 1, 2].map(|one| chosen.iter().filter(|at| **at == one).count()), [80, 10, 10]);
        assert_eq!(Quota::new([1.0, 3.0]).next(5.0, |_| true), Some(1), "the heaviest first");
        assert_eq!(Quota::new([1.0, 3.0]).next(5.0, |at| at == 0), Some(0));
        assert_eq!(Quota::new([]).next(1.0, |_| true), None);
    }
}
