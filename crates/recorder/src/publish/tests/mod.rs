mod budget;
mod http;
mod refusal;
mod rollups;
mod services;
mod upstreams;

use std::collections::HashSet;

use journal::EntryBuf;
use proptest::prelude::*;

use super::write::PHASES_EVERY;
use super::*;
use crate::testing::{bodies, client};
use model::runs::Model;
use records::codec::{self, Coverage};
use records::delta::ClientDelta;
use records::histogram::Sketch;
use records::kinds::{Record, Stamp};
use records::metrics::{ClientCounter, Counters};

/// Keeps records as journal entries, as a file would, and refuses the records in `refuse`.
pub(super) struct MemorySink {
    pub(super) entries: Vec<(EntryBuf, u64)>,
    pub(super) offered: u64,
    /// Offers that are refused for the moment, by their number from 1.
    pub(super) refuse: HashSet<u64>,
    /// Records that are taken before all others are refused for the moment.
    pub(super) room: usize,
    /// A kind that is never taken.
    pub(super) never: &'static str,
    pub(super) cannot_flush: bool,
}

impl Default for MemorySink {
    fn default() -> Self {
        let room = usize::MAX;
        Self { entries: Vec::new(), offered: 0, refuse: HashSet::new(), room, never: "", cannot_flush: false }
    }
}

impl Sink for MemorySink {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        self.offered += 1;
        if record.body.kind().word == self.never {
            return Err(Refusal::Never("too large".into()));
        }
        if self.refuse.contains(&self.offered) || self.room == 0 {
            return Err(Refusal::Later("no space left".into()));
        }
        self.room -= 1;
        let mut entry = EntryBuf::new();
        codec::encode_as(record, coverage, &mut entry);
        self.entries.push((entry, record.stamp.realtime_us));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if self.cannot_flush { Err("no space left".into()) } else { Ok(()) }
    }
}

impl Publisher<MemorySink> {
    /// Accepts at most `records` records now.
    pub(super) fn give_room(&mut self, records: usize) {
        self.sink().room = records;
        self.retry();
        self.sink().room = 0;
    }

    /// The kinds of all accepted records, in order.
    pub(super) fn kinds(&self) -> Vec<String> {
        let kind = |entry: &EntryBuf| {
            let value = entry.iter().find(|(name, _)| *name == "TLSDASH_KIND").unwrap().1;
            String::from_utf8(value.to_vec()).unwrap()
        };
        self.sink().entries.iter().map(|(entry, _)| kind(entry)).collect()
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let decode = |(entry, realtime_us): &(EntryBuf, u64)| codec::decode_fields(entry, *realtime_us);
        self.sink().entries.iter().map(|entry| decode(entry).unwrap().unwrap()).collect()
    }
}

pub(super) fn at(second: u64) -> Timestamps {
    Timestamps {
        realtime_us: 1_700_000_000_000_000 + second * 1_000_000,
        monotonic_us: 50_000_000 + second * 1_000_000,
    }
}

/// A publisher whose run has begun.
pub(super) fn begun(records_per_second: u32) -> Publisher<MemorySink> {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), records_per_second, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher
}

pub(super) fn proxy_delta(second: u64) -> ProxyDelta {
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
        delta.clients.push(ClientDelta {
            client: client(n),
            open_change: 0,
            counters,
            rtt_us: 0,
            exchange: Sketch::default(),
        });
        delta.latencies[ProxyLatency::Exchange].record_ns(100_000 * (second + 1) * u64::from(n));
    }
    delta
}

pub(super) fn load_delta() -> LoadDelta {
    let mut delta = LoadDelta::default();
    delta.counters[LoadCounter::Ok] = 40;
    (0..40).for_each(|i| delta.latencies[LoadLatency::Service].record_ns(200_000 + i * 1_000));
    delta
}

pub(super) const STATE: LoadState = LoadState {
    running: true,
    rate: 40.0,
    resume_percent: 80.0,
    connections: 8,
    threads: 1,
    due_us: 900_000,
    sending_us: 900_000,
    measured_us: 950_000,
};

/// A run of `seconds`, written to memory.
pub(super) fn written(seconds: u64, refuse: HashSet<u64>) -> Publisher<MemorySink> {
    let sink = MemorySink { refuse, ..MemorySink::default() };
    let mut publisher = Publisher::new(RunId::from_bits(7), sink, RECORDS_PER_SECOND_OWN, at(0));
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

pub(super) fn read(entries: &[(EntryBuf, u64)], lost: impl Fn(usize) -> bool) -> Model {
    let mut model = Model::default();
    for (i, (entry, realtime_us)) in entries.iter().enumerate() {
        if !lost(i) {
            model.apply(codec::decode_fields(entry, *realtime_us).unwrap().unwrap(), None);
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
    let mut publisher =
        Publisher::new(RunId::from_bits(7), MemorySink::default(), RECORDS_PER_SECOND_OWN, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..seconds {
        publisher.interval(None, Some((&delta, STATE)), None, at(second));
    }
    publisher.stop(RunRecord::default(), None, Some((&delta, STATE)), None, at(seconds));
    let mut carried = 0;
    for (entry, realtime_us) in &publisher.sink().entries {
        match codec::decode_fields(entry, *realtime_us).unwrap().unwrap().body {
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

pub(super) fn true_totals(seconds: u64) -> (Counters<ProxyCounter>, u64) {
    let mut all = ProxyDelta::default();
    let mut samples = 0;
    for second in 1..=seconds {
        let delta = proxy_delta(second);
        all.counters.add(&delta.counters);
        samples += delta.latencies[ProxyLatency::Exchange].count();
    }
    (all.counters, samples)
}

pub(super) fn assert_totals(model: &Model, seconds: u64) {
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
fn counters_read_back_equal_those_counted() {
    let publisher = written(20, HashSet::new());
    let made = publisher.made();
    let model = read(&publisher.into_sink().entries, |_| false);
    assert_totals(&model, 20);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.made(), reading.read(), reading.lost()), (made, made, 0));
    assert!(model.current().unwrap().proxy().unwrap().intervals().all(|interval| !interval.after_loss));
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
fn time_in_which_the_process_did_not_run_is_a_gap() {
    let mut publisher = begun(60);
    for second in [1, 2, 3, 9, 10] {
        if second == 9 {
            // It was due at the fourth second.
            publisher.note_gap(at(8).monotonic_us);
        }
        publisher.interval(Some(&proxy_delta(second)), Some((&load_delta(), STATE)), None, at(second));
    }
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
    let gaps: Vec<_> = proxy.intervals().map(|it| (it.length_us() / 1_000_000, it.after_loss)).collect();
    assert_eq!(gaps, [(1, false), (1, false), (1, false), (6, true), (1, false)]);
    assert!(gaps.iter().map(|gap| gap.1).eq(load.intervals().map(|interval| interval.after_loss)));
    assert_eq!((run.reading().gaps_total(), run.reading().lost()), (1, 0), "one for both sides");
    assert_eq!(proxy.totals()[ProxyCounter::Accepted], 20, "and nothing is missing in the totals");
    let client = run.clients().iter().next().unwrap();
    let spans: Vec<_> = client.history().map(|rate| rate.span_us / 1_000_000).collect();
    assert_eq!(spans, [1, 1, 1, 6, 1], "no client looks faster than it was");
}

pub(super) fn count_of(publisher: &Publisher<MemorySink>, kind: &str) -> usize {
    let is_it = |entry: &EntryBuf| entry.iter().any(|field| field == ("TLSDASH_KIND", kind.as_bytes()));
    publisher.sink().entries.iter().filter(|(entry, _)| is_it(entry)).count()
}

#[test]
fn a_jump_of_the_wall_clock_is_told_and_moves_no_rate() {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    let stepped = Timestamps { realtime_us: at(2).realtime_us - 3_600_000_000, ..at(2) };
    publisher.interval(Some(&proxy_delta(2)), None, None, stepped);
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    assert_eq!(run.health().clock_steps().as_deref(), Some("set by -3600.000 s"));
    let rates: Vec<_> =
        run.proxy().unwrap().intervals().map(|i| i.rate(ProxyCounter::Accepted).unwrap()).collect();
    assert_eq!(rates, [4.0, 4.0]);
}

#[test]
fn jumps_of_the_wall_clock_that_cancel_out_are_told() {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for (second, ahead_us) in [(1, 0), (2, 5_000_000), (3, 0)] {
        let now = Timestamps { realtime_us: at(second).realtime_us + ahead_us, ..at(second) };
        publisher.interval(Some(&proxy_delta(second)), None, None, now);
    }
    let model = read(&publisher.into_sink().entries, |_| false);
    let steps = model.current().unwrap().health().clock_steps();
    assert_eq!(steps.as_deref(), Some("set 2 times, by +0.000 s in sum"));
    let older = HealthRecord { clock_step_us: -1_000_000, ..HealthRecord::default() };
    assert_eq!(older.clock_steps().as_deref(), Some("set by -1.000 s in sum"), "how often is not known");
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
        let before = (0..entries.len()).take_while(|&i| lost(i)).count() as u64;
        prop_assert_eq!((reading.before(), reading.lost()), (before, lost_count - before));
        prop_assert_eq!(reading.gaps_total() > 0, lost_count > before);
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
            prop_assert_eq!(codec::decode_fields(&entry, 5), Ok(Some(record)));
        }
    }
}

#[test]
fn a_window_holds_whole_intervals_although_ticks_wander() {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 60, at(0));
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
        assert_eq!(window.intervals() as u64, seconds);
        assert_eq!(window.counters[ProxyCounter::Accepted], 4 * seconds);
        assert_eq!(window.latency(ProxyLatency::Exchange).count(), 4 * seconds);
    }
    assert_eq!(proxy.window(1_000).intervals(), 1, "shorter than an interval");
}
