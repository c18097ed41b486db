use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use journal::EntryBuf;
use proptest::prelude::*;

use super::*;
use crate::codec;
use crate::connection::Outcome;
use crate::delta::ClientDelta;
use crate::families::ClientCounter;
use crate::ids::ClientId;
use crate::model::Model;
use crate::testing::{bodies, client, connection};

/// Keeps records as journal entries, as a file would, and refuses those it is told to.
#[derive(Default)]
struct Paper {
    entries: Vec<(EntryBuf, u64)>,
    offered: u64,
    refuse: HashSet<u64>,
    cannot_flush: bool,
}

impl Sink for Paper {
    fn accept(&mut self, record: &Record) -> Result<(), String> {
        self.offered += 1;
        if self.refuse.contains(&self.offered) {
            return Err("no space left".into());
        }
        let mut entry = EntryBuf::new();
        codec::encode(record, &mut entry);
        self.entries.push((entry, record.stamp.realtime_us));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if self.cannot_flush { Err("no space left".into()) } else { Ok(()) }
    }
}

fn at(second: u64) -> Timestamps {
    Timestamps {
        realtime_us: 1_700_000_000_000_000 + second * 1_000_000,
        monotonic_us: 50_000_000 + second * 1_000_000,
    }
}

fn proxy_delta(second: u64) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    for n in 2..6 {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesIn] = second + u64::from(n);
        counters[ClientCounter::BytesOut] = 1_000 * u64::from(n);
        counters[ClientCounter::Connections] = 1;
        delta.counters[ProxyCounter::BytesIn] += second + u64::from(n);
        delta.counters[ProxyCounter::BytesOut] += 1_000 * u64::from(n);
        delta.counters[ProxyCounter::Accepted] += 1;
        delta.counters[ProxyCounter::Closed] += 1;
        delta.clients.push(ClientDelta { client: client(n), open_change: 0, counters });
        delta.latencies[ProxyLatency::Exchange].record_ns(100_000 * (second + 1) * u64::from(n));
    }
    delta
}

fn load_delta() -> LoadDelta {
    let mut delta = LoadDelta::default();
    delta.counters[LoadCounter::Ok] = 40;
    (0..40).for_each(|i| delta.latencies[LoadLatency::Service].record_ns(200_000 + i * 1_000));
    delta
}

const STATE: LoadState = LoadState {
    running: true,
    rate: 40.0,
    resume_percent: 80.0,
    connections: 8,
    threads: 1,
    due_us: 900_000,
    sending_us: 900_000,
    measured_us: 950_000,
};

/// A run of `seconds`, written to paper.
fn written(seconds: u64, refuse: HashSet<u64>) -> Publisher<Paper> {
    let paper = Paper { refuse, ..Paper::default() };
    let mut publisher = Publisher::new(RunId::from_bits(7), paper, RECORDS_PER_SECOND_OWN, at(0));
    publisher.start(RunRecord { version: "test".into(), ..RunRecord::default() }, at(0));
    for second in 1..seconds {
        let host = Some(HostRecord::default());
        publisher.interval(Some(&proxy_delta(second)), Some((&load_delta(), STATE)), host, at(second));
    }
    publisher.stop(
        RunRecord::default(),
        Some(&proxy_delta(seconds)),
        Some((&load_delta(), STATE)),
        None,
        at(seconds),
    );
    publisher
}

fn read(entries: &[(EntryBuf, u64)], lost: impl Fn(usize) -> bool) -> Model {
    let mut model = Model::default();
    for (i, (entry, realtime_us)) in entries.iter().enumerate() {
        if !lost(i) {
            model.apply(codec::decode_from(entry, *realtime_us).unwrap().unwrap(), None);
        }
    }
    model
}

#[test]
fn the_phases_of_a_load_travel_seldom_and_are_all_there_at_the_end() {
    let seconds = PHASES_EVERY + 2;
    let mut delta = LoadDelta::default();
    for class in [LoadLatency::Service, LoadLatency::FirstByte] {
        delta.latencies[class].record_ns(200_000);
    }
    let mut publisher = Publisher::new(RunId::from_bits(7), Paper::default(), RECORDS_PER_SECOND_OWN, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..seconds {
        publisher.interval(None, Some((&delta, STATE)), None, at(second));
    }
    publisher.stop(RunRecord::default(), None, Some((&delta, STATE)), None, at(seconds));
    let mut carried = 0;
    for (entry, realtime_us) in &publisher.sink.entries {
        match codec::decode_from(entry, *realtime_us).unwrap().unwrap().body {
            Body::Load(load) => {
                let phase = &load.latencies[LoadLatency::FirstByte];
                assert_eq!(load.latencies[LoadLatency::Service].interval.count(), 1);
                assert!([0, PHASES_EVERY].contains(&phase.interval.count()));
                carried += phase.interval.count();
                assert_eq!(phase.samples_total, carried, "no loss is feigned");
            }
            Body::Run(run) => {
                let whole = run.load.map(|load| load.latencies[LoadLatency::FirstByte].interval.count());
                assert!(whole.is_none_or(|whole| whole == seconds));
            }
            _ => {}
        }
    }
    assert_eq!(carried, PHASES_EVERY);
}

fn true_totals(seconds: u64) -> (Counters<ProxyCounter>, u64) {
    let mut all = ProxyDelta::default();
    let mut samples = 0;
    for second in 1..=seconds {
        let delta = proxy_delta(second);
        all.counters.add(&delta.counters);
        samples += delta.latencies[ProxyLatency::Exchange].count();
    }
    (all.counters, samples)
}

fn assert_totals(model: &Model, seconds: u64) {
    let run = model.current().unwrap();
    let (totals, samples) = true_totals(seconds);
    let proxy = run.proxy().unwrap();
    assert_eq!(*proxy.totals(), totals);
    assert_eq!(proxy.whole()[ProxyLatency::Exchange].count(), samples);
    assert_eq!(run.load().unwrap().totals()[LoadCounter::Ok], 40 * seconds);
    let clients_in: u64 = run.clients().iter().map(|c| c.totals()[ClientCounter::BytesIn]).sum();
    assert_eq!(clients_in, totals[ProxyCounter::BytesIn]);
}

#[test]
fn what_is_counted_is_what_is_read() {
    let publisher = written(20, HashSet::new());
    let made = publisher.made();
    let model = read(&publisher.into_sink().entries, |_| false);
    assert_totals(&model, 20);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.made(), reading.read(), reading.lost()), (made, made, 0));
    assert!(model.current().unwrap().proxy().unwrap().intervals().all(|interval| !interval.after_loss));
}

#[test]
fn what_the_sink_refuses_goes_with_a_later_record() {
    let publisher = written(20, (10..40).collect());
    assert_eq!(publisher.health().refused_total, 30);
    let model = read(&publisher.into_sink().entries, |_| false);
    assert_totals(&model, 20);
    let run = model.current().unwrap();
    assert_eq!(run.reading().lost(), 0);
    assert!(run.health().merged_total > 0);
    assert_eq!(run.health().error, "no space left");
    // Merged intervals are no gap: one record covers them all, histograms included.
    assert!(run.proxy().unwrap().intervals().all(|interval| !interval.after_loss));
}

#[test]
fn a_lost_interval_is_a_gap_and_not_a_zero() {
    let publisher = written(20, HashSet::new());
    let entries = publisher.into_sink().entries;
    let proxies: Vec<usize> = (0..entries.len())
        .filter(|&i| entries[i].0.iter().any(|f| f == ("TLSDASH_KIND", b"proxy")))
        .collect();
    let model = read(&entries, |i| i == proxies[5]);
    let run = model.current().unwrap();
    let gaps: Vec<_> = run.proxy().unwrap().intervals().map(|interval| interval.after_loss).collect();
    assert_eq!(gaps.iter().filter(|&&gap| gap).count(), 1);
    assert!(gaps[5], "the interval after the lost one covers two seconds: {gaps:?}");
    assert_eq!((run.reading().lost(), run.reading().gaps_total()), (1, 1));
}

#[test]
fn errors_beyond_the_budget_are_counted() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), 20, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut delta = ProxyDelta::default();
    for n in 0..100 {
        delta.connections.push(connection(n));
    }
    publisher.interval(Some(&delta), None, None, at(1));
    publisher.interval(Some(&ProxyDelta::default()), None, None, at(2));
    let dropped = publisher.health().over_budget_total;
    let entries = publisher.into_sink().entries;
    let written =
        entries.iter().filter(|(e, _)| e.iter().any(|f| f == ("TLSDASH_KIND", b"connection"))).count();
    assert!(written > 0 && written < 20, "{written}");
    assert_eq!(written as u64 + dropped, 100);
    let model = read(&entries, |_| false);
    assert_eq!(model.current().unwrap().health().over_budget_total, dropped);
}

/// A run of some seconds in which so many clients are active that the budget is short, with the same connection
/// records each second.
fn crowded(seconds: u64, connections: &[ConnectionRecord]) -> Publisher<Paper> {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=seconds {
        let mut delta = ProxyDelta { connections: connections.to_vec(), ..ProxyDelta::default() };
        for n in 0..200 {
            let mut counters = Counters::default();
            counters[ClientCounter::BytesIn] = u64::from(n) + 1;
            delta.clients.push(ClientDelta { client: client(n), open_change: 0, counters });
        }
        let load = Some((&LoadDelta::default(), STATE));
        publisher.interval(Some(&delta), load, Some(HostRecord::default()), at(second));
    }
    publisher
}

fn count_of(publisher: &Publisher<Paper>, kind: &str) -> usize {
    let is_it = |entry: &EntryBuf| entry.iter().any(|field| field == ("TLSDASH_KIND", kind.as_bytes()));
    publisher.sink.entries.iter().filter(|(entry, _)| is_it(entry)).count()
}

#[test]
fn samples_without_room_are_no_loss_to_warn_of() {
    let sample = ConnectionRecord { outcome: Outcome::Ended, ..connection(1) };
    let publisher = crowded(20, &[sample]);
    assert_eq!(publisher.health().over_budget_total, 0);
    assert_eq!(count_of(&publisher, "health"), 0);
}

#[test]
fn some_errors_are_recorded_however_many_clients_are_active() {
    let publisher = crowded(10, &[connection(1), connection(2)]);
    assert_eq!(count_of(&publisher, "connection"), 20);
    assert!(publisher.made() <= 60 * 10 + 1, "{} records", publisher.made());
}

#[test]
fn a_budget_that_is_short_for_long_is_told_now_and_then_and_at_the_end() {
    let errors: Vec<_> = (0..100).map(connection).collect();
    let mut publisher = crowded(30, &errors);
    assert_eq!(count_of(&publisher, "health"), 3);
    publisher.stop(RunRecord::default(), None, None, None, at(31));
    let dropped = publisher.health().over_budget_total;
    assert_eq!(dropped as usize + count_of(&publisher, "connection"), 3_000);
    let model = read(&publisher.into_sink().entries, |_| false);
    assert_eq!(model.current().unwrap().health().over_budget_total, dropped);
}

#[test]
fn a_journal_that_cannot_be_brought_up_to_date_has_refused_nothing() {
    let paper = Paper { cannot_flush: true, ..Paper::default() };
    let mut publisher = Publisher::new(RunId::from_bits(1), paper, 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    (1..10).for_each(|second| publisher.interval(Some(&proxy_delta(second)), None, None, at(second)));
    assert_eq!((publisher.health().refused_total, &*publisher.health().error), (0, "no space left"));
    assert_eq!(count_of(&publisher, "health"), 1);
}

#[test]
fn ten_thousand_changing_clients_keep_to_the_budget_and_lose_no_byte() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut counted = 0;
    for second in 1..=5_u32 {
        let mut delta = ProxyDelta::default();
        for n in second * 3_000..second * 3_000 + 10_000 {
            let mut counters = Counters::default();
            counters[ClientCounter::BytesIn] = u64::from(n);
            counted += u64::from(n);
            let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(n)));
            delta.clients.push(ClientDelta { client, open_change: 0, counters });
        }
        let before = publisher.made();
        publisher.interval(Some(&delta), None, None, at(second.into()));
        assert!(publisher.made() - before <= 60);
    }
    let waiting = publisher.clients.deferred() as u64;
    let model = read(&publisher.sink.entries, |_| false);
    assert_eq!(model.current().unwrap().clients_deferred(), waiting);
    publisher.stop(RunRecord::default(), None, None, None, at(6));
    let model = read(&publisher.into_sink().entries, |_| false);
    let clients = model.current().unwrap().clients().iter();
    assert_eq!(clients.map(|client| client.totals()[ClientCounter::BytesIn]).sum::<u64>(), counted);
}

#[test]
fn a_jump_of_the_wall_clock_is_told_and_moves_no_rate() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    let stepped = Timestamps { realtime_us: at(2).realtime_us - 3_600_000_000, ..at(2) };
    publisher.interval(Some(&proxy_delta(2)), None, None, stepped);
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    assert_eq!(run.health().clock_step_us, -3_600_000_000);
    let rates: Vec<_> =
        run.proxy().unwrap().intervals().map(|i| i.rate(ProxyCounter::Accepted).unwrap()).collect();
    assert_eq!(rates, [4.0, 4.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn totals_are_right_after_any_loss_of_records_that_are_not_the_last(
        seconds in 2_u64..12,
        losses in prop::collection::vec(any::<bool>(), 200),
    ) {
        let publisher = written(seconds, HashSet::new());
        let entries = publisher.into_sink().entries;
        // The last record of every series: each client's final one, and the run's.
        let last_records = 4 + 1;
        let keep_from = entries.len() - last_records;
        let lost = |i: usize| i < keep_from && losses[i % losses.len()];
        let model = read(&entries, lost);
        assert_totals(&model, seconds);
        let reading = model.current().unwrap().reading();
        let lost_count = (0..entries.len()).filter(|&i| lost(i)).count() as u64;
        prop_assert_eq!(reading.lost(), lost_count);
        prop_assert_eq!(reading.gaps_total() > 0, lost_count > 0);
    }

    #[test]
    fn records_come_back_as_they_were_written(
        numbers in prop::collection::vec(any::<u64>(), 64),
        text in "[ -~äöü]{0,60}",
        flag in any::<bool>(),
    ) {
        for body in bodies(&numbers, &text, flag) {
            let stamp = Stamp {
                run: RunId::from_bits(u128::from(numbers[0]) << 64 | 1),
                seq: numbers[1],
                mono_us: numbers[2],
                realtime_us: 5,
                interval_us: numbers[3],
            };
            let record = Record { stamp, body };
            let mut entry = EntryBuf::new();
            codec::encode(&record, &mut entry);
            prop_assert!(entry.fault().is_none());
            prop_assert_eq!(codec::decode_from(&entry, 5), Ok(Some(record)));
        }
    }
}

#[test]
fn a_window_holds_whole_intervals_although_ticks_wander() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=30 {
        let late =
            Timestamps { monotonic_us: at(second).monotonic_us + (second * 7) % 20 * 1_000, ..at(second) };
        publisher.interval(Some(&proxy_delta(second)), None, None, late);
    }
    let model = read(&publisher.into_sink().entries, |_| false);
    let proxy = model.current().unwrap().proxy().unwrap();
    for seconds in 1..=20 {
        let window = proxy.window(seconds * 1_000_000);
        assert_eq!(window.intervals as u64, seconds);
        assert_eq!(window.counters[ProxyCounter::Accepted], 4 * seconds);
        assert_eq!(window.latencies[ProxyLatency::Exchange].count(), 4 * seconds);
    }
    assert_eq!(proxy.window(1_000).intervals, 1, "shorter than an interval");
}
