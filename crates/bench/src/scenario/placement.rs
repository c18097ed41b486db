//! The cores of target, generator and upstream.

use records::text::Cpus;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

/// Lists of cores, such as `0` or `0-3,8`; `None` leaves the choice to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The target's processes.
    pub target: Option<String>,
    /// The generator.
    pub load: Option<String>,
    /// The upstream.
    pub upstream: Option<String>,
}

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
    pub(crate) fn check(&self) -> Result<(), String> {
        for list in [&self.target, &self.load, &self.upstream].into_iter().flatten() {
            let cpus: Cpus = list.parse().map_err(|error| format!("{error}"))?;
            cpus.check().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// All cores of generator and upstream, if they share any.
    pub(crate) fn shared_by_generator_and_upstream(&self) -> Option<Cpus> {
        let [load, upstream] = [&self.load, &self.upstream].map(|list| list.as_ref()?.parse::<Cpus>().ok());
        let (load, upstream) = (load?, upstream?);
        load.intersection(&upstream).map(|_| load.union(&upstream))
    }

    /// What runs on the same cores, and what follows from it, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let parts = [("target", &self.target), ("generator", &self.load), ("upstream", &self.upstream)];
        let anywhere: Vec<&str> =
            parts.iter().filter(|(_, list)| list.is_none()).map(|(name, _)| *name).collect();
        let anywhere = match &*anywhere {
            [] => None,
            [one] => Some(format!("the kernel placed the {one} on any core")),
            [others @ .., last] => {
                Some(format!("the kernel placed {} and {last} on any core", others.join(", ")))
            }
        };
        let placed: Vec<(&str, Cpus)> =
            parts.into_iter().filter_map(|(name, list)| Some((name, list.as_ref()?.parse().ok()?))).collect();
        let pairs = placed
            .iter()
            .enumerate()
            .flat_map(|(index, one)| placed[index + 1..].iter().map(move |other| (one, other)));
        let shared = pairs.filter_map(|((one, cores), (other, other_cores))| {
            let shared = cores.intersection(other_cores)?;
            Some(format!(
                "{one} and {other} share core {shared}, so rates and latencies include their waiting for each other"
            ))
        });
        anywhere.into_iter().chain(shared).collect()
    }
}

/// How many cores a list has, or this process if there is none.
pub(crate) fn core_count(list: Option<&str>) -> u32 {
    let of_process = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    list.and_then(|list| list.parse::<Cpus>().ok()).map_or_else(of_process, |cpus| cpus.count()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(target: &str, load: &str, upstream: &str) -> Placement {
        let list = |cores: &str| (!cores.is_empty()).then(|| cores.to_owned());
        Placement { target: list(target), load: list(load), upstream: list(upstream) }
    }

    #[test]
    fn what_shares_a_core_is_told() {
        let shared = |load, upstream| {
            placement("0", load, upstream).shared_by_generator_and_upstream().map(|cores| cores.to_string())
        };
        assert_eq!(shared("1", "1").as_deref(), Some("1"));
        assert_eq!(shared("1-2", "2,3").as_deref(), Some("1,2,3"));
        assert_eq!((shared("1", "2"), shared("1", "")), (None, None));
        let waiting = "so rates and latencies include their waiting for each other";
        assert_eq!(placement("0", "1", "2").notes(), Vec::<String>::new());
        assert_eq!(
            placement("0", "1", "1").notes(),
            [format!("generator and upstream share core 1, {waiting}")]
        );
        assert_eq!(
            placement("0-1", "1", "").notes(),
            [
                "the kernel placed the upstream on any core".to_owned(),
                format!("target and generator share core 1, {waiting}")
            ]
        );
        let all = "the kernel placed target, generator and upstream on any core";
        assert_eq!(Placement::default().notes(), [all]);
    }

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
