//! The cores of target, generator and upstream.

use rustix::thread::{CpuSet, sched_getaffinity};
use telemetry::Cpus;

use super::RunError;
use crate::scenario::Placement;

impl Placement {
    /// The cores of this process, divided: half of them for the target, the others for generator and upstream, which
    /// share one of two cores. A single core is not divided.
    pub fn split() -> Self {
        let cores = sched_getaffinity(None);
        let cores = cores.map_or_else(
            |_| Vec::new(),
            |allowed| (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect(),
        );
        Self::split_of(&cores)
    }

    fn split_of(cores: &[usize]) -> Self {
        let (target, others) = cores.split_at(cores.len() / 2);
        if target.is_empty() {
            return Self::default();
        }
        let (load, upstream) = match others {
            [_, _, ..] => others.split_at(others.len().div_ceil(2)),
            shared => (shared, shared),
        };
        let list = |cores: &[usize]| Some(cores.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        Self { target: list(target), load: list(load), upstream: list(upstream) }
    }

    /// Checks that the cores exist and that this process may use them.
    ///
    /// # Errors
    /// Names the invalid list, or a core that does not exist.
    pub(super) fn check(&self) -> Result<(), RunError> {
        for list in [&self.target, &self.load, &self.upstream].into_iter().flatten() {
            let cpus: Cpus = list.parse().map_err(|error| RunError::Cpus(format!("{error}")))?;
            cpus.check().map_err(|error| RunError::Cpus(error.to_string()))?;
        }
        Ok(())
    }
}

/// How many cores a list has, or this process if there is none.
pub(super) fn cores(list: Option<&str>) -> u32 {
    let of_process = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    list.and_then(|list| list.parse::<Cpus>().ok()).map_or_else(of_process, |cpus| cpus.count()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_divided_between_target_generator_and_upstream() {
        let lists = |cores: &[usize]| {
            let Placement { target, load, upstream } = Placement::split_of(cores);
            [target, load, upstream].map(Option::unwrap_or_default).join(" ")
        };
        assert_eq!(lists(&[]), "  ");
        assert_eq!(lists(&[3]), "  ");
        assert_eq!(lists(&[0, 1]), "0 1 1");
        assert_eq!(lists(&[0, 1, 2]), "0 1 2");
        assert_eq!(lists(&[0, 1, 2, 3]), "0,1 2 3");
        assert_eq!(lists(&[4, 5, 6, 7, 8, 9]), "4,5,6 7,8 9");
    }
}
