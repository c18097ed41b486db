//! All processes of this machine, as `/proc` lists them.

use std::fs;

use super::process_tree::Process;

/// A process with its name and CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProcess {
    pub pid: u32,
    /// As `ps -o comm` has it; it may hold anything.
    pub name: String,
    /// CPU time of its own threads in user and system mode, in ticks, usually of 10 ms.
    pub cpu_ticks: u64,
}

impl NamedProcess {
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let name = stat.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
        let own = Process::parse(pid, stat)?.own;
        Some(Self { pid, name, cpu_ticks: own.user + own.system })
    }
}

/// The ids of all processes, as far as this user may see them.
pub(super) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All processes, as far as this user may see them.
pub fn processes() -> Vec<NamedProcess> {
    let read = |pid| NamedProcess::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 9 0 0 0 100 5 0 0 20 0 1 0 99 1 2";
        let expected = NamedProcess { pid: 7, name: "a) b".to_owned(), cpu_ticks: 105 };
        assert_eq!(NamedProcess::parse(7, stat), Some(expected));
        assert!(processes().iter().any(|process| process.pid == std::process::id()));
    }
}
