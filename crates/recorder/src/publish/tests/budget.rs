//! Tests of the budget: it holds, and no kind of record starves.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use super::super::*;
use super::{MemorySink, STATE, at, begun, count_of, load_delta, proxy_delta, read};
use crate::testing::{client, connection};
use records::delta::ClientDelta;
use records::histogram::Sketch;
use records::ids::ClientId;
use records::kinds::{ConnectionOutcome, Record};
use records::metrics::{ClientCounter, Counters};

#[test]
fn errors_beyond_the_budget_are_counted() {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 20, at(0));
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
fn crowded(seconds: u64, connections: &[ConnectionRecord]) -> Publisher<MemorySink> {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=seconds {
        let mut delta = ProxyDelta { connections: connections.to_vec(), ..ProxyDelta::default() };
        for n in 0..200 {
            let mut counters = Counters::default();
            counters[ClientCounter::BytesIn] = u64::from(n) + 1;
            delta.clients.push(ClientDelta {
                client: client(n),
                open_change: 0,
                counters,
                rtt_us: 0,
                exchange: Sketch::default(),
            });
        }
        let load = Some((&LoadDelta::default(), STATE));
        publisher.interval(Some(&delta), load, Some(HostRecord::default()), at(second));
    }
    publisher
}

/// The counts of this many busy clients in an interval.
fn crowd(clients: u8) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    for n in 0..clients {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesIn] = u64::from(n) + 1;
        delta.clients.push(ClientDelta {
            client: client(n),
            open_change: 0,
            counters,
            rtt_us: 0,
            exchange: Sketch::default(),
        });
    }
    delta
}

/// The longest time without a record of each kind or client, in microseconds.
fn longest_silence_us(publisher: &Publisher<MemorySink>, end_us: u64) -> HashMap<String, u64> {
    let mut last = HashMap::new();
    let mut longest: HashMap<String, u64> = HashMap::new();
    for Record { stamp, body } in publisher.records() {
        let name = match &body {
            Body::Client(record) => record.client.to_string(),
            other => other.kind().word.to_owned(),
        };
        let before = last.insert(name.clone(), stamp.mono_us).unwrap_or_else(|| at(0).monotonic_us);
        let silence = longest.entry(name).or_default();
        *silence = (*silence).max(stamp.mono_us - before);
    }
    for (name, last) in last {
        longest.entry(name).and_modify(|silence| *silence = (*silence).max(end_us.saturating_sub(last)));
    }
    longest
}

#[test]
fn two_hundred_clients_fit_the_system_budget_and_each_gets_records() {
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
fn short_intervals_are_merged_before_they_exceed_the_budget() {
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
    let model = read(&publisher.sink().entries, |_| false);
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
fn the_end_of_a_run_of_many_clients_fits_the_rate_limit_of_journald() {
    let mut publisher = begun(RECORDS_PER_SECOND_SYSTEM);
    let mut delta = ProxyDelta::default();
    for n in 0..9_000 {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesIn] = u64::from(n);
        let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(n)));
        delta.clients.push(ClientDelta {
            client,
            open_change: 0,
            counters,
            rtt_us: 0,
            exchange: Sketch::default(),
        });
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

#[test]
fn samples_without_room_are_no_loss_to_warn_of() {
    let sample = ConnectionRecord { outcome: ConnectionOutcome::Ended, ..connection(1) };
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
fn a_budget_short_for_long_is_logged_rarely_and_at_the_end() {
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
fn ten_thousand_changing_clients_keep_to_the_budget_and_lose_no_byte() {
    let mut publisher = Publisher::new(RunId::from_bits(1), MemorySink::default(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut counted = 0;
    for second in 1..=5_u32 {
        let mut delta = ProxyDelta::default();
        for n in second * 3_000..second * 3_000 + 10_000 {
            let mut counters = Counters::default();
            counters[ClientCounter::BytesIn] = u64::from(n);
            counted += u64::from(n);
            let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(n)));
            delta.clients.push(ClientDelta {
                client,
                open_change: 0,
                counters,
                rtt_us: 0,
                exchange: Sketch::default(),
            });
        }
        let before = publisher.made();
        publisher.interval(Some(&delta), None, None, at(second.into()));
        assert!(publisher.made() - before <= 60);
    }
    let waiting = publisher.clients.deferred() as u64;
    let model = read(&publisher.sink().entries, |_| false);
    assert_eq!(model.current().unwrap().clients_deferred(), waiting);
    publisher.stop(RunRecord::default(), None, None, None, at(6));
    let model = read(&publisher.into_sink().entries, |_| false);
    let clients = model.current().unwrap().clients().iter();
    assert_eq!(clients.map(|client| client.totals()[ClientCounter::BytesIn]).sum::<u64>(), counted);
}
