//! How much memory the process takes, and how much it may take.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Memory in use, and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    pub used_bytes: u64,
    pub max_bytes: u64,
    /// What bounds it, in words.
    pub bound: &'static str,
}

impl MemoryUsage {
    pub(super) fn reaches(self, percent: u64) -> bool {
        u128::from(self.used_bytes) * 100 >= u128::from(self.max_bytes) * u128::from(percent)
    }
}

type Measure = dyn Fn(Option<usize>) -> Option<MemoryUsage> + Send + Sync;

/// Measures memory. The default is the kernel's count: of the process for [`Limits::memory_bytes_max`], and of its control
/// group for the group's own bound.
///
/// [`Limits::memory_bytes_max`]: crate::Limits::memory_bytes_max
#[derive(Clone)]
pub struct MemoryGauge(Arc<Measure>);

impl MemoryGauge {
    /// A gauge that calls `measure` with the bound of the configuration. It returns `None` without any bound.
    pub fn new(measure: impl Fn(Option<usize>) -> Option<MemoryUsage> + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }

    pub(super) fn measure(&self, max: Option<usize>) -> Option<MemoryUsage> {
        (self.0)(max)
    }
}

impl Default for MemoryGauge {
    fn default() -> Self {
        Self::new(|max| match max {
            Some(max) => Some(MemoryUsage {
                used_bytes: resident_bytes()?,
                max_bytes: max as u64,
                bound: "--memory-max",
            }),
            None => ControlGroup::own()?.usage(resident_bytes()?),
        })
    }
}

impl fmt::Debug for MemoryGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryGauge").finish_non_exhaustive()
    }
}

/// Resident memory of the process.
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    Some(resident_pages(&statm)? * rustix::param::page_size() as u64)
}

/// The second number of `/proc/self/statm`.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// The folder of a control group (version 2) with a bound on memory.
#[derive(Debug)]
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// The process's own, or the nearest one above it that has a bound.
    fn own() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Self::bounded(Path::new("/sys/fs/cgroup"), own)
    }

    fn bounded(root: &Path, own: &str) -> Option<Self> {
        let own = root.join(own);
        let mut groups = own.ancestors().take_while(|group| group.starts_with(root));
        groups.find(|group| number(&group.join("memory.max")).is_some()).map(|group| Self(group.to_owned()))
    }

    /// Without the pages of files, which the kernel frees when it needs memory. If other processes hold most of it, only
    /// what the process and sockets hold: to turn clients away would not help.
    fn usage(&self, resident_bytes: u64) -> Option<MemoryUsage> {
        let stat = fs::read_to_string(self.0.join("memory.stat")).ok()?;
        let of = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
        };
        let all = number(&self.0.join("memory.current"))?;
        let all = all.saturating_sub(of("active_file") + of("inactive_file"));
        let own = resident_bytes + of("sock");
        Some(MemoryUsage {
            used_bytes: if own < all / 2 { own } else { all },
            max_bytes: number(&self.0.join("memory.max"))?,
            bound: "memory.max of the control group",
        })
    }
}

/// The number in a file; `None` if it is `max`.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_of_the_process_counts_towards_the_option() {
        let usage = MemoryGauge::default().measure(Some(1 << 30)).unwrap();
        assert_eq!(usage.max_bytes, 1 << 30);
        assert!((1 << 20..1 << 34).contains(&usage.used_bytes), "{usage:?}");
        assert_eq!(resident_pages("2 17 3\n"), Some(17));
        assert_eq!(resident_pages(""), None);
    }

    #[test]
    fn the_nearest_control_group_with_a_bound_counts_without_pages_of_files() {
        let root = tempfile::tempdir().unwrap();
        let (pod, service) = (root.path().join("pod"), root.path().join("pod/service"));
        fs::create_dir_all(&service).unwrap();
        let write = |group: &Path, name: &str, text: &str| fs::write(group.join(name), text).unwrap();
        write(&service, "memory.max", "max\n");
        assert!(ControlGroup::bounded(root.path(), "pod/service").is_none(), "no group has a bound");
        write(&pod, "memory.max", "1000\n");
        write(&pod, "memory.current", "900\n");
        write(&pod, "memory.stat", "anon 600\nfile 250\nactive_file 100\ninactive_file 150\nsock 50\n");
        let group = ControlGroup::bounded(root.path(), "pod/service").unwrap();
        let usage = group.usage(300).unwrap();
        assert_eq!((usage.used_bytes, usage.max_bytes), (650, 1000));
        assert_eq!(group.usage(200).unwrap().used_bytes, 250, "others hold most of it");
        write(&pod, "memory.max", "max\n");
        assert_eq!(group.usage(300), None, "it has been lifted");
    }
}
