//! Divides the wall time of a handshake: every moment since the `ClientHello` could be read belongs to one part.

use std::time::{Duration, Instant};

use crate::io::socket_options::PathInfo;
use crate::stats::handshake_time::HandshakeTime;
use crate::tls::CryptoTime;

/// The wall time of a handshake up to now, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct HandshakeTimer {
    /// When the worker learned of the first byte.
    first: Option<Instant>,
    /// Time since then that is accounted for.
    until_ns: u64,
    /// Nothing had come from the client.
    waited_ns: u64,
    /// Something had come, and the worker was busy with other connections.
    worker_ns: u64,
    /// Spent in rustls.
    compute_ns: u64,
    crypto: CryptoTime,
    /// Flights of the client that were awaited after the `ClientHello`.
    flights: u32,
    /// Whether the client has been sent something since its last bytes.
    awaits_flight: bool,
}

/// One read that brought bytes, in the order of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedRead {
    /// When the worker woke up and learned of the bytes.
    pub(super) ready_at: Instant,
    /// When it handed them to rustls.
    pub(super) began_at: Instant,
    /// When rustls was done with them.
    pub(super) ended_at: Instant,
    /// Cryptography within that time.
    pub(super) crypto: CryptoTime,
    /// Whether they were answered with a flight of the proxy's.
    pub(super) has_answered: bool,
}

impl HandshakeTimer {
    /// Accounts for a read, and for the time since the previous one.
    pub(super) fn add(&mut self, read: TimedRead) {
        let first = *self.first.get_or_insert(read.ready_at);
        let since_first = |at: Instant| at.saturating_duration_since(first).as_nanos() as u64;
        let until_ns = self.until_ns;
        let began_ns = since_first(read.began_at).max(until_ns);
        // Bytes that arrived while the worker was computing for the same connection were not waited for.
        let ready_ns = since_first(read.ready_at).clamp(until_ns, began_ns);
        let ended_ns = since_first(read.ended_at).max(began_ns);
        let waited_ns = ready_ns - until_ns;
        self.waited_ns += waited_ns;
        self.worker_ns += began_ns - ready_ns;
        self.compute_ns += ended_ns - began_ns;
        self.crypto += read.crypto;
        self.flights += u32::from(self.awaits_flight && waited_ns > 0);
        self.awaits_flight = read.has_answered;
        self.until_ns = ended_ns;
    }

    /// When the worker learned of the first byte.
    pub(super) fn first(&self) -> Option<Instant> {
        self.first
    }

    /// When rustls was last done with something.
    pub(super) fn until(&self) -> Option<Instant> {
        self.first.map(|first| first + Duration::from_nanos(self.until_ns))
    }

    /// The parts, by the kernel's knowledge of the path to the client. Without a round-trip time all waiting is the
    /// client's.
    pub(super) fn parts(&self, path: PathInfo) -> HandshakeTime {
        let round_trips = |rtt: Duration| (rtt.as_nanos() as u64).saturating_mul(self.flights.into());
        let network_ns = path.rtt.map(|rtt| round_trips(rtt).min(self.waited_ns));
        HandshakeTime {
            whole_ns: self.until_ns,
            network_ns,
            client_ns: self.waited_ns - network_ns.unwrap_or(0),
            worker_ns: self.worker_ns,
            compute_ns: self.compute_ns,
            key_exchange_ns: self.crypto.key_exchange_ns,
            signature_ns: self.crypto.signature_ns,
            rtt: path.rtt,
            retransmits: path.retransmits,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(start: Instant, us: [u64; 3], has_answered: bool) -> TimedRead {
        let [ready_at, began_at, ended_at] = us.map(|us| start + Duration::from_micros(us));
        TimedRead { ready_at, began_at, ended_at, crypto: CryptoTime::default(), has_answered }
    }

    fn path(rtt: Option<Duration>) -> PathInfo {
        PathInfo { rtt, retransmits: 2 }
    }

    fn us(time: &HandshakeTime) -> [u64; 5] {
        let network_ns = time.network_ns.unwrap_or_default();
        [time.whole_ns, network_ns, time.client_ns, time.worker_ns, time.compute_ns].map(|ns| ns / 1_000)
    }

    #[test]
    fn a_handshake_with_two_flights_awaits_one_round_trip() {
        let (mut time, start) = (HandshakeTimer::default(), Instant::now());
        time.add(read(start, [0, 30, 230], true));
        time.add(read(start, [1_230, 1_240, 1_260], false));
        let rtt = Some(Duration::from_micros(400));
        assert_eq!(us(&time.parts(path(rtt))), [1_260, 400, 600, 40, 220]);
        assert_eq!(us(&time.parts(path(None))), [1_260, 0, 1_000, 40, 220], "all of it is the client's");
        assert_eq!(time.parts(path(None)).network_ns, None);
        let long = Some(Duration::from_secs(1));
        assert_eq!(us(&time.parts(path(long))), [1_260, 1_000, 0, 40, 220], "no more than was waited");
    }

    #[test]
    fn a_flight_in_pieces_is_one_round_trip_and_its_pieces_are_the_clients() {
        let (mut time, start) = (HandshakeTimer::default(), Instant::now());
        // The hello in two pieces, then the Finished in two.
        time.add(read(start, [0, 0, 10], false));
        time.add(read(start, [100, 100, 200], true));
        time.add(read(start, [1_000, 1_000, 1_010], false));
        time.add(read(start, [1_100, 1_100, 1_150], false));
        assert_eq!(us(&time.parts(path(Some(Duration::from_micros(300))))), [1_150, 300, 680, 0, 170]);
    }

    #[test]
    fn bytes_received_during_computation_count_as_waiting() {
        let (mut time, start) = (HandshakeTimer::default(), Instant::now());
        time.add(read(start, [0, 0, 500], true));
        time.add(read(start, [100, 700, 800], false));
        assert_eq!(us(&time.parts(path(Some(Duration::from_micros(50))))), [800, 0, 0, 200, 600]);
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_the_whole(
            reads in prop::collection::vec((prop::array::uniform3(0..1_000_000_u64), any::<bool>()), 0..8),
            rtt in prop::option::of(0..2_000_000_u64),
        ) {
            let (mut time, start) = (HandshakeTimer::default(), Instant::now());
            for (us, has_answered) in reads {
                time.add(read(start, us, has_answered));
            }
            let parts = time.parts(path(rtt.map(Duration::from_micros)));
            let sum = parts.network_ns.unwrap_or_default() + parts.client_ns + parts.worker_ns + parts.compute_ns;
            prop_assert_eq!(sum, parts.whole_ns);
            prop_assert_eq!((parts.network_ns.is_some(), parts.retransmits), (rtt.is_some(), 2));
        }
    }
}
