//! The names of the servers of this machine.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use foldhash::HashMap;
use recorder::host::{ListeningProcess, listening_processes, listening_sockets};

/// How often new listening sockets are looked for. Whose they are takes longer to find out.
const LOOK_EVERY: Duration = Duration::from_millis(200);

type Names = Mutex<HashMap<u16, ListeningProcess>>;

/// Which process listens on which port; nothing for captures, which may be of another machine.
#[derive(Clone, Debug, Default)]
pub struct Services {
    names: Arc<Names>,
}

impl Services {
    /// The servers of this machine. A thread looks for new ones as long as this lives: it needs to see other users' processes.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn of_this_machine() -> io::Result<Self> {
        let services = Self { names: Arc::new(Mutex::new(listening_processes())) };
        let names = Arc::downgrade(&services.names);
        // CPU time is accounted by the beginning of the name.
        std::thread::Builder::new().name("observe-names".to_owned()).spawn(move || look_up(&names))?;
        Ok(services)
    }

    /// Whether a process of this name listens on this port.
    pub(crate) fn is_of(&self, port: u16, process: &str) -> bool {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&port).is_some_and(|known| known.name == process)
    }

    /// The service at an address, such as `:443 nginx`; with the unit, such as `:8443 java (kafka.service)`, where it is not
    /// named after the process; with the whole address if it is another machine's.
    pub(crate) fn name(&self, server: SocketAddr, is_outgoing: bool) -> String {
        if is_outgoing {
            return server.to_string();
        }
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(&server.port()) {
            Some(ListeningProcess { name, unit })
                if unit.split_once('.').is_none_or(|(of, _)| of == name) =>
            {
                format!(":{} {name}", server.port())
            }
            Some(ListeningProcess { name, unit }) => format!(":{} {name} ({unit})", server.port()),
            None => format!(":{}", server.port()),
        }
    }
}

fn look_up(names: &Weak<Names>) {
    let mut known = Vec::new();
    loop {
        std::thread::sleep(LOOK_EVERY);
        let Some(names) = names.upgrade() else { return };
        let listening = listening_sockets();
        if listening != known {
            known = listening;
            let found = listening_processes();
            // A server that has just ended keeps its name: its last connections may be counted later.
            names.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
    }
}
