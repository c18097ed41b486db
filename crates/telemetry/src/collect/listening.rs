//! The listening TCP sockets of processes, and the connections that wait in their queues.

use std::fs;

use foldhash::HashSet;

/// The state of a listening socket in `/proc/net/tcp` (`TCP_LISTEN` of the kernel).
const LISTEN: &str = "0A";

/// The listening sockets of some processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListenerCounts {
    /// The sockets. Processes that share one count it once.
    pub(super) sockets: u64,
    /// The connections that wait in their queues to be accepted.
    pub(super) waiting: u64,
}

impl ListenerCounts {
    /// Those of these processes, which are of one network namespace; none of a process that hides its descriptors.
    pub(super) fn of(pids: &[u32]) -> Self {
        let inodes: HashSet<u64> = pids.iter().flat_map(|&pid| socket_inodes(pid)).collect();
        let Some(first) = pids.first().filter(|_| !inodes.is_empty()) else { return Self::default() };
        let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{first}/net/{name}")));
        let mut sum = Self::default();
        for table in tables.into_iter().flatten() {
            for waiting in table.lines().filter_map(|line| waiting(line, &inodes)) {
                sum.sockets += 1;
                sum.waiting = sum.waiting.saturating_add(waiting);
            }
        }
        sum
    }
}

/// The connections that wait at a socket, if the line is one of a listening socket of these.
fn waiting(line: &str, inodes: &HashSet<u64>) -> Option<u64> {
    // sl local_address rem_address st tx_queue:rx_queue tr:when retransmits uid timeout inode
    let mut words = line.split_whitespace();
    let (state, queues) = (words.nth(3)?, words.next()?);
    let inode: u64 = words.nth(4)?.parse().ok()?;
    let (_, waiting) = queues.split_once(':')?;
    (state == LISTEN && inodes.contains(&inode)).then(|| u64::from_str_radix(waiting, 16).ok())?
}

fn socket_inodes(pid: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let inode = |target: std::path::PathBuf| {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    targets.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_listening_socket_is_read_from_the_kernels_table() {
        let listening = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let open = "   2: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0";
        let inodes = [4711, 4712].into_iter().collect();
        assert_eq!(
            [listening, open, "", "sl local"].map(|line| waiting(line, &inodes)),
            [Some(3), None, None, None]
        );
        assert_eq!(waiting(listening, &HashSet::default()), None, "another process's");
    }
}
