//! CPU time of each process that is observed.

use crate::metrics::Field;
use crate::wire::{DecodeError, FieldSource, WireField};
use journal::EntryBuf;
use std::fmt;

use crate::text::clean;

/// The most processes that a record lists.
pub const PROCESSES_LISTED_MAX: usize = 16;
/// The longest name of a process, in characters.
const NAME_MAX: usize = 40;
/// Separates two processes.
const SEPARATOR: &str = "; ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessCpu {
    pub pid: u32,
    /// Its own name, cleaned.
    pub name: Box<str>,
    /// CPU time of its threads since observing began, in microseconds.
    pub cpu_us: u64,
}

/// The processes that have used the most CPU time, at most [`PROCESSES_LISTED_MAX`], parents first. As text:
/// `PID MICROSECONDS NAME`, with a semicolon and a blank between two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessCpuList(Box<[ProcessCpu]>);

impl ProcessCpu {
    /// A process with its name cleaned.
    pub fn new(pid: u32, name: &str, cpu_us: u64) -> Self {
        let name: String = clean::text(name).replace(';', ",").chars().take(NAME_MAX).collect();
        Self { pid, name: name.into(), cpu_us }
    }
}

impl ProcessCpuList {
    /// Keeps the processes that used the most CPU time, in the given order.
    pub fn new(mut processes: Vec<ProcessCpu>) -> Self {
        keep_busiest(&mut processes, |process| process.cpu_us);
        Self(processes.into())
    }

    pub fn iter(&self) -> impl Iterator<Item = &ProcessCpu> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts CPU time from an earlier list on. A process that the earlier list had no room for is left out.
    pub fn rebase(&mut self, before: &Self) {
        let had_room = before.0.len() < PROCESSES_LISTED_MAX;
        let since = |process: &ProcessCpu| {
            let earlier = before.iter().find(|earlier| earlier.pid == process.pid);
            let before_us = earlier.map(|earlier| earlier.cpu_us).or_else(|| had_room.then_some(0))?;
            Some(ProcessCpu { cpu_us: process.cpu_us.saturating_sub(before_us), ..process.clone() })
        };
        self.0 = self.iter().filter_map(since).collect();
    }
}

/// Keeps those with the most CPU time, at most [`PROCESSES_LISTED_MAX`], in their order.
pub fn keep_busiest<T>(processes: &mut Vec<T>, cpu_us: impl Fn(&T) -> u64) {
    if processes.len() > PROCESSES_LISTED_MAX {
        let mut used: Vec<u64> = processes.iter().map(&cpu_us).collect();
        used.sort_unstable_by(|a, b| b.cmp(a));
        let least = used[PROCESSES_LISTED_MAX - 1];
        processes.retain(|process| cpu_us(process) >= least);
        processes.truncate(PROCESSES_LISTED_MAX);
    }
}

impl fmt::Display for ProcessCpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, ProcessCpu { pid, name, cpu_us }) in self.iter().enumerate() {
            let separator = if at == 0 { "" } else { SEPARATOR };
            write!(f, "{separator}{pid} {cpu_us} {name}")?;
        }
        Ok(())
    }
}

impl From<&str> for ProcessCpuList {
    /// Parses the text of a record. Invalid entries are ignored.
    fn from(text: &str) -> Self {
        let process = |part: &str| {
            let mut words = part.splitn(3, ' ');
            let (pid, cpu_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(ProcessCpu::new(pid, words.next()?, cpu_us))
        };
        Self::new(text.split(SEPARATOR).take(PROCESSES_LISTED_MAX).filter_map(process).collect())
    }
}

impl WireField for ProcessCpuList {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.is_empty() {
            out.push_display(&field.name, self);
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        Ok(from.text(&field.name).map(Self::from).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_list_is_read_back_whatever_the_names_are() {
        let names = ["nginx: worker process", "a; 1 2 b", "", "\u{1b}[2J", "x y z ", &"long".repeat(90)];
        let processes = names.iter().zip(1..).map(|(name, pid)| ProcessCpu::new(pid, name, u64::MAX));
        let list = ProcessCpuList::new(processes.collect());
        assert_eq!(ProcessCpuList::from(list.to_string().as_str()), list);
        assert_eq!(list.iter().count(), names.len());
    }

    #[test]
    fn a_long_list_keeps_what_used_the_most_in_its_order() {
        let processes = (1..=100).map(|pid| ProcessCpu::new(pid, "worker", u64::from(pid % 50)));
        let list = ProcessCpuList::new(processes.collect());
        let pids: Vec<_> = list.iter().map(|process| process.pid).collect();
        assert_eq!(pids.len(), PROCESSES_LISTED_MAX);
        assert!(pids.is_sorted() && pids.iter().all(|pid| pid % 50 >= 42), "{pids:?}");
    }

    #[test]
    fn what_an_earlier_list_had_no_room_for_is_not_counted_from_the_beginning() {
        let list = |pids: std::ops::RangeInclusive<u32>, cpu_us| {
            ProcessCpuList::new(pids.map(|pid| ProcessCpu::new(pid, "worker", cpu_us)).collect())
        };
        let since = |before: &ProcessCpuList| {
            let mut later = list(2..=3, 500);
            later.rebase(before);
            later.iter().map(|process| (process.pid, process.cpu_us)).collect::<Vec<_>>()
        };
        assert_eq!(since(&list(1..=2, 400)), [(2, 100), (3, 500)], "the third has started since");
        assert_eq!(since(&list(10..=25, 400)), []);
    }

    #[test]
    fn text_that_lists_no_processes_is_an_empty_list() {
        for text in ["", "; ; ", "1 2", "x 2 name", "1 -2 name", "99999999999 1 name"] {
            assert!(ProcessCpuList::from(text).is_empty(), "{text:?}");
        }
    }
}
