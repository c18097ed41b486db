//! The listening TCP sockets of processes, and the connections that wait in their queues.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use foldhash::{HashMap, HashSet};

use super::processes::pids;
use super::unit_processes::unit_of;

/// The state of a listening socket in `/proc/net/tcp` (`TCP_LISTEN` of the kernel).
const LISTEN: &str = "0A";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListenerCounts {
    /// The sockets. Processes that share one count it once.
    pub(super) sockets: u64,
    /// The connections that wait in their queues to be accepted.
    pub(super) waiting: u64,
}

impl ListenerCounts {
    /// Counts the listening sockets of these processes, which share a network namespace. A process that hides its
    /// descriptors counts nothing.
    pub(super) fn of(pids: &[u32]) -> Self {
        let inodes: HashSet<u64> = pids.iter().flat_map(|&pid| socket_inodes(pid)).collect();
        let Some(first) = pids.first().filter(|_| !inodes.is_empty()) else { return Self::default() };
        let tables = ["tcp", "tcp6"].map(|name| File::open(format!("/proc/{first}/net/{name}")));
        let mut sum = Self::default();
        for table in tables.into_iter().flatten() {
            sum.add(BufReader::new(table), &inodes);
        }
        sum
    }

    fn add(&mut self, table: impl BufRead, inodes: &HashSet<u64>) {
        for socket in ListeningSocket::all(table).filter(|socket| inodes.contains(&socket.inode)) {
            self.sockets += 1;
            self.waiting = self.waiting.saturating_add(socket.waiting);
        }
    }
}

/// A listening TCP socket of a table of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListeningSocket {
    pub port: u16,
    /// Its inode, by which descriptors of processes name it.
    inode: u64,
    /// The connections that wait in its queue to be accepted.
    waiting: u64,
}

impl ListeningSocket {
    /// Reads the listening sockets of `/proc/net/tcp` or `tcp6`. They come first there; the connections that follow,
    /// perhaps tens of thousands, are not read.
    pub fn all(table: impl BufRead) -> impl Iterator<Item = Self> {
        table.lines().skip(1).map_while(|line| Self::parse(&line.ok()?))
    }

    /// From a line of the table; `None` if it is of another socket.
    fn parse(line: &str) -> Option<Self> {
        // sl local_address rem_address st tx_queue:rx_queue tr:when retransmits uid timeout inode
        let mut words = line.split_whitespace();
        let (local, state, queues) = (words.nth(1)?, words.nth(1)?, words.next()?);
        let inode = words.nth(4)?.parse().ok()?;
        let ((_, port), (_, waiting)) = (local.rsplit_once(':')?, queues.split_once(':')?);
        (state == LISTEN).then_some(Self {
            port: u16::from_str_radix(port, 16).ok()?,
            inode,
            waiting: u64::from_str_radix(waiting, 16).ok()?,
        })
    }
}

/// Who listens on a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListeningProcess {
    /// The name of the process, as `ps -o comm` has it.
    pub name: String,
    /// Its systemd unit; empty outside units and in a login session.
    pub unit: String,
}

/// The servers of a network namespace, such as a container's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceListeners {
    /// The addresses of its interfaces, but for loopback.
    pub addresses: Vec<IpAddr>,
    /// By port, the process that started first. A port is missing if its process belongs to somebody else, and we may
    /// not look.
    pub processes: HashMap<u16, ListeningProcess>,
}

/// The servers of this network namespace, and then those of the others whose processes we may look into.
pub fn listening_processes() -> Vec<NamespaceListeners> {
    let mut pids: Vec<u32> = pids().collect();
    pids.sort_unstable();
    let mut namespaces: Vec<(PathBuf, Vec<u32>)> =
        fs::read_link("/proc/self/ns/net").map(|own| (own, Vec::new())).into_iter().collect();
    for pid in pids {
        let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/net")) else { continue };
        match namespaces.iter_mut().find(|(known, _)| *known == namespace) {
            Some((_, pids)) => pids.push(pid),
            None => namespaces.push((namespace, vec![pid])),
        }
    }
    namespaces.into_iter().map(|(_, pids)| NamespaceListeners::of(&pids)).collect()
}

impl NamespaceListeners {
    /// The servers among all processes of a namespace.
    fn of(pids: &[u32]) -> Self {
        let Some(first) = pids.first() else { return Self::default() };
        let read =
            |pid: &u32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let tables = ["tcp", "tcp6"].map(|name| File::open(format!("/proc/{first}/net/{name}")));
        let sockets =
            tables.into_iter().flatten().flat_map(|table| ListeningSocket::all(BufReader::new(table)));
        let ports: HashMap<u64, u16> = sockets.map(|socket| (socket.inode, socket.port)).collect();
        let mut processes = HashMap::default();
        for pid in pids.iter().filter(|_| !ports.is_empty()) {
            for port in socket_inodes(*pid).iter().filter_map(|inode| ports.get(inode)) {
                processes.entry(*port).or_insert_with(|| ListeningProcess {
                    name: read(pid, "comm").trim_end().to_owned(),
                    unit: unit_of(&read(pid, "cgroup")).unwrap_or_default().to_owned(),
                });
            }
        }
        let mut addresses = addresses_v4(&read(first, "net/fib_trie"));
        addresses.extend(addresses_v6(&read(first, "net/if_inet6")));
        Self { addresses, processes }
    }
}

/// The local addresses in the kernel's routes (`/proc/net/fib_trie`), each once.
fn addresses_v4(routes: &str) -> Vec<IpAddr> {
    let (mut found, mut latest) = (Vec::new(), None);
    for line in routes.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            latest = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(latest.filter(|address| !address.is_loopback()).map(IpAddr::V4));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The addresses in `/proc/net/if_inet6`.
fn addresses_v6(interfaces: &str) -> Vec<IpAddr> {
    let bits = interfaces.lines().filter_map(|line| u128::from_str_radix(line.get(..32)?, 16).ok());
    bits.map(Ipv6Addr::from).filter(|address| !address.is_loopback()).map(IpAddr::V6).collect()
}

fn socket_inodes(pid: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let inode = |target: PathBuf| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    targets.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_listening_socket_is_read_from_the_kernels_table() {
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        let listening = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let of_another = listening.replace("4711", "4710");
        let open = "   2: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0";
        let inodes = [4711, 4712].into_iter().collect();
        let counts = |lines: &[&str]| {
            let mut counts = ListenerCounts::default();
            counts.add(lines.join("\n").as_bytes(), &inodes);
            (counts.sockets, counts.waiting)
        };
        assert_eq!(counts(&[header, listening, &of_another, listening, open]), (2, 6));
        assert_eq!(
            counts(&[header, open, listening]),
            (0, 0),
            "no listening socket comes after a connection"
        );
        assert_eq!(counts(&[header, "", ""]), (0, 0));
        let table = [header, listening].join("\n");
        let ports: Vec<u16> = ListeningSocket::all(table.as_bytes()).map(|socket| socket.port).collect();
        assert_eq!(ports, [8_080]);
    }

    #[test]
    fn the_sockets_of_this_process_are_found_beside_its_connections() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = ListenerCounts::of(&[std::process::id()]);
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let counts = ListenerCounts::of(&[std::process::id()]);
        assert!(before.sockets >= 1 && counts.waiting >= 1, "{before:?} {counts:?}");
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = listening_processes();
        assert_eq!(found[0].processes.get(&port).map(|it| &*it.name), Some(own.trim_end()));
    }

    #[test]
    fn addresses_are_read_from_the_kernels_tables() {
        let routes = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 172.17.0.1\n        /32 host LOCAL\n     |-- 172.17.255.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\nLocal:\n     |-- 172.17.0.1\n        /32 host LOCAL\n";
        assert_eq!(addresses_v4(routes), [IpAddr::from([172, 17, 0, 1])]);
        let interfaces = "00000000000000000000000000000001 01 80 10 80       lo\nfe800000000000000042acfffe110002 02 40 20 80     eth0\n";
        assert_eq!(addresses_v6(interfaces), ["fe80::42:acff:fe11:2".parse::<IpAddr>().unwrap()]);
        assert_eq!((addresses_v4("|-- x\n/32 host LOCAL"), addresses_v6("é")), (Vec::new(), Vec::new()));
    }
}
