//! How many connections the process can hold.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that one connection takes: its client's and its upstream's.
const PER_CONNECTION: u64 = 2;
/// Descriptors left to the rest of the process: journal, terminal, libraries.
const HEADROOM: u64 = 128;
/// Descriptors of a worker's event loop: itself, two handles on it, and what wakes it.
const PER_WORKER: u64 = 4;
/// Descriptors of a worker's listening socket: the worker's, and the proxy's own.
const PER_LISTENER: u64 = 2;

/// More connections were asked for than there are descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{asked} connections need more descriptors than the limit of {limit} allows, which is enough for {possible}; \
     raise the hard limit (ulimit -Hn, LimitNOFILE=) or ask for fewer"
)]
pub struct DescriptorsError {
    /// Connections asked for.
    pub asked: usize,
    /// Connections possible.
    pub possible: usize,
    /// The limit on descriptors, `RLIMIT_NOFILE`.
    pub limit: u64,
}

/// Raises the limit on descriptors as far as it goes and returns it.
pub(crate) fn raise_limit() -> u64 {
    let now = getrlimit(Resource::Nofile);
    if now.current != now.maximum {
        // After a refusal the lower limit stays, and is read back below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Connections that are possible under a limit on descriptors, beside `workers` with `addrs` each.
pub(crate) fn possible(limit: u64, workers: usize, addrs: usize) -> usize {
    let others = HEADROOM + workers as u64 * (PER_WORKER + PER_LISTENER * addrs as u64);
    usize::try_from((limit.saturating_sub(others) / PER_CONNECTION).max(1)).unwrap_or(usize::MAX)
}

/// The bound on connections: the number asked for, or as many as the limit on descriptors allows.
pub(crate) fn connections_max(
    asked: Option<usize>,
    possible: usize,
    limit: u64,
) -> Result<usize, DescriptorsError> {
    match asked {
        Some(asked) if asked > possible => Err(DescriptorsError { asked, possible, limit }),
        Some(asked) => Ok(asked.max(1)),
        None => Ok(possible),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_descriptors_a_connection_and_some_headroom() {
        assert_eq!(possible(1024, 0, 0), 448);
        assert_eq!(possible(1024, 8, 2), 416, "workers need some too");
        assert_eq!(connections_max(None, 448, 1024), Ok(448));
        assert_eq!(connections_max(Some(100), 448, 1024), Ok(100));
        assert_eq!(possible(16, 1, 1), 1, "a proxy that can serve nobody would be no use");
    }

    #[test]
    fn more_than_the_descriptors_allow_is_refused() {
        let error = connections_max(Some(449), 448, 1024).unwrap_err();
        assert_eq!(error, DescriptorsError { asked: 449, possible: 448, limit: 1024 });
        assert!(error.to_string().contains("1024"), "{error}");
    }
}
