use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use journal::EntryBuf;
use proptest::prelude::*;

use super::events::EVENTS_MAX;
use super::*;
use crate::codec;
use crate::connection::Outcome;
use crate::delta::ClientDelta;
use crate::families::ClientCounter;
use crate::ids::ClientId;
use crate::metric::Counters;
use crate::model::Model;
use crate::testing::{bodies, client, connection};

/// Keeps records as journal entries, as a file would, and refuses those it is told to.
struct Paper {
    entries: Vec<(EntryBuf, u64)>,
    offered: u64,
    /// Offers that are refused for the moment, by their number from 1.
    refuse: HashSet<u64>,
    /// Records that are taken before all others are refused for the moment.
    room: usize,
    /// A kind that is never taken.
    never: &'static str,
    cannot_flush: bool,
}

impl Default for Paper {
    fn default() -> Self {
        let room = usize::MAX;
        Self { entries: Vec::new(), offered: 0, refuse: HashSet::new(), room, never: "", cannot_flush: false }
    }
}

impl Sink for Paper {
    fn accept(&mut self, record: &Record) -> Result<(), Refusal> {
        self.offered += 1;
        if record.body.kind().word == self.never {
            return Err(Refusal::Never("too large".into()));
        }
        if self.refuse.contains(&self.offered) || self.room == 0 {
            return Err(Refusal::Later("no space left".into()));
        }
        self.room -= 1;
        let mut entry = EntryBuf::new();
        codec::encode(record, &mut entry);
        self.entries.push((entry, record.stamp.realtime_us));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if self.cannot_flush { Err("no space left".into()) } else { Ok(()) }
    }
}

impl Publisher<Paper> {
    /// Takes so many records in a moment, and no more.
    fn give_room(&mut self, records: usize) {
        self.sink.room = records;
        self.retry();
        self.sink.room = 0;
    }

    /// The kinds of all records that were taken, in order.
    fn kinds(&self) -> Vec<String> {
        let kind = |entry: &EntryBuf| {
            let value = entry.iter().find(|(name, _)| *name == "TLSDASH_KIND").unwrap().1;
            String::from_utf8(value.to_vec()).unwrap()
        };
        self.sink.entries.iter().map(|(entry, _)| kind(entry)).collect()
    }

    fn records(&self) -> Vec<Record> {
        let decode = |(entry, realtime_us): &(EntryBuf, u64)| codec::decode_from(entry, *realtime_us);
        self.sink.entries.iter().map(|entry| decode(entry).unwrap().unwrap()).collect()
    }
}

fn at(second: u64) -> Timestamps {
    Timestamps {
        realtime_us: 1_700_000_000_000_000 + second * 1_000_000,
        monotonic_us: 50_000_000 + second * 1_000_000,
    }
}

/// A publisher whose run has begun.
fn begun(records_per_second: u32) -> Publisher<Paper> {
    let mut publisher = Publisher::new(RunId::from_bits(1), Paper::default(), records_per_second, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher
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

const STATE: LoadState = LoadState { running: true, rate: 40.0, resume_percent: 80.0, connections: 8 };

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
    let publisher = written(20, (10..17).collect());
    assert!(publisher.health().refused_total > 0);
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
fn events_wait_with_their_stamps_and_go_first_in_order() {
    let mut publisher = begun(60);
    publisher.sink.room = 0;
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    publisher.mark("a", at(1));
    publisher.setting(SettingRecord { name: "load.rate".into(), ..SettingRecord::default() }, at(2));
    publisher.interval(Some(&proxy_delta(2)), None, None, at(3));
    publisher.mark("b", at(4));
    assert_eq!(publisher.kinds(), ["run"]);
    publisher.give_room(2);
    assert_eq!(publisher.kinds(), ["run", "mark", "setting"]);
    publisher.give_room(100);
    assert_eq!(publisher.kinds()[..5], ["run", "mark", "setting", "mark", "health"]);
    assert_eq!(publisher.pending(), 0);
    let records = publisher.records();
    let made: Vec<_> = records[..4].iter().map(|record| record.stamp.mono_us).collect();
    assert_eq!(made, [at(0), at(1), at(2), at(4)].map(|at| at.monotonic_us));
    assert!(records.iter().map(|record| record.stamp.seq).eq(1..=records.len() as u64));
}

#[test]
fn a_journal_that_is_busy_for_moments_gets_every_record_in_its_interval() {
    let mut publisher = begun(60);
    publisher.sink.room = 0;
    for second in 1..=5 {
        publisher.interval(Some(&proxy_delta(second)), None, Some(HostRecord::default()), at(second));
        while publisher.pending() > 0 {
            publisher.give_room(2);
        }
    }
    let HealthRecord { waits_total, refused_total, merged_total, .. } = *publisher.health();
    assert_eq!((waits_total, refused_total, merged_total), (15, 0, 0));
    assert_eq!(count_of(&publisher, "health"), 0, "to wait a moment is no news");
    assert_eq!(publisher.made(), 1 + 5 * (1 + 1 + 4));
}

#[test]
fn a_record_that_the_journal_never_takes_holds_up_no_other() {
    for kind in ["mark", "proxy", "client", "host"] {
        let mut publisher = begun(60);
        publisher.sink.never = kind;
        publisher.mark("a", at(0));
        for second in 1..=3 {
            publisher.interval(Some(&proxy_delta(second)), None, Some(HostRecord::default()), at(second));
            assert_eq!(publisher.pending(), 0);
        }
        let dropped = publisher.health().dropped_total;
        let expected = if kind == "mark" { 1 } else { 3 * if kind == "client" { 4 } else { 1 } };
        assert_eq!((dropped, &*publisher.health().error), (expected, "too large"), "{kind}");
        publisher.stop(RunRecord::default(), None, None, None, at(4));
        let model = read(&publisher.sink.entries, |_| false);
        let run = model.current().unwrap();
        assert_eq!(run.proxy().unwrap().totals()[ProxyCounter::Accepted], 12, "{kind}");
        assert!(run.reading().lost() == 0 && run.health().dropped_total >= dropped);
    }
}

#[test]
fn events_beyond_what_may_wait_are_counted_and_told() {
    let mut publisher = begun(60);
    publisher.sink.room = 0;
    (0..100).for_each(|_| publisher.mark("", at(1)));
    assert_eq!((publisher.pending(), publisher.health().dropped_total), (EVENTS_MAX, 36));
    publisher.give_room(usize::MAX);
    publisher.sink.room = usize::MAX;
    publisher.interval(None, None, None, at(2));
    let model = read(&publisher.sink.entries, |_| false);
    assert_eq!(model.current().unwrap().health().dropped_total, 36);
    assert_eq!(model.current().unwrap().reading().lost(), 0);
}

#[test]
fn the_end_of_a_run_waits_for_the_journal_and_stays_the_end() {
    let mut publisher = begun(60);
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    publisher.sink.room = 0;
    publisher.interval(Some(&proxy_delta(2)), None, None, at(2));
    publisher.mark("last", at(2));
    publisher.stop(RunRecord::default(), Some(&proxy_delta(3)), None, None, at(3));
    let mut moments = 0;
    while publisher.pending() > 0 {
        publisher.give_room(1);
        moments += 1;
        assert!(moments < 100);
    }
    let kinds = publisher.kinds();
    assert_eq!(kinds[6..], ["mark", "proxy", "client", "client", "client", "client", "health", "run"]);
    let model = read(&publisher.sink.entries, |_| false);
    let run = model.current().unwrap();
    let (totals, samples) = true_totals(3);
    assert_eq!(*run.proxy().unwrap().totals(), totals);
    assert_eq!(run.proxy().unwrap().whole()[ProxyLatency::Exchange].count(), samples);
    assert!(run.stopped().is_some() && run.reading().lost() == 0);
}

#[test]
fn what_journald_dropped_is_told_once_it_is_known() {
    let mut publisher = begun(60);
    publisher.note_suppressed(7);
    publisher.interval(None, None, None, at(1));
    publisher.note_suppressed(7);
    publisher.interval(None, None, None, at(2));
    assert_eq!(count_of(&publisher, "health"), 1);
    let model = read(&publisher.sink.entries, |_| false);
    assert_eq!(model.current().unwrap().health().suppressed_total, 7);
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

/// What so many clients have done in an interval, all of them busy.
fn crowd(clients: u8) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    for n in 0..clients {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesIn] = u64::from(n) + 1;
        delta.clients.push(ClientDelta { client: client(n), open_change: 0, counters });
    }
    delta
}

/// The longest time without a record of each kind or client, in microseconds.
fn longest_silence_us(publisher: &Publisher<Paper>, end_us: u64) -> HashMap<String, u64> {
    let mut last = HashMap::new();
    let mut longest: HashMap<String, u64> = HashMap::new();
    for Record { stamp, body } in publisher.records() {
        let name = match &body {
            Body::Client(record) => record.client.to_string(),
            other => other.kind().word.to_owned(),
        };
        let before = last.insert(name.clone(), stamp.mono_us).unwrap_or(at(0).monotonic_us);
        let silence = longest.entry(name).or_default();
        *silence = (*silence).max(stamp.mono_us - before);
    }
    for (name, last) in last {
        longest.entry(name).and_modify(|silence| *silence = (*silence).max(end_us.saturating_sub(last)));
    }
    longest
}

#[test]
fn two_hundred_clients_keep_to_the_budget_of_the_system_and_have_their_turn() {
    for (per_second, within_s) in [(RECORDS_PER_SECOND_SYSTEM, 20), (RECORDS_PER_SECOND_OWN, 10)] {
        let mut publisher = begun(per_second);
        for second in 1..=120 {
            let load = Some((&load_delta(), STATE));
            publisher.interval(Some(&crowd(200)), load, Some(HostRecord::default()), at(second));
            assert!(publisher.made() <= u64::from(per_second) * (second + 1), "second {second}");
        }
        assert!(publisher.made() > u64::from(per_second - 2) * 120, "{} of {per_second}/s", publisher.made());
        let silences = longest_silence_us(&publisher, at(120).monotonic_us);
        let (clients, sides): (Vec<_>, Vec<_>) = silences.iter().partition(|(name, _)| name.contains('.'));
        assert_eq!(clients.len(), 200);
        assert!(clients.iter().all(|(_, us)| **us <= within_s * 1_000_000), "{clients:?}");
        assert!(sides.iter().all(|(name, us)| **us <= 1_000_000 || *name == "run"), "{sides:?}");
    }
}

#[test]
fn short_intervals_go_together_rather_than_exceed_the_budget_or_starve_clients() {
    let mut publisher = begun(RECORDS_PER_SECOND_SYSTEM);
    for tick in 1..=600_u64 {
        // As a real clock would have it.
        let mono_us = at(0).monotonic_us + tick * 100_000 + tick * 7 % 11 * 1_000;
        let now = Timestamps { realtime_us: at(0).realtime_us + mono_us, monotonic_us: mono_us };
        let mut delta = crowd(20);
        delta.connections = vec![connection(1), connection(2)];
        publisher.interval(Some(&delta), Some((&load_delta(), STATE)), Some(HostRecord::default()), now);
        assert!(publisher.made() <= 20 + tick * 2 + 1, "tick {tick}");
    }
    assert_eq!((publisher.health().merged_total, publisher.health().refused_total), (0, 0));
    let silences = longest_silence_us(&publisher, at(60).monotonic_us);
    assert!(silences["proxy"] <= 700_000 && silences["host"] <= 700_000, "{silences:?}");
    let clients: Vec<_> = silences.iter().filter(|(name, _)| name.contains('.')).collect();
    assert!(clients.len() == 20 && clients.iter().all(|(_, us)| **us <= 10_000_000), "{clients:?}");
    let model = read(&publisher.sink.entries, |_| false);
    assert!(model.current().unwrap().proxy().unwrap().intervals().all(|interval| !interval.after_loss));
}

#[test]
fn somebody_who_makes_records_without_end_does_not_blind_the_screen() {
    let mut publisher = begun(RECORDS_PER_SECOND_SYSTEM);
    for second in 1..=30 {
        (0..30).for_each(|_| publisher.mark("", at(second)));
        publisher.interval(Some(&proxy_delta(second)), None, None, at(second));
    }
    let silences = longest_silence_us(&publisher, at(30).monotonic_us);
    assert!(silences["proxy"] <= 2_000_000, "{silences:?}");
}

#[test]
fn a_run_of_many_clients_does_not_end_in_a_burst_that_journald_would_drop() {
    let mut publisher = begun(RECORDS_PER_SECOND_SYSTEM);
    let mut delta = ProxyDelta::default();
    for n in 0..9_000 {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesIn] = u64::from(n);
        let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(n)));
        delta.clients.push(ClientDelta { client, open_change: 0, counters });
    }
    publisher.interval(Some(&delta), None, None, at(1));
    publisher.stop(RunRecord::default(), None, None, None, at(2));
    assert!((5_000..5_050).contains(&publisher.made()), "{}", publisher.made());
    let model = read(&publisher.into_sink().entries, |_| false);
    let clients = model.current().unwrap().clients();
    let bytes = clients.iter().map(|client| client.totals()[ClientCounter::BytesIn]).sum::<u64>();
    assert_eq!(bytes, (0..9_000).sum::<u64>());
    assert!(clients.get(ClientId::Other).is_some());
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
