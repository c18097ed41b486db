//! A mix from the records of a run.

use std::collections::BTreeMap;

use foldhash::HashMap;
use records::ids::ClientId;
use records::kinds::{Body, ProxyRecord, Record, RunRecord, Stamp, UsageRecord};
use records::metrics::{
    ClientCounter, Counters, Dimension, HttpCounter, ProxyCounter, RouteCounter, TlsCounter, labels,
};
use records::values::{ArrivalCounts, ValueCounts};

use crate::requests::RoutePlace;
use crate::traffic::{Second, Shares, Sizes, TENTHS, TrafficMix};

/// The longest traffic of which a mix is made: a day.
const SECONDS_MAX: usize = 86_400;
const TENTH_US: u64 = ArrivalCounts::TENTH_US;
const SECOND_US: u64 = TENTH_US * TENTHS as u64;

/// Why records have no mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMix {
    #[error("it has no connections of a proxy, or of observed servers")]
    NoTraffic,
    #[error("it has no requests, or an older tlsdash recorded it, without a mix")]
    NoRequests,
    #[error("it is longer than a day; take a part of it with @FROM..TO")]
    TooLong,
}

/// Reads the records of one run, or of a part of it whose totals count from its begin.
#[derive(Clone, Debug, Default)]
pub struct MixReader {
    mix: TrafficMix,
    /// By tenths of a second of `CLOCK_MONOTONIC`: connections and requests.
    arrivals: BTreeMap<u64, [u64; 2]>,
    /// The middle of each interval, with its full and resumed handshakes.
    handshakes: Vec<(u64, [u64; 2])>,
    /// The begin of the first interval, and the end of the last one, in microseconds of `CLOCK_MONOTONIC`.
    span_us: Option<[u64; 2]>,
    before: Counters<ProxyCounter>,
    usage: HashMap<(Dimension, String), u64>,
    /// By client and stay: its connections.
    clients: HashMap<(ClientId, u64), u64>,
    methods: Vec<(String, u64)>,
    /// Totals of each route.
    routes: HashMap<String, u64>,
    is_http: bool,
    is_log: bool,
    is_too_long: bool,
}

impl MixReader {
    pub fn take(&mut self, record: &Record) {
        match &record.body {
            Body::Run(run) => self.run(run),
            Body::Proxy(proxy) => self.proxy(&record.stamp, proxy),
            Body::Usage(usage) => self.usage(usage),
            Body::Client(client) => {
                let counters = [ClientCounter::HandshakesFull, ClientCounter::HandshakesResumed];
                self.clients.insert((client.client, client.epoch), client.counters.sum(&counters));
            }
            Body::Tls(tls) => {
                self.mix.ages.clone_from(&tls.ages_accepted);
                self.mix.would_resume =
                    tls.counters.sum(&[TlsCounter::FullResumptionOff, TlsCounter::FullEvicted]);
            }
            Body::Http(http) => {
                self.is_http = true;
                let methods = labels::methods()
                    .map(|(name, counter): (_, HttpCounter)| (name.to_owned(), http.counters[counter]));
                self.methods = methods.collect();
            }
            // All routes beyond the bound of records are one, which has no place.
            Body::Route(route) if RoutePlace::parse(&route.route).is_some() => {
                self.routes.insert(route.route.clone(), route.counters[RouteCounter::Requests]);
            }
            _ => {}
        }
    }

    fn run(&mut self, run: &RunRecord) {
        self.is_log = !run.log.is_empty() && !run.is_of_packets();
    }

    fn usage(&mut self, usage: &UsageRecord) {
        let known = [Dimension::Version, Dimension::Group, Dimension::Cipher, Dimension::Alpn];
        if known.contains(&usage.dimension) {
            self.usage.insert((usage.dimension, usage.value.clone()), usage.counters.handshakes());
        }
    }

    fn proxy(&mut self, stamp: &Stamp, record: &ProxyRecord) {
        use ProxyCounter as P;
        let since = record.counters.since(&self.before);
        let begin_us = stamp.mono_us.saturating_sub(stamp.interval_us);
        if self.span_us.is_none() {
            let closed = record.counters[P::Closed];
            self.mix.open = (record.open + closed).saturating_sub(record.counters[P::Accepted]);
        }
        let [first_us, _] = self.span_us.unwrap_or([begin_us; 2]);
        self.is_too_long |= stamp.mono_us.saturating_sub(first_us) > SECONDS_MAX as u64 * SECOND_US;
        if self.is_too_long {
            return;
        }
        self.span_us = Some([first_us, stamp.mono_us]);
        self.before = record.counters;
        let handshakes = [since[P::HandshakesFull], since[P::HandshakesResumed]];
        self.handshakes.push((begin_us.midpoint(stamp.mono_us), handshakes));
        let mix = &record.mix;
        let requests = mix.distributions.bytes_in.total().max(mix.distributions.bytes_out.total());
        for (at, (arrivals, all)) in
            [(&mix.connections, handshakes.iter().sum()), (&mix.requests, requests)].into_iter().enumerate()
        {
            arrivals.iter().for_each(|(tenth, n)| self.arrivals.entry(tenth).or_default()[at] += n);
            if arrivals.is_empty() && all > 0 {
                self.spread(at, all, [begin_us, stamp.mono_us]);
            }
        }
        self.mix.distributions.add(&mix.distributions);
    }

    /// Spreads arrivals evenly over an interval: merged records do not say when they were.
    fn spread(&mut self, at: usize, all: u64, [begin_us, end_us]: [u64; 2]) {
        let first = begin_us / TENTH_US;
        let tenths = (end_us / TENTH_US).saturating_sub(first).clamp(1, (SECONDS_MAX * TENTHS) as u64);
        for tenth in 0..tenths {
            let up_to = |tenth: u64| (u128::from(all) * u128::from(tenth) / u128::from(tenths)) as u64;
            self.arrivals.entry(first + tenth).or_default()[at] += up_to(tenth + 1) - up_to(tenth);
        }
    }

    /// The mix, with what it was made from in words; it names the routes.
    ///
    /// # Errors
    /// If there is none.
    pub fn finish(mut self, source: String) -> Result<TrafficMix, NoMix> {
        let handshakes: u64 = self.handshakes.iter().map(|(_, [full, resumed])| full + resumed).sum();
        let [begin_us, end_us] = self.span_us.filter(|_| handshakes > 0).ok_or(NoMix::NoTraffic)?;
        if self.arrivals.values().all(|[_, requests]| *requests == 0) {
            return Err(NoMix::NoRequests);
        }
        if self.is_too_long {
            return Err(NoMix::TooLong);
        }
        let seconds = (end_us - begin_us).div_ceil(SECOND_US).max(1);
        let first = begin_us / TENTH_US;
        self.mix.seconds = vec![Second::default(); seconds as usize];
        let last = seconds as usize * TENTHS - 1;
        for (tenth, [connections, requests]) in &self.arrivals {
            // What began before the first record was complete, or is counted after the last, belongs to them.
            let at = (tenth.saturating_sub(first) as usize).min(last);
            let second = &mut self.mix.seconds[at / TENTHS];
            second.connections[at % TENTHS] += connections;
            second.requests[at % TENTHS] += requests;
        }
        for (middle_us, [full, resumed]) in &self.handshakes {
            let at = middle_us.saturating_sub(begin_us) / SECOND_US;
            let second = &mut self.mix.seconds[(at as usize).min(seconds as usize - 1)];
            second.full += full;
            second.resumed += resumed;
        }
        let of = |dimension: Dimension| {
            let own = self.usage.iter().filter(|((own, _), _)| *own == dimension);
            Shares::new(own.map(|((_, value), n)| (value.clone(), *n)))
        };
        let distributions = &mut self.mix.distributions;
        if self.is_http && self.is_log {
            // Only of connections without a request do logs say how many they had.
            (distributions.requests_each, distributions.streams_each) = Default::default();
        }
        let sizes = match (self.is_http, self.is_log) {
            (true, true) if distributions.bytes_in.is_empty() => Sizes::Responses,
            (true, false) => Sizes::Bodies,
            (true, true) | (false, _) => Sizes::Plaintext,
        };
        let mix = TrafficMix {
            source,
            sizes,
            clients: clients(&self.clients),
            versions: of(Dimension::Version),
            groups: of(Dimension::Group),
            ciphers: of(Dimension::Cipher),
            protocols: of(Dimension::Alpn),
            methods: Shares::new(self.methods),
            routes: Shares::new(self.routes),
            ..self.mix
        };
        Ok(mix)
    }
}

/// How many clients had so many connections, over all stays. Those beyond the bound of records are not known.
fn clients(stays: &HashMap<(ClientId, u64), u64>) -> ValueCounts {
    let mut of_clients: HashMap<ClientId, u64> = HashMap::default();
    let known = stays.iter().filter(|((client, _), n)| *client != ClientId::Other && **n > 0);
    known.for_each(|((client, _), n)| *of_clients.entry(*client).or_default() += n);
    let mut counts = ValueCounts::default();
    for &n in of_clients.values() {
        counts.count(n);
    }
    counts
}

#[cfg(test)]
mod tests {
    use records::ids::RunId;
    use records::kinds::RouteRecord;

    use super::*;

    /// A record of so many seconds up to this one, with these totals, and requests at these milliseconds.
    fn record(second: u64, seconds: u64, [full, resumed, open]: [u64; 3], requests_ms: &[u64]) -> Record {
        let mut proxy = ProxyRecord { open, ..ProxyRecord::default() };
        proxy.counters[ProxyCounter::HandshakesFull] = full;
        proxy.counters[ProxyCounter::HandshakesResumed] = resumed;
        proxy.counters[ProxyCounter::Accepted] = full + resumed;
        for ms in requests_ms {
            proxy.mix.requests.count(ms * 1_000);
            proxy.mix.distributions.bytes_out.count(13);
        }
        let (mono_us, interval_us) = (second * SECOND_US, seconds * SECOND_US);
        let run: RunId = "6f1d0c8e1d2b3a49788c6d5e4f3a2b00".parse().unwrap();
        let stamp = Stamp { run, seq: second, mono_us, realtime_us: mono_us, interval_us };
        Record { stamp, body: Body::Proxy(Box::new(proxy)) }
    }

    fn read(records: &[Record]) -> Result<TrafficMix, NoMix> {
        let mut reader = MixReader::default();
        for record in records {
            reader.take(record);
        }
        reader.finish("run 6f1d0c8e".to_owned())
    }

    #[test]
    fn arrivals_and_handshakes_are_in_their_seconds() {
        let mix = read(&[
            record(11, 1, [2, 0, 9], &[10_000, 10_950]),
            record(12, 1, [3, 4, 9], &[11_000, 11_000, 11_999]),
        ])
        .unwrap();
        assert_eq!(mix.open, 7, "those that stood before");
        let [first, second] = *mix.seconds else { panic!("two seconds") };
        assert_eq!((first.full, first.resumed, first.requests[0], first.requests[9]), (2, 0, 1, 1));
        assert_eq!((second.full, second.resumed, second.requests[0], second.requests[9]), (1, 4, 2, 1));
        assert_eq!((mix.sizes, mix.requests()), (Sizes::Plaintext, 5));
    }

    #[test]
    fn merged_records_are_spread_evenly() {
        let mut merged = record(14, 4, [80, 0, 0], &[10_000; 120]);
        let Body::Proxy(proxy) = &mut merged.body else { unreachable!() };
        proxy.mix.requests = ArrivalCounts::default();
        let mix = read(&[merged]).unwrap();
        assert_eq!((mix.requests(), mix.connections()), (120, 80));
        assert!(mix.seconds.iter().all(|second| second.all_requests() == 30 && second.requests[3] == 3));
    }

    #[test]
    fn routes_have_their_totals_and_those_beyond_the_bound_no_place() {
        let first = record(11, 1, [2, 0, 9], &[10_000]);
        let of = |route: &str, n| {
            let mut counted = RouteRecord { route: route.to_owned(), ..RouteRecord::default() };
            counted.counters[RouteCounter::Requests] = n;
            Record { stamp: first.stamp, body: Body::Route(Box::new(counted)) }
        };
        let mix = read(&[first.clone(), of("/api", 3), of("other", 9), of("/api", 5)]).unwrap();
        assert_eq!(mix.routes.iter().collect::<Vec<_>>(), [("/api", 5)]);
        assert!(TrafficMix::from_plan(&mix.to_plan()).is_ok());
    }

    #[test]
    fn what_has_no_mix_is_refused() {
        assert_eq!(read(&[]), Err(NoMix::NoTraffic));
        assert_eq!(read(&[record(11, 1, [0, 0, 0], &[])]), Err(NoMix::NoTraffic));
        let older = [record(11, 1, [5, 0, 0], &[])];
        assert_eq!(read(&older), Err(NoMix::NoRequests));
        let long = [record(1, 1, [5, 0, 0], &[500]), record(100_000, 1, [6, 0, 0], &[99_999_500])];
        assert_eq!(read(&long), Err(NoMix::TooLong));
    }
}
