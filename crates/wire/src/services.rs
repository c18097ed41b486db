//! The names of the servers of this machine.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use recorder::host::{ListeningProcess, NamespaceListeners, listening_processes, listening_sockets};

/// How often new listening sockets are looked for. Whose they are takes longer to find out.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often containers are looked into, whose sockets this namespace does not show.
const LOOK_INTO_CONTAINERS_EVERY: Duration = Duration::from_secs(5);

/// Which process listens where; nothing for captures, which may be of another machine.
#[derive(Clone, Debug, Default)]
pub struct Services {
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    /// The processes of this network namespace, by port.
    own: HashMap<u16, ListeningProcess>,
    /// The addresses of this namespace; empty for captures.
    addresses: HashSet<IpAddr>,
    /// The processes of other namespaces, such as containers.
    others: HashMap<SocketAddr, ListeningProcess>,
}

impl Services {
    /// The servers of this machine. A thread looks for new ones as long as this lives: it needs to see other users' processes.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn of_this_machine() -> io::Result<Self> {
        let services = Self { names: Arc::new(Mutex::new(Names::of_this_machine())) };
        let names = Arc::downgrade(&services.names);
        // CPU time is accounted by the beginning of the name.
        std::thread::Builder::new().name("observe-names".to_owned()).spawn(move || look_up(&names))?;
        Ok(services)
    }

    /// Whether a process of this name listens at this address.
    pub(crate) fn is_of(&self, server: SocketAddr, process: &str) -> bool {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.at(server).is_some_and(|known| known.name == process)
    }

    /// The service at an address, such as `:443 nginx`; with the unit, such as `:8443 java (kafka.service)`, where it is not
    /// named after the process; with the whole address if that is another machine's or a container's.
    pub(crate) fn name(&self, server: SocketAddr, is_outgoing: bool) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = if is_outgoing || !names.is_own(server.ip()) {
            server.to_string()
        } else {
            format!(":{}", server.port())
        };
        match names.at(server).filter(|_| !is_outgoing) {
            Some(ListeningProcess { name, unit })
                if unit.split_once('.').is_none_or(|(of, _)| of == name) =>
            {
                format!("{place} {name}")
            }
            Some(ListeningProcess { name, unit }) => format!("{place} {name} ({unit})"),
            None => place,
        }
    }
}

impl Names {
    fn of_this_machine() -> Self {
        let mut namespaces = listening_processes().into_iter();
        let own = namespaces.next().unwrap_or_default();
        let at_addresses = |other: NamespaceListeners| {
            let NamespaceListeners { addresses, processes } = other;
            processes.into_iter().flat_map(move |(port, process)| {
                let at = |address: &IpAddr| (SocketAddr::new(*address, port), process.clone());
                addresses.iter().map(at).collect::<Vec<_>>()
            })
        };
        Self {
            own: own.processes,
            addresses: own.addresses.into_iter().collect(),
            others: namespaces.flat_map(at_addresses).collect(),
        }
    }

    /// Takes what was found now. A server that has just ended keeps its name: its last connections may be counted later.
    fn renew(&mut self, found: Self) {
        let Self { own, addresses, others } = found;
        self.own.extend(own);
        (self.addresses, self.others) = (addresses, others);
    }

    /// Whether this namespace has the address, as far as that is known.
    fn is_own(&self, ip: IpAddr) -> bool {
        self.addresses.is_empty() || ip.is_loopback() || self.addresses.contains(&ip)
    }

    fn at(&self, server: SocketAddr) -> Option<&ListeningProcess> {
        if self.is_own(server.ip()) { self.own.get(&server.port()) } else { self.others.get(&server) }
    }
}

fn look_up(names: &Weak<Mutex<Names>>) {
    let (mut known, mut looked) = (Vec::new(), Instant::now());
    loop {
        std::thread::sleep(LOOK_EVERY);
        let Some(names) = names.upgrade() else { return };
        let listening = listening_sockets();
        if listening != known || looked.elapsed() >= LOOK_INTO_CONTAINERS_EVERY {
            (known, looked) = (listening, Instant::now());
            let found = Names::of_this_machine();
            names.lock().unwrap_or_else(PoisonError::into_inner).renew(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, unit: &str) -> ListeningProcess {
        ListeningProcess { name: name.to_owned(), unit: unit.to_owned() }
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_port_names_a_process_at_an_address_of_its_namespace_only() {
        let names = Names {
            own: [(443, process("nginx", "nginx.service")), (8_443, process("java", "kafka.service"))]
                .into_iter()
                .collect(),
            addresses: [at("192.0.2.1:0").ip()].into_iter().collect(),
            others: [(at("172.17.0.2:443"), process("envoy", ""))].into_iter().collect(),
        };
        let services = Services { names: Arc::new(Mutex::new(names)) };
        let expected = [
            ("192.0.2.1:443", ":443 nginx"),
            ("127.0.0.1:443", ":443 nginx"),
            ("192.0.2.1:8443", ":8443 java (kafka.service)"),
            ("192.0.2.1:9443", ":9443"),
            ("172.17.0.2:443", "172.17.0.2:443 envoy"),
            // Of another machine, behind this one.
            ("198.51.100.7:443", "198.51.100.7:443"),
        ];
        for (server, name) in expected {
            assert_eq!(services.name(at(server), false), name);
        }
        assert_eq!(services.name(at("192.0.2.1:443"), true), "192.0.2.1:443", "a peer");
        let of = ["192.0.2.1:443", "172.17.0.2:443", "198.51.100.7:443"];
        assert_eq!(of.map(|server| services.is_of(at(server), "nginx")), [true, false, false]);
        assert_eq!(Services::default().name(at("198.51.100.7:443"), false), ":443", "a capture");
    }
}
