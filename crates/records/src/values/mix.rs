//! What the traffic of an interval was like, as far as a load that repeats it needs it.

use super::{ArrivalCounts, ValueCounts};
use crate::wire::{FAMILY, field, wire};

wire! {
    @part
    /// When connections and requests began, and how large and how far apart requests were. In TCP mode, and of packets, an
    /// exchange counts as a request: bytes of the client, and the begin of the server's answer.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Mix {
        /// Connections whose handshake was completed, by their begin. Records that are merged have none.
        pub connections: ArrivalCounts = &field::MIX_CONNECTIONS,
        /// Requests by their begin. Records that are merged have none.
        pub requests: ArrivalCounts = &field::MIX_REQUESTS,
        pub distributions: MixDistributions = &FAMILY,
    }
}

wire! {
    @part
    /// How many requests connections have, and how large and how far apart those are.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MixDistributions {
        /// Requests of connections that have ended; of HTTP/2 they are streams.
        pub requests_each: ValueCounts = &field::MIX_REQUESTS_EACH,
        pub streams_each: ValueCounts = &field::MIX_STREAMS_EACH,
        /// Time from the begin of a request to that of the next one on its connection, in microseconds; of HTTP/2 of streams.
        pub gaps_us: ValueCounts = &field::MIX_GAPS,
        pub stream_gaps_us: ValueCounts = &field::MIX_STREAM_GAPS,
        /// Bytes of requests: in HTTP mode of their bodies, otherwise of all plaintext.
        pub bytes_in: ValueCounts = &field::MIX_BYTES_IN,
        /// The same of responses.
        pub bytes_out: ValueCounts = &field::MIX_BYTES_OUT,
    }
}

impl Mix {
    pub fn add(&mut self, more: &Self) {
        self.connections.add(&more.connections);
        self.requests.add(&more.requests);
        self.distributions.add(&more.distributions);
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.connections.clear();
        self.requests.clear();
        self.distributions.all_mut().into_iter().for_each(ValueCounts::clear);
    }

    /// Merges the mix of the interval before: arrivals, which are for single intervals, are given up.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        self.connections.clear();
        self.requests.clear();
        self.distributions.add(&earlier.distributions);
    }
}

impl MixDistributions {
    pub fn add(&mut self, more: &Self) {
        let Self { requests_each, streams_each, gaps_us, stream_gaps_us, bytes_in, bytes_out } = more;
        let more = [requests_each, streams_each, gaps_us, stream_gaps_us, bytes_in, bytes_out];
        self.all_mut().into_iter().zip(more).for_each(|(own, more)| own.add(more));
    }

    /// Adds the sizes of bodies that HTTP mode has counted, of requests and of responses.
    pub fn add_sizes(&mut self, [bytes_in, bytes_out]: &[ValueCounts; 2]) {
        self.bytes_in.add(bytes_in);
        self.bytes_out.add(bytes_out);
    }

    fn all_mut(&mut self) -> [&mut ValueCounts; 6] {
        let Self { requests_each, streams_each, gaps_us, stream_gaps_us, bytes_in, bytes_out } = self;
        [requests_each, streams_each, gaps_us, stream_gaps_us, bytes_in, bytes_out]
    }
}

/// What is known of a connection to count it in a [`Mix`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionMix {
    /// Whether its handshake was completed.
    is_begun: bool,
    is_http2: bool,
    /// Whether the sizes of its requests are counted with it.
    is_sized: bool,
    requests: u64,
    /// When its last request began, in microseconds of `CLOCK_MONOTONIC`.
    began_us: u64,
    /// What it had carried in each direction when its last request was counted.
    carried: [u64; 2],
}

impl ConnectionMix {
    /// Counts the connection, whose handshake is complete, by its begin.
    pub fn begin(&mut self, at_us: u64, is_http2: bool, mix: &mut Mix) {
        (self.is_begun, self.is_http2) = (true, is_http2);
        mix.connections.count(at_us);
    }

    /// Counts a request that began then. `carried`: the bytes that the connection has carried in each direction when the
    /// answer begins, if these are to tell sizes.
    #[inline]
    pub fn request(&mut self, at_us: u64, carried: Option<[u64; 2]>, mix: &mut Mix) {
        mix.requests.count(at_us);
        let distributions = &mut mix.distributions;
        if let Some([bytes_in, bytes_out]) = carried {
            distributions.bytes_in.count(bytes_in.saturating_sub(self.carried[0]));
            if self.requests > 0 {
                distributions.bytes_out.count(bytes_out.saturating_sub(self.carried[1]));
            }
            (self.is_sized, self.carried) = (true, [bytes_in, bytes_out]);
        }
        if self.requests > 0 {
            let gaps_us =
                if self.is_http2 { &mut distributions.stream_gaps_us } else { &mut distributions.gaps_us };
            gaps_us.count(at_us.saturating_sub(self.began_us));
        }
        self.requests += 1;
        self.began_us = at_us;
    }

    /// Counts the end of the connection, which has carried so many bytes in each direction.
    pub fn end(&self, carried: [u64; 2], Mix { distributions, .. }: &mut Mix) {
        if self.is_begun {
            let each = if self.is_http2 {
                &mut distributions.streams_each
            } else {
                &mut distributions.requests_each
            };
            each.count(self.requests);
        }
        if self.is_sized {
            distributions.bytes_out.count(carried[1].saturating_sub(self.carried[1]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_ends_where_the_next_one_begins() {
        let (mut mix, mut connection) = (Mix::default(), ConnectionMix::default());
        connection.begin(900_000, false, &mut mix);
        connection.request(1_000_000, Some([10, 0]), &mut mix);
        connection.request(1_000_040, Some([30, 60]), &mut mix);
        connection.end([30, 61], &mut mix);
        let mut idle = ConnectionMix::default();
        idle.end([5, 5], &mut mix);
        idle.begin(950_000, true, &mut mix);
        idle.end([5, 5], &mut mix);
        assert_eq!((mix.connections.to_string(), mix.requests.to_string()), ("9:2".into(), "10:2".into()));
        assert_eq!(
            (mix.distributions.requests_each.to_string(), mix.distributions.streams_each.to_string()),
            ("2:1".into(), "0:1".into())
        );
        assert_eq!(mix.distributions.gaps_us.to_string(), "40:1");
        assert_eq!(
            (mix.distributions.bytes_in.to_string(), mix.distributions.bytes_out.to_string()),
            ("10:1 20:1".into(), "1:1 60:1".into())
        );
    }

    #[test]
    fn merged_records_keep_sizes_and_give_up_arrivals() {
        let (mut mix, mut connection) = (Mix::default(), ConnectionMix::default());
        connection.request(1_000_000, Some([10, 0]), &mut mix);
        let earlier = mix.clone();
        mix.downsample(&earlier);
        assert_eq!((mix.distributions.bytes_in.total(), mix.requests.is_empty()), (2, true));
    }
}
