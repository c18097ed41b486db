//! Counts of each upstream: what both modes tell of a connection, and of a failed attempt.

use std::io;
use std::time::Duration;

use records::delta::UpstreamDelta;
use records::metrics::{UpstreamCounter, UpstreamLatency};

use crate::notices::is_shortage;
use crate::tls::{UpstreamTlsError, UpstreamTlsFailure};
use crate::upstream::stream::UpstreamHandshake;

/// Counts a connection that is established, after this time without TLS.
pub fn count_connection(upstream: &mut UpstreamDelta, took: Duration, handshake: Option<UpstreamHandshake>) {
    upstream.count(UpstreamCounter::Connections, 1);
    upstream.time(UpstreamLatency::Connect, took);
    if let Some(handshake) = handshake {
        upstream.time(UpstreamLatency::TlsCompute, handshake.compute);
        count_handshake(upstream, &handshake);
    }
}

/// Counts a complete handshake with an upstream, whoever is its client.
pub(crate) fn count_handshake(upstream: &mut UpstreamDelta, handshake: &UpstreamHandshake) {
    let UpstreamHandshake { took, compute: _, is_resumed, has_offered, is_tls13 } = *handshake;
    let (counter, latency) = if is_resumed {
        (UpstreamCounter::TlsResumed, UpstreamLatency::TlsResumed)
    } else {
        (UpstreamCounter::TlsFull, UpstreamLatency::TlsFull)
    };
    upstream.count(counter, 1);
    upstream.count(UpstreamCounter::TlsRefused, u64::from(has_offered && !is_resumed));
    upstream.count(UpstreamCounter::Tls12, u64::from(!is_tls13));
    upstream.time(latency, took);
}

/// Counts a failed attempt to connect under its cause. A shortage of the proxy's own is no failure of the upstream.
#[cold]
pub fn count_failed_attempt(upstream: &mut UpstreamDelta, error: &io::Error) {
    use io::ErrorKind as E;
    if is_shortage(error) {
        return;
    }
    let cause = match error.kind() {
        E::ConnectionRefused | E::NotFound => UpstreamCounter::Refused,
        // The backlog of a unix socket stayed full.
        E::TimedOut | E::WouldBlock => UpstreamCounter::TimedOut,
        // It ended in the middle of the handshake.
        E::UnexpectedEof => UpstreamCounter::FailedTls,
        _ => match UpstreamTlsError::of(error) {
            Some(error) => match error.cause {
                UpstreamTlsFailure::Certificate => UpstreamCounter::FailedCertificate,
                UpstreamTlsFailure::Alert => UpstreamCounter::FailedAlert,
                UpstreamTlsFailure::Protocol => UpstreamCounter::FailedTls,
            },
            None => UpstreamCounter::FailedOther,
        },
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
        assert_eq!(of(&upstream.counters), [2, 2, 0, 0, 0, 1]);
        count_failed_attempt(&mut upstream, &Errno::MFILE.into());
        assert_eq!(
            of(&upstream.counters),
            [2, 2, 0, 0, 0, 1],
            "a shortage of descriptors is the proxy's own"
        );
    }
}
