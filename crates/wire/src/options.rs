//! Which connections are counted.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use records::ids::ClientId;

use crate::services::Services;

/// The connections that are looked at, and what is said of them.
#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// The servers' ports; empty for every port on which TLS is spoken.
    pub ports: Vec<u16>,
    /// The name of the process that serves; `None` for every one.
    pub process: Option<String>,
    /// Connections that this machine opens (true) or accepts (false); `None` for both.
    pub outgoing: Option<bool>,
    /// Leaves out server names.
    pub hides_names: bool,
    pub services: Services,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// In few steps: each packet is looked up, most of them more than once.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for end in [self.client, self.server] {
            match end.ip() {
                IpAddr::V4(ip) => state.write_u64(u64::from(ip.to_bits()) << 16 | u64::from(end.port())),
                IpAddr::V6(ip) => {
                    state.write_u128(ip.to_bits());
                    state.write_u16(end.port());
                }
            }
        }
    }
}

impl WireOptions {
    /// The end that is counted as the client: for connections that this machine opens, the peer.
    pub(crate) fn client(&self, key: FlowKey) -> ClientId {
        let counted = if self.outgoing == Some(true) { key.server } else { key.client };
        ClientId::from(counted.ip())
    }

    /// `is_outgoing` says whether this machine is the client.
    pub(crate) fn is_watched(&self, key: FlowKey, is_outgoing: bool) -> bool {
        let Self { ports, process, services, .. } = self;
        let is_within = key.client.ip() == key.server.ip() || key.client.ip().is_loopback();
        (ports.is_empty() || ports.contains(&key.server.port()))
            && process.as_ref().is_none_or(|process| services.is_of(key.server, process))
            && (is_within || self.outgoing.is_none_or(|outgoing| outgoing == is_outgoing))
    }
}
