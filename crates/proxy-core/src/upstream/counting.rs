//! Counts of each upstream: what both modes tell of a failed attempt.

use std::io;

use records::delta::UpstreamDelta;
use records::metrics::UpstreamCounter;

use crate::notices::is_shortage;

/// Counts a failed attempt to connect under its cause. A shortage of the proxy's own is no failure of the upstream.
#[cold]
pub fn count_failed_attempt(upstream: &mut UpstreamDelta, error: &io::Error) {
    if is_shortage(error) {
        return;
    }
    use io::ErrorKind as E;
    let cause = match error.kind() {
        E::ConnectionRefused | E::NotFound => UpstreamCounter::Refused,
        // The backlog of a unix socket stayed full.
        E::TimedOut | E::WouldBlock => UpstreamCounter::TimedOut,
        _ => UpstreamCounter::FailedOther,
    };
    upstream.count(cause, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::metrics::Counters;
    use rustix::io::Errno;

    #[test]
    fn a_failed_attempt_counts_under_its_cause() {
        let mut upstream = UpstreamDelta::default();
        for errno in [Errno::CONNREFUSED, Errno::NOENT, Errno::TIMEDOUT, Errno::AGAIN, Errno::HOSTUNREACH] {
            count_failed_attempt(&mut upstream, &errno.into());
        }
        let of = |counters: &Counters<UpstreamCounter>| UpstreamCounter::FAILED.map(|cause| counters[cause]);
        assert_eq!(of(&upstream.counters), [2, 2, 1]);
        count_failed_attempt(&mut upstream, &Errno::MFILE.into());
        assert_eq!(of(&upstream.counters), [2, 2, 1], "a shortage of descriptors is the proxy's own");
    }
}
