//! Long recordings in files, which are read by their roll-ups: the same figures as record by record.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, RecordWriter, Refusal, Sink};
use records::codec::Coverage;
use records::delta::{ClientDelta, ProxyDelta};
use records::histogram::Sketch;
use records::ids::{ClientId, RunId};
use records::kinds::{Record, RunRecord};
use records::metrics::{ClientCounter, Counters, ProxyCounter, ProxyLatency};
use serde_json::Value;

use crate::common::{run, stderr};

/// 2026-11-01T00:00:00Z
const BEGIN_S: u64 = 1_793_491_200;
/// Small, so that the recording has many files.
const FILE_BYTES: u64 = 1 << 20;

/// A run of so many seconds from a second on, which ends in order or not.
#[derive(Clone, Copy)]
struct Simulated {
    id: u128,
    begin_s: u64,
    seconds: u64,
    ends: bool,
    has_rollups: bool,
}

const LONG: Simulated =
    Simulated { id: 0xaa << 120, begin_s: 0, seconds: 4_000, ends: true, has_rollups: true };
const SHORT: Simulated = Simulated { id: 0xbb << 120, begin_s: 4_100, seconds: 50, ..LONG };
const BARE: Simulated =
    Simulated { id: 0xcc << 120, begin_s: 4_200, seconds: 300, has_rollups: false, ..LONG };
const KILLED: Simulated = Simulated { id: 0xdd << 120, begin_s: 4_600, seconds: 1_000, ends: false, ..LONG };

/// Each second another client, so that roll-ups lack most of the first run's 400.
fn count(second: u64) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    delta.counters[ProxyCounter::Accepted] = 1 + second % 3;
    delta.counters[ProxyCounter::Closed] = 1 + second % 3;
    delta.latencies[ProxyLatency::Exchange].record_ns(10_000 << (second % 13));
    let mut counters = Counters::default();
    counters[ClientCounter::BytesOut] = 1_000 + second;
    let client = ClientId::Addr([10, 0, (second % 400 / 200) as u8, (second % 200) as u8].into());
    let mut exchange = Sketch::default();
    exchange.record(Duration::from_micros(10 << (second % 13)));
    delta.clients.push(ClientDelta { client, open_change: 0, counters, rtt_us: 0, exchange });
    delta
}

/// The runs of several processes, in one file.
struct SharedFile(Rc<RefCell<RecordWriter>>);

impl Sink for SharedFile {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        self.0.borrow_mut().accept(record, coverage)
    }

    fn flush(&mut self) -> Result<(), String> {
        Sink::flush(&mut *self.0.borrow_mut())
    }
}

fn record(file: &Rc<RefCell<RecordWriter>>, simulated: Simulated) {
    let at = |second: u64| Timestamps {
        realtime_us: (BEGIN_S + simulated.begin_s + second) * 1_000_000,
        monotonic_us: (1_000 + simulated.begin_s + second) * 1_000_000,
    };
    let sink = SharedFile(Rc::clone(file));
    let mut publisher = Publisher::new(RunId::from_bits(simulated.id), sink, RECORDS_PER_SECOND_OWN, at(0));
    if simulated.has_rollups {
        publisher = publisher.with_rollups();
    }
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=simulated.seconds {
        publisher.interval(Some(&count(second)), None, None, at(second));
    }
    if simulated.ends {
        publisher.stop(RunRecord::default(), None, None, None, at(simulated.seconds));
    }
    assert_eq!(publisher.pending(), 0);
}

/// Another process says that the runs have ended long ago, and has roll-ups that stand for all of them.
fn forge(path: &Path) {
    // Without the fields that name this process.
    let options = FileOptions { common: EntryBuf::new(), ..FileOptions::default() };
    let mut writer = FileWriter::create(path, options).unwrap();
    for simulated in [LONG, KILLED] {
        let id = RunId::from_bits(simulated.id).to_string();
        let at_us = (BEGIN_S + simulated.begin_s + 100) * 1_000_000;
        let forged: [&[(&str, &str)]; 2] = [
            &[("TLSDASH_KIND", "run"), ("TLSDASH_PHASE", "stop"), ("TLSDASH_SEQ", "2")],
            &[
                ("TLSDASH_MINUTE", "proxy"),
                ("TLSDASH_SEQ", "1"),
                ("TLSDASH_AFTER", "0"),
                ("TLSDASH_THROUGH", "1000000"),
                ("TLSDASH_BATCH", "1"),
            ],
        ];
        for fields in forged {
            let mut entry = EntryBuf::new();
            entry.push("TLSDASH_RUN", id.as_bytes());
            for (name, value) in fields {
                entry.push(name, value.as_bytes());
            }
            writer.append(&entry, Timestamps { realtime_us: at_us, monotonic_us: 1 }).unwrap();
        }
    }
    writer.close().unwrap();
}

/// The clients of a report, by their addresses.
fn clients(report: &Value) -> Vec<Value> {
    let mut clients = report["summary"]["clients"].as_array().unwrap().clone();
    clients.sort_by_key(|client| client["client"].to_string());
    clients
}

/// Reports on a run, or a part of one.
fn report(source: &str, run_id: u128, records: &str, folder: &Path) -> (Value, String) {
    let id = RunId::from_bits(run_id).to_string();
    let output = run(folder, &["report", source, "--run", &id, "--records", records, "--json", "-"]);
    assert!(output.status.success(), "{source} {records}: {}", stderr(&output));
    (serde_json::from_slice(&output.stdout).unwrap(), stderr(&output))
}

#[test]
fn a_long_recording_has_the_same_figures_by_its_roll_ups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.journal");
    let options = FileOptions { size_max: FILE_BYTES, ..FileOptions::default() };
    let file = Rc::new(RefCell::new(RecordWriter::new(FileWriter::create(&path, options).unwrap())));
    for simulated in [LONG, SHORT, BARE, KILLED] {
        record(&file, simulated);
    }
    Rc::into_inner(file).unwrap().into_inner().close().unwrap();
    forge(&folder.path().join("forged.journal"));
    // As one file, and with what another process has written beside it.
    let sources = [path.to_str().unwrap(), folder.path().to_str().unwrap()];
    for (source, simulated) in sources
        .into_iter()
        .flat_map(|source| [LONG, SHORT, BARE, KILLED].map(|simulated| (source, simulated)))
    {
        let [(each, _), (by_rollups, told)] =
            ["all", "1000"].map(|records| report(source, simulated.id, records, folder.path()));
        let id = format!("{:x}", simulated.id >> 120);
        for part in ["connections", "bytes", "latency_us"] {
            assert_eq!(by_rollups["summary"]["proxy"][part], each["summary"]["proxy"][part], "{id} {part}");
        }
        assert_eq!(by_rollups["summary"]["journal"]["lost"], 0, "{id} {source}");
        let accepted = (1..=simulated.seconds).map(|second| 1 + second % 3).sum::<u64>();
        assert_eq!(each["summary"]["proxy"]["connections"]["accepted"], accepted, "{id}");
        // The last records of the killed run are missing in any case.
        if simulated.ends {
            let [found, expected] = [&by_rollups, &each].map(clients);
            assert_eq!(found.len(), expected.len(), "{id}");
            for (mut found, expected) in found.into_iter().zip(expected) {
                // No percentile rather than that of a part.
                if found["exchange_p99_us"].is_null() {
                    assert_eq!(simulated.id, LONG.id, "the others are read record by record");
                    found["exchange_p99_us"] = expected["exchange_p99_us"].clone();
                }
                assert_eq!(found, expected, "{id}");
            }
        }
        let is_by_rollups = told.contains(" are read, with");
        assert_eq!(is_by_rollups, simulated.id == LONG.id || simulated.id == KILLED.id, "{id}: {told}");
    }
    // What clients did before a range is needed of each, so it is read record by record.
    let part = format!("{}@40m..45m", sources[0]);
    let [(each, _), (by_rollups, told)] =
        ["all", "1000"].map(|records| report(&part, LONG.id, records, folder.path()));
    assert_eq!(told, "");
    for part in ["headline", "proxy_intervals", "handshakes", "changes", "happened", "environment"] {
        assert_eq!(by_rollups[part], each[part], "{part}");
    }
    assert_eq!(by_rollups["summary"]["proxy"], each["summary"]["proxy"]);
    assert_eq!(by_rollups["summary"]["clients"], each["summary"]["clients"]);
}
