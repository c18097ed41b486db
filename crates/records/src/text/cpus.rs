//! Which cores a thread may run on.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores, in the order in which workers take them; the first worker takes the first one, and so on around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

/// The text is not a list of cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a list of cores; expected such as 0-3,8")]
pub struct ParseCpusError {
    text: String,
}

/// The process may not run on one of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("core {cpu} does not exist, or this process may not use it (see: taskset -p $$)")]
pub struct CpusError {
    cpu: usize,
}

impl Cpus {
    /// How many cores there are, at least one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Checks that the process may run on all of them.
    ///
    /// # Errors
    /// Names the first core that does not exist or that this process may not use.
    pub fn check(&self) -> Result<(), CpusError> {
        // If the kernel does not report this, a worker that cannot be pinned reports it.
        let Ok(allowed) = sched_getaffinity(None) else { return Ok(()) };
        self.0.iter().find(|&&cpu| !allowed.is_set(cpu)).map_or(Ok(()), |&cpu| Err(CpusError { cpu }))
    }

    /// The cores of both lists, if there are any.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both: Vec<usize> = self.0.iter().copied().filter(|cpu| other.0.contains(cpu)).collect();
        (!both.is_empty()).then_some(Self(both))
    }

    /// The cores of either list, in ascending order.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let cores: BTreeSet<usize> = self.0.iter().chain(&other.0).copied().collect();
        Self(cores.into_iter().collect())
    }

    /// Keeps the calling thread on the core of the worker number `worker`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn pin(&self, worker: usize) -> io::Result<()> {
        keep_on(&[self.0[worker % self.0.len()]])
    }

    /// Pins the calling thread, and the threads and processes that it starts afterwards, to these cores.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn confine(&self) -> io::Result<()> {
        keep_on(&self.0)
    }
}

fn keep_on(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

impl FromStr for Cpus {
    type Err = ParseCpusError;

    /// Reads numbers and ranges with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.trim().parse().ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
        let range = |word: &str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some(number(first)?..=number(last)?).filter(|range| !range.is_empty())
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let ranges = ranges.ok_or_else(|| ParseCpusError { text: text.to_owned() })?;
        Ok(Self(ranges.into_iter().flatten().collect()))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, cpu) in self.0.iter().enumerate() {
            write!(f, "{}{cpu}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read_and_others_refused() {
        let cpus = |text: &str| text.parse::<Cpus>().map(|cpus| cpus.0);
        assert_eq!(cpus("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpus("5, 2"), Ok(vec![5, 2]));
        for text in ["", ",", "3-1", "a", "-1", "1-", "0-99999"] {
            assert!(cpus(text).unwrap_err().to_string().contains("expected such as 0-3,8"), "{text:?}");
        }
    }

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let cpus: Cpus = cpu.to_string().parse().unwrap();
        cpus.check().unwrap();
        std::thread::spawn(move || {
            cpus.pin(3).unwrap();
            let set = sched_getaffinity(None).unwrap();
            assert!(set.is_set(cpu) && set.count() == 1);
        })
        .join()
        .unwrap();
        assert_eq!("1023".parse::<Cpus>().unwrap().check(), Err(CpusError { cpu: 1023 }));
    }

    #[test]
    fn a_confined_thread_passes_its_cores_on() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut all = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu.to_string());
        let last = all.next_back().unwrap();
        let cpus: Cpus = last.parse().unwrap();
        let confined = std::thread::spawn(move || {
            cpus.confine().unwrap();
            std::thread::spawn(|| sched_getaffinity(None).unwrap()).join().unwrap()
        });
        let set = confined.join().unwrap();
        assert!(set.count() == 1 && set.is_set(last.parse().unwrap()));
    }
}
