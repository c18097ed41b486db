//! Roll-ups, read as the records of a run.

use records::codec::Resolution;
use records::metrics::{LoadCounter, Metric, ProxyCounter, ProxyLatency};

use super::*;

/// The entries of a resolution, with the kind where readers expect it.
fn of(publisher: &Publisher<MemorySink>, resolution: Resolution) -> Vec<(EntryBuf, u64)> {
    let field = &resolution.kind_field().name;
    let renamed = |(entry, realtime_us): &(EntryBuf, u64)| {
        let mut found = EntryBuf::new();
        for (name, value) in entry.iter() {
            found.push(if name == field { "TLSDASH_KIND" } else { name }, value);
        }
        (found, *realtime_us)
    };
    let sink = publisher.sink();
    let wanted = sink.entries.iter().filter(|(entry, _)| entry.iter().any(|(name, _)| name == field));
    wanted.map(renamed).collect()
}

fn bytes(entries: &[(EntryBuf, u64)]) -> usize {
    let of_entry = |(entry, _): &(EntryBuf, u64)| -> usize {
        entry.iter().map(|(name, value)| name.len() + value.len() + 1).sum()
    };
    entries.iter().map(of_entry).sum()
}

#[test]
fn minutes_and_hours_say_what_the_intervals_say_in_little_room() {
    // The journal refuses some, of each resolution.
    let refuse = (5..40_000).step_by(97).collect();
    let sink = MemorySink { refuse, ..MemorySink::default() };
    let publisher = Publisher::new(RunId::from_bits(7), sink, RECORDS_PER_SECOND_OWN, at(0));
    let mut publisher = publisher.with_rollups();
    publisher.start(RunRecord::default(), at(0));
    let seconds = 2 * 3_600 + 90;
    for second in 1..seconds {
        let host = Some(HostRecord::default());
        publisher.interval(Some(&proxy_delta(second)), Some((&load_delta(), STATE)), host, at(second));
        if second == 100 {
            publisher.mark("a mark", at(second));
        }
    }
    let (proxy, load) = (proxy_delta(seconds), load_delta());
    publisher.stop(RunRecord::default(), Some(&proxy), Some((&load, STATE)), None, at(seconds));
    for _ in 0..100 {
        publisher.retry();
    }
    assert_eq!((publisher.pending(), publisher.pending_rollups()), (0, 0));

    let figures = |entries: &[(EntryBuf, u64)]| {
        let model = read(entries, |_| false);
        let run = model.current().unwrap();
        let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
        let latencies = ProxyLatency::ALL.iter().map(|&class| proxy.whole()[class].to_sparse());
        let totals = (proxy.totals()[ProxyCounter::BytesIn], load.totals()[LoadCounter::Ok]);
        let clients: u64 = run.clients().iter().map(|client| client.totals()[ClientCounter::BytesIn]).sum();
        let reading = (run.reading().lost(), run.reading().gaps_total(), run.stopped().is_some());
        (latencies.collect::<Vec<_>>(), (totals, clients, reading, run.markers().count()))
    };
    let all = [Resolution::Interval, Resolution::Minute, Resolution::Hour].map(|it| of(&publisher, it));
    let [intervals, minutes, hours] = &all;
    let (expected, expected_rest) = figures(intervals);
    for entries in [minutes, hours] {
        let (latencies, rest) = figures(entries);
        assert_eq!(rest, expected_rest);
        assert!(latencies == expected);
    }
    let [whole, of_minutes, of_hours] = all.each_ref().map(|entries| bytes(entries));
    assert!(of_minutes * 20 < whole && of_hours * 200 < whole, "{whole} {of_minutes} {of_hours}");
}

/// The number in a field of an entry, if it has it.
fn number(entry: &EntryBuf, field: &str) -> Option<u64> {
    let (_, value) = entry.iter().find(|(name, _)| *name == field)?;
    str::from_utf8(value).unwrap().parse().ok()
}

#[test]
fn roll_ups_that_were_written_together_stand_for_the_records_that_they_name() {
    let publisher = Publisher::new(RunId::from_bits(7), MemorySink::default(), RECORDS_PER_SECOND_OWN, at(0));
    let mut publisher = publisher.with_rollups();
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=200 {
        match second {
            // The journal refuses this interval, and takes an event of later first.
            90 => publisher.sink().room = 0,
            91 => {
                publisher.mark("it overtakes", at(second));
                publisher.sink().room = usize::MAX;
            }
            // The process stood still.
            130..150 => continue,
            150 => publisher.note_gap(at(149).monotonic_us),
            _ => {}
        }
        let host = Some(HostRecord::default());
        publisher.interval(Some(&proxy_delta(second)), Some((&load_delta(), STATE)), host, at(second));
    }
    let totals = |entries: &[(EntryBuf, u64)]| {
        let model = read(entries, |_| false);
        let run = model.current().unwrap();
        let exchanges = run.proxy().map(|proxy| {
            let latencies = proxy.whole()[ProxyLatency::Exchange].to_sparse();
            (proxy.totals()[ProxyCounter::BytesIn], latencies, run.markers().count())
        });
        let clients: u64 = run.clients().iter().map(|client| client.totals()[ClientCounter::BytesIn]).sum();
        (exchanges, run.load().map(|load| load.totals()[LoadCounter::Ok]), clients, run.host().is_some())
    };
    let (intervals, minutes) = (of(&publisher, Resolution::Interval), of(&publisher, Resolution::Minute));
    let (mut after, mut batches, mut first) = (0, 0, 0);
    for (at, (entry, _)) in minutes.iter().enumerate() {
        let Some(through) = number(entry, "TLSDASH_THROUGH") else { continue };
        assert_eq!(number(entry, "TLSDASH_AFTER"), Some(after));
        assert_eq!(number(entry, "TLSDASH_BATCH"), Some(at as u64 + 1 - first));
        let stood_for: Vec<_> = intervals
            .iter()
            .filter(|(entry, _)| number(entry, "TLSDASH_SEQ").is_some_and(|seq| seq <= through))
            .cloned()
            .collect();
        assert_eq!(totals(&minutes[..=at]), totals(&stood_for), "through {through}");
        (after, batches, first) = (through, batches + 1, at as u64 + 1);
    }
    assert!(batches >= 4, "{batches}");
}
