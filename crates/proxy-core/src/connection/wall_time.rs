//! Where the wall time of a handshake goes: every moment since the `ClientHello` could be read belongs to one part.

use std::time::{Duration, Instant};

use crate::stats::handshake_time::HandshakeTime;
use crate::tls::CryptoTime;

/// The wall time of a handshake so far.
#[derive(Debug, Default)]
pub(super) struct WallTime {
    /// When the worker learned of the first byte, and until when time is accounted for.
    span: Option<(Instant, Instant)>,
    /// Nothing had come from the client.
    waited: Duration,
    /// Something had come, and the worker was busy with other connections.
    worker: Duration,
    /// Spent in rustls.
    compute: Duration,
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

impl WallTime {
    /// Accounts for a read, and for the time since the one before it.
    pub(super) fn add(&mut self, read: TimedRead) {
        let (first, until) = self.span.unwrap_or((read.ready_at, read.ready_at));
        let began_at = read.began_at.max(until);
        // What came while the worker was computing for the same connection has not been awaited.
        let ready_at = read.ready_at.clamp(until, began_at);
        let ended_at = read.ended_at.max(began_at);
        let waited = ready_at - until;
        self.waited += waited;
        self.worker += began_at - ready_at;
        self.compute += ended_at - began_at;
        self.crypto += read.crypto;
        self.flights += u32::from(self.awaits_flight && waited > Duration::ZERO);
        self.awaits_flight = read.has_answered;
        self.span = Some((first, ended_at));
    }

    /// When rustls was last done with something.
    pub(super) fn until(&self) -> Option<Instant> {
        self.span.map(|(_, until)| until)
    }

    /// The parts, if the kernel's round-trip time is `rtt`. Without it all waiting is the client's.
    pub(super) fn parts(&self, rtt: Option<Duration>) -> HandshakeTime {
        let network = rtt.map(|rtt| rtt.saturating_mul(self.flights).min(self.waited));
        HandshakeTime {
            whole: self.span.map_or(Duration::ZERO, |(first, until)| until - first),
            network,
            client: self.waited.saturating_sub(network.unwrap_or_default()),
            worker: self.worker,
            compute: self.compute,
            key_exchange: self.crypto.key_exchange,
            signature: self.crypto.signature,
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

    fn us(time: &HandshakeTime) -> [u64; 5] {
        let network = time.network.unwrap_or_default();
        [time.whole, network, time.client, time.worker, time.compute].map(|part| part.as_micros() as u64)
    }

    #[test]
    fn a_handshake_with_two_flights_awaits_one_round_trip() {
        let (mut time, start) = (WallTime::default(), Instant::now());
        time.add(read(start, [0, 30, 230], true));
        time.add(read(start, [1_230, 1_240, 1_260], false));
        let rtt = Some(Duration::from_micros(400));
        assert_eq!(us(&time.parts(rtt)), [1_260, 400, 600, 40, 220]);
        assert_eq!(us(&time.parts(None)), [1_260, 0, 1_000, 40, 220], "all of it is the client's");
        assert_eq!(time.parts(None).network, None);
        let long = Some(Duration::from_secs(1));
        assert_eq!(us(&time.parts(long)), [1_260, 1_000, 0, 40, 220], "no more than was waited");
    }

    #[test]
    fn a_flight_in_pieces_is_one_round_trip_and_its_pieces_are_the_clients() {
        let (mut time, start) = (WallTime::default(), Instant::now());
        // The hello in two pieces, then the Finished in two.
        time.add(read(start, [0, 0, 10], false));
        time.add(read(start, [100, 100, 200], true));
        time.add(read(start, [1_000, 1_000, 1_010], false));
        time.add(read(start, [1_100, 1_100, 1_150], false));
        assert_eq!(us(&time.parts(Some(Duration::from_micros(300)))), [1_150, 300, 680, 0, 170]);
    }

    #[test]
    fn what_came_while_the_worker_computed_waited_for_the_worker() {
        let (mut time, start) = (WallTime::default(), Instant::now());
        time.add(read(start, [0, 0, 500], true));
        time.add(read(start, [100, 700, 800], false));
        assert_eq!(us(&time.parts(Some(Duration::from_micros(50)))), [800, 0, 0, 200, 600]);
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_the_whole(
            reads in prop::collection::vec((prop::array::uniform3(0..1_000_000_u64), any::<bool>()), 0..8),
            rtt in prop::option::of(0..2_000_000_u64),
        ) {
            let (mut time, start) = (WallTime::default(), Instant::now());
            for (us, has_answered) in reads {
                time.add(read(start, us, has_answered));
            }
            let parts = time.parts(rtt.map(Duration::from_micros));
            let sum = parts.network.unwrap_or_default() + parts.client + parts.worker + parts.compute;
            prop_assert_eq!(sum, parts.whole);
            prop_assert_eq!(parts.network.is_some(), rtt.is_some());
        }
    }
}
