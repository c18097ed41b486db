mod brief;
mod time;
mod trust;

use journal::EntryBuf;
use proptest::prelude::*;

use super::series::BUCKETS_MAX;
use super::*;
use crate::testing::{bodies, client};
use records::codec;
use records::delta::CLIENTS_MAX;
use records::histogram::{Histogram, Sketch};
use records::ids::ClientId;
use records::kinds::{Body, ClientRecord, HostRecord, Phase, ProxyRecord, RunRecord, Stamp};
use records::metrics::{ClientCounter, Counters, CpuGroup, LoadCounter, Metric, ProxyCounter, ProxyLatency};

/// Takes every figure that a model gives.
fn look_at_everything(model: &Model) {
    for run in model.runs_and_parts() {
        serde_json::to_string(&model.summary(run, Some("file:x"))).expect("a summary is plain data");
        for client in run.clients().iter() {
            run.client_known_until_us(client);
            assert!(client.history().all(|rate| rate.bytes_per_second().is_finite()));
        }
        for &group in CpuGroup::ALL {
            assert!(run.cpu(group, 5_000_000).is_none_or(|cpu| cpu.cores.is_finite()));
        }
        for span_us in [0, 1_000_000, u64::MAX] {
            if let Some(proxy) = run.proxy() {
                let window = proxy.window(span_us);
                assert!(window.rate(ProxyCounter::Accepted).is_none_or(f64::is_finite));
                window.counters.sum(ProxyCounter::ALL);
                proxy.intervals().for_each(|interval| assert!(interval.seconds().is_finite()));
            }
            if let Some(load) = run.load() {
                let window = load.window_until(u64::MAX, span_us);
                assert!(window.rate(LoadCounter::Sent).is_none_or(f64::is_finite));
            }
        }
        crate::insight::advice(run);
        let costs = run.handshake_costs().cloned().unwrap_or_default();
        for saving in crate::insight::savings(run, &costs, u64::MAX) {
            assert!(saving.share.mid.is_finite());
        }
        let reading = run.reading();
        let missing: u64 = reading.gaps().fold(0, |sum, gap| sum.saturating_add(gap.missing));
        assert!(missing <= reading.lost() && run.log().len() <= 1_000);
        assert!(reading.read() <= reading.made());
    }
}

fn hostile_number() -> impl Strategy<Value = u64> {
    let edges =
        [0, 1, 2, 1_000_000, u64::MAX / 2, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX];
    prop_oneof![0_u64..100, prop::sample::select(edges.to_vec()), any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_model_accepts_any_records(
        rounds in prop::collection::vec((prop::collection::vec(hostile_number(), 16), any::<bool>(), 0_u128..3), 1..6),
    ) {
        let mut model = Model::new(4);
        let mut entry = EntryBuf::new();
        for (round, (numbers, flag, run)) in rounds.iter().enumerate() {
            for (i, body) in bodies(numbers, "text", *flag).into_iter().enumerate() {
                let number = |at: usize| numbers[(i + at) % numbers.len()];
                // Most come in order, for what is out of order is not looked at.
                let seq = if number(0) % 7 == 0 { number(1) } else { (round * 100 + i) as u64 };
                let stamp = Stamp {
                    run: RunId::from_bits(*run),
                    seq,
                    mono_us: number(2),
                    realtime_us: number(3),
                    interval_us: number(4),
                };
                codec::encode(&Record { stamp, body }, &mut entry);
                if let Ok(Some(record)) = codec::decode_fields(&entry, number(3)) {
                    model.apply(record, flag.then(|| number(5)));
                }
            }
        }
        look_at_everything(&model);
    }
}

/// Writes a run's records by hand: each gets the next number, and is read unless told otherwise.
struct RecordFeed {
    model: Model,
    seq: u64,
    second: u64,
}

impl RecordFeed {
    fn new() -> Self {
        Self { model: Model::default(), seq: 0, second: 0 }
    }

    fn begun() -> Self {
        let mut feed = Self::new();
        feed.write(Body::Run(Box::default()), 0);
        feed
    }

    fn write(&mut self, body: Body, interval_s: u64) {
        self.seq += 1;
        let stamp = Stamp {
            run: RunId::from_bits(1),
            seq: self.seq,
            mono_us: 50_000_000 + self.second * 1_000_000,
            realtime_us: 1_000_000 * self.second + 1,
            interval_us: interval_s * 1_000_000,
        };
        self.model.apply(Record { stamp, body }, None);
    }

    fn lose(&mut self) {
        self.seq += 1;
    }

    /// The proxy's record of the next second, with four more connections each second.
    fn proxy(&mut self, interval_s: u64) {
        let mut proxy = ProxyRecord::default();
        proxy.counters[ProxyCounter::Accepted] = 4 * self.second;
        self.write(Body::Proxy(Box::new(proxy)), interval_s);
    }

    /// The record of a client that has sent 1,000 bytes each second.
    fn client(&mut self, n: u8) {
        let bytes = 1_000 * self.second;
        self.write(Body::Client(client_record(client(n), 1, bytes)), 1);
    }

    fn run(&self) -> &Run {
        self.model.current().unwrap()
    }

    /// The latest rate that is known of a client.
    fn rate(&self, n: u8) -> Option<f64> {
        let client = self.run().client(client(n)).unwrap();
        let known_us = self.run().client_known_until_us(client)?;
        let latest = client.history().next_back().filter(|rate| rate.end_us >= known_us);
        Some(latest.map_or(0.0, ClientRate::bytes_per_second))
    }
}

pub(super) fn client_record(client: ClientId, epoch: u64, bytes: u64) -> ClientRecord {
    let mut counters = Counters::default();
    counters[ClientCounter::BytesIn] = bytes;
    ClientRecord { client, epoch, last: false, open: 0, counters, rtt_us: 0, exchange: Sketch::default() }
}

#[test]
fn a_client_is_not_shown_faster_than_it_was_after_its_record_was_lost() {
    let mut feed = RecordFeed::begun();
    for second in 1..=8 {
        feed.second = second;
        feed.proxy(1);
        if second == 1 || second == 5 {
            feed.lose();
        } else {
            feed.client(2);
        }
        feed.client(3);
        // A first record next to a loss may cover what lost ones did.
        let settled = |since: u64| (second > since).then_some(1_000.0);
        assert_eq!(feed.rate(3), settled(1), "second {second}");
        if second > 1 {
            assert_eq!(feed.rate(2), settled(2), "second {second}");
        }
    }
    assert_eq!(feed.run().client(client(2)).unwrap().totals()[ClientCounter::BytesIn], 8_000);
}

#[test]
fn a_silent_client_has_rate_zero_once_no_record_can_be_missing() {
    let mut feed = RecordFeed::begun();
    for second in 1..=5 {
        feed.second = second;
        feed.proxy(1);
        match second {
            1 | 2 => feed.client(2),
            3 => feed.lose(),
            _ => {}
        }
        feed.client(3);
        let expected = if second <= 3 { 1_000.0 } else { 0.0 };
        assert_eq!(feed.rate(2), Some(expected), "second {second}");
    }
}

#[test]
fn a_run_read_from_its_middle_shows_no_zeros() {
    let mut feed = RecordFeed::new();
    feed.second = 100;
    feed.proxy(1);
    feed.client(2);
    let window = feed.run().proxy().unwrap().window(10_000_000);
    assert_eq!((window.rate(ProxyCounter::Accepted), feed.rate(2)), (None, None));
    feed.second = 101;
    feed.proxy(1);
    feed.client(2);
    let window = feed.run().proxy().unwrap().window(10_000_000);
    assert_eq!((window.rate(ProxyCounter::Accepted), feed.rate(2)), (Some(4.0), Some(1_000.0)));
}

#[test]
fn a_loss_before_an_interval_that_took_in_others_is_still_a_gap() {
    let mut feed = RecordFeed::begun();
    feed.second = 1;
    feed.proxy(1);
    feed.lose();
    // The record of second 2 was lost, those of 3 to 6 were refused and went with that of 7.
    feed.second = 7;
    feed.proxy(5);
    let gaps: Vec<_> = feed.run().proxy().unwrap().intervals().map(|interval| interval.after_loss).collect();
    assert_eq!(gaps, [false, true]);
}

#[test]
fn cpu_is_known_from_two_records_on_however_far_apart_they_are() {
    let mut feed = RecordFeed::begun();
    for second in [10, 20] {
        feed.second = second;
        let mut host = HostRecord::default();
        host.cpu[CpuGroup::Proxy] = second * 500_000;
        feed.write(Body::Host(host), 10);
        let known = (second == 20).then_some(0.5);
        assert_eq!(feed.run().cpu(CpuGroup::Proxy, 5_000_000).map(|cpu| cpu.cores), known);
    }
}

#[test]
fn a_run_whose_beginning_was_not_read_lasted_as_long_as_its_end_says() {
    let mut feed = RecordFeed::new();
    feed.second = 100;
    feed.proxy(1);
    let began_and_lasted = |feed: &RecordFeed| (feed.run().began_realtime_us(), feed.run().duration_us());
    let (first_us, 0) = began_and_lasted(&feed) else { panic!("{:?}", feed.run()) };
    feed.write(Body::Run(Box::new(RunRecord { phase: Phase::Stop, ..RunRecord::default() })), 100);
    assert_eq!(began_and_lasted(&feed), (first_us - 100_000_000, 100_000_000));
}

#[test]
fn a_series_stays_small_however_wide_its_latencies_are() {
    let mut widest = Histogram::new();
    let microseconds = (0..30_000).chain((30_000..60_000_000).step_by(3_000));
    microseconds.for_each(|us| widest.record_ns(us * 1_000));
    let mut proxy = ProxyRecord::default();
    for &class in ProxyLatency::ALL {
        proxy.latencies[class].interval = widest.to_sparse();
    }
    let buckets = ProxyLatency::ALL.len() * widest.to_sparse().buckets().len();
    let mut feed = RecordFeed::begun();
    for second in 1..=200 {
        feed.second = second;
        feed.write(Body::Proxy(Box::new(proxy.clone())), 1);
    }
    let kept = feed.run().proxy().unwrap().intervals().len();
    assert!(
        buckets * 200 > BUCKETS_MAX && kept < 200 && kept * buckets <= BUCKETS_MAX,
        "{kept} of {buckets}"
    );
    assert_eq!(feed.run().proxy().unwrap().whole()[ProxyLatency::Exchange].count(), 200 * widest.count());
}

#[test]
fn clients_add_up_although_more_come_than_the_table_holds() {
    let id = |n: u32| ClientId::from(std::net::IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n)));
    let mut feed = RecordFeed::begun();
    let clients = CLIENTS_MAX as u32 + 500;
    for n in 0..clients {
        feed.second = u64::from(n);
        feed.write(Body::Client(client_record(id(n), u64::from(n) + 1, 10)), 1);
    }
    assert!(feed.run().client(id(7)).is_none() && feed.run().clients().len() <= CLIENTS_MAX + 1);
    // A client that the writer still has continues; another left its table and starts again.
    feed.write(Body::Client(client_record(id(7), 8, 25)), 1);
    feed.write(Body::Client(client_record(id(9), u64::from(clients) + 1, 5)), 1);
    let totals = feed.run().clients().iter().map(|client| client.totals()[ClientCounter::BytesIn]);
    assert_eq!(totals.sum::<u64>(), u64::from(clients) * 10 + 15 + 5);
}
