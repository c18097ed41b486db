//! The number of connections that the limit on descriptors allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors left to the rest of the process: journal, terminal, libraries.
const HEADROOM: u64 = 128;
/// Descriptors of a worker's event loop: the poll, two handles on it, and the waker.
const PER_WORKER: u64 = 4;
/// Descriptors of a worker's listening socket: the worker's, and the proxy's own.
const PER_LISTENER: u64 = 2;

/// More connections were asked for than there are descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{asked} {kind} need more descriptors than the limit of {limit} allows, which is enough for {possible}; \
     raise the hard limit (ulimit -Hn, LimitNOFILE=) or ask for fewer"
)]
pub struct DescriptorsError {
    /// `connections` or `upstream connections`.
    pub kind: &'static str,
    pub asked: usize,
    pub possible: usize,
    /// The limit on descriptors, `RLIMIT_NOFILE`.
    pub limit: u64,
}

/// Descriptors that connections to upstreams take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamSockets {
    pub per_client: usize,
    /// For all clients together, set aside before clients get theirs.
    pub pooled: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    limit: u64,
    free: u64,
}

/// Raises the process's limit on descriptors as far as it goes, and returns it.
pub fn raise_limit() -> u64 {
    let now = getrlimit(Resource::Nofile);
    if now.current != now.maximum {
        // After a refusal the lower limit stays, and is read back below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

impl Descriptors {
    /// Under a limit, beside `workers` with `addrs` each.
    pub(crate) fn new(limit: u64, workers: usize, addrs: usize) -> Self {
        let others = HEADROOM + workers as u64 * (PER_WORKER + PER_LISTENER * addrs as u64);
        Self { limit, free: limit.saturating_sub(others) }
    }

    /// Connections of clients that are possible; at least one.
    pub(crate) fn possible(self, upstreams: UpstreamSockets) -> usize {
        let free = usize::try_from(self.free).unwrap_or(usize::MAX);
        (free.saturating_sub(upstreams.pooled) / (1 + upstreams.per_client)).max(1)
    }

    /// The bound on connections of clients: the number asked for, or as many as the limit on descriptors allows.
    ///
    /// # Errors
    /// When the number asked for, or the pool, is too large.
    pub(crate) fn connections_max(
        self,
        asked: Option<usize>,
        upstreams: UpstreamSockets,
    ) -> Result<usize, DescriptorsError> {
        let limit = self.limit;
        let pooled = upstreams.pooled;
        if pooled > 0 && pooled as u64 >= self.free {
            let possible = usize::try_from(self.free.saturating_sub(1)).unwrap_or(usize::MAX);
            let kind = "upstream connections";
            return Err(DescriptorsError { kind, asked: pooled, possible, limit });
        }
        let possible = self.possible(upstreams);
        match asked {
            Some(asked) if asked > possible => {
                Err(DescriptorsError { kind: "connections", asked, possible, limit })
            }
            Some(asked) => Ok(asked.max(1)),
            None => Ok(possible),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_CLIENT: UpstreamSockets = UpstreamSockets { per_client: 1, pooled: 0 };

    fn pooled(pooled: usize) -> UpstreamSockets {
        UpstreamSockets { per_client: 0, pooled }
    }

    #[test]
    fn two_descriptors_a_connection_and_some_headroom() {
        let descriptors = Descriptors::new(1024, 0, 0);
        assert_eq!(descriptors.possible(PER_CLIENT), 448);
        assert_eq!(Descriptors::new(1024, 8, 2).possible(PER_CLIENT), 416, "workers need some too");
        assert_eq!(descriptors.connections_max(None, PER_CLIENT), Ok(448));
        assert_eq!(descriptors.connections_max(Some(100), PER_CLIENT), Ok(100));
        let none = Descriptors::new(16, 1, 1).possible(PER_CLIENT);
        assert_eq!(none, 1, "a proxy that can serve nobody would be no use");
    }

    #[test]
    fn a_pool_is_set_aside_before_clients_get_theirs() {
        let descriptors = Descriptors::new(1024, 0, 0);
        assert_eq!(
            descriptors.possible(pooled(96)),
            800,
            "one descriptor a client, since upstreams share theirs"
        );
        let both = UpstreamSockets { per_client: 1, pooled: 96 };
        assert_eq!(descriptors.possible(both), 400, "each client may be passed to an upstream of its own");
        assert_eq!(descriptors.connections_max(Some(800), pooled(96)), Ok(800));
        let error = descriptors.connections_max(Some(801), pooled(96)).unwrap_err();
        assert_eq!((error.kind, error.possible), ("connections", 800));
        let error = descriptors.connections_max(None, pooled(896)).unwrap_err();
        assert_eq!((error.kind, error.possible), ("upstream connections", 895));
    }

    #[test]
    fn more_than_the_descriptors_allow_is_refused() {
        let error = Descriptors::new(1024, 0, 0).connections_max(Some(449), PER_CLIENT).unwrap_err();
        let expected = DescriptorsError { kind: "connections", asked: 449, possible: 448, limit: 1024 };
        assert_eq!(error, expected);
        assert!(error.to_string().contains("1024"), "{error}");
    }
}
