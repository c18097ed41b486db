//! Looks up the names of upstreams.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

type LookUp = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks up the addresses of a host and port. The default is the system's look-up, with `/etc/hosts`.
#[derive(Clone)]
pub struct Resolver(Arc<LookUp>);

impl Resolver {
    /// A resolver that calls `look_up`, which may block.
    pub fn new(look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    /// Looks up these names with their ports now, which may block: the result answers from memory.
    pub(crate) fn looked_up<'a>(&self, names: impl IntoIterator<Item = (&'a str, u16)>) -> Self {
        let look_up = |(host, port): (&str, u16)| {
            ((host.to_owned(), port), self.resolve(host, port).map_err(|error| error.to_string()))
        };
        let known: HashMap<_, _> = names.into_iter().map(look_up).collect();
        let absent = || Err("it has not been looked up".to_owned());
        Self::new(move |host, port| {
            // An address needs no look-up.
            if let Ok(ip) = host.parse::<IpAddr>() {
                return Ok(vec![SocketAddr::new(ip, port)]);
            }
            known.get(&(host.to_owned(), port)).cloned().unwrap_or_else(absent).map_err(io::Error::other)
        })
    }

    /// The addresses of a host and port, at least one.
    ///
    /// # Errors
    /// When there is none, or they cannot be looked up.
    pub(crate) fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let addrs = (self.0)(host, port)?;
        if addrs.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(addrs)
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_resolver_knows_addresses_and_the_hosts_file() {
        let resolver = Resolver::default();
        for (host, port) in [("127.0.0.1", 80), ("::1", 80), ("localhost", 8080)] {
            let addrs = resolver.resolve(host, port).unwrap();
            assert!(addrs.iter().all(|addr| addr.ip().is_loopback() && addr.port() == port), "{addrs:?}");
        }
        assert!(Resolver::new(|_, _| Ok(Vec::new())).resolve("app", 80).is_err());
    }
}
