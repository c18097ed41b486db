//! Many simulated hosts, whose records the program's own publisher writes, in a store: known totals, read by roll-ups.
//!
//! `just fleet` runs it with 500 hosts of an hour, `just fleet 500x10080x60` with a week of an interval a minute.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use journal::{EntryBuf, Timestamps};
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, Refusal, Sink};
use records::codec::{Coverage, encode_as};
use records::delta::{ClientDelta, ProxyDelta};
use records::histogram::{Histogram, Sketch};
use records::ids::{ClientId, RunId};
use records::kinds::{HostRecord, Record, RunRecord};
use records::metrics::{ClientCounter, Counters, ProxyCounter, ProxyLatency};
use serde_json::Value;

use crate::common::{run, stderr, until};
use crate::log_store::VictoriaLogs;

/// 2026-10-31T06:00:30Z
const BEGIN_S: u64 = 1_793_426_430;
const EXCHANGES_PER_SECOND: u64 = 20;
/// The bytes of one request.
const REQUEST_BYTES: usize = 4 << 20;

/// Sends records as `--upload` does, each as often as `copies` says.
struct Upload {
    address: String,
    origin: String,
    copies: usize,
    has_rollups: bool,
    entry: EntryBuf,
    bytes: Vec<u8>,
}

impl Upload {
    fn send(&mut self) {
        for _ in 0..self.copies {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            let length = self.bytes.len();
            write!(
                stream,
                "POST /insert/journald/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 VL-Stream-Fields: _MACHINE_ID,_HOSTNAME,_SYSTEMD_UNIT,TLSDASH_MINUTE,TLSDASH_HOUR\r\n\
                 Content-Type: application/vnd.fdo.journal\r\nContent-Length: {length}\r\n\r\n"
            )
            .unwrap();
            stream.write_all(&self.bytes).unwrap();
            let mut status = String::new();
            BufReader::new(stream).read_line(&mut status).unwrap();
            assert!(status.starts_with("HTTP/1.1 20"), "{status}");
        }
        self.bytes.clear();
    }
}

impl Sink for Upload {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        if !coverage.is_interval() && !self.has_rollups {
            return Ok(());
        }
        encode_as(record, coverage, &mut self.entry);
        let Timestamps { realtime_us, monotonic_us } = record.stamp.timestamps();
        let mut text = format!(
            "__REALTIME_TIMESTAMP={realtime_us}\n__MONOTONIC_TIMESTAMP={monotonic_us}\n{}",
            self.origin
        );
        for (name, value) in self.entry.iter() {
            let value = str::from_utf8(value).unwrap();
            assert!(!value.contains('\n'), "{value:?}");
            writeln!(text, "{name}={value}").unwrap();
        }
        text.push('\n');
        self.bytes.extend(text.into_bytes());
        if self.bytes.len() > REQUEST_BYTES {
            self.send();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// What is odd about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostOddity {
    None,
    UploadsTwice,
    /// Has the name of the host before it.
    SharesName,
    ClockIsAhead,
    /// It has no last records.
    WasKilled,
    LacksRollups,
}

impl HostOddity {
    fn of(host: u64) -> Self {
        match host % 20 {
            1 => Self::UploadsTwice,
            2 => Self::SharesName,
            3 => Self::ClockIsAhead,
            4 => Self::WasKilled,
            5 => Self::LacksRollups,
            _ => Self::None,
        }
    }
}

fn name(host: u64) -> String {
    format!("edge-{}", host - u64::from(HostOddity::of(host) == HostOddity::SharesName))
}

/// What a host counts in a second: latencies spread over four orders of magnitude.
fn count(host: u64, second: u64, whole: &mut Histogram) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    delta.counters[ProxyCounter::Accepted] = 1 + host % 3;
    delta.counters[ProxyCounter::Closed] = 1 + host % 3;
    let mut state = (host << 32 | second).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..EXCHANGES_PER_SECOND {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let latency_ns = 10_000 << ((state >> 33) % 14);
        let latency_ns = latency_ns + (state >> 40) % latency_ns;
        delta.latencies[ProxyLatency::Exchange].record_ns(latency_ns);
        whole.record_ns(latency_ns);
    }
    let mut counters = Counters::default();
    counters[ClientCounter::BytesOut] = 1_000;
    let client = ClientId::Addr([10, 0, (host % 250) as u8, (second % 4) as u8].into());
    delta.clients.push(ClientDelta {
        client,
        open_change: 0,
        counters,
        rtt_us: 0,
        exchange: Sketch::default(),
    });
    delta
}

/// Simulates a host with an interval each `step` seconds, and returns how many connections it has counted.
fn simulate(host: u64, (seconds, step): (u64, usize), address: &str, whole: &mut Histogram) -> u64 {
    let oddity = HostOddity::of(host);
    let origin = format!(
        "_HOSTNAME={}\n_MACHINE_ID={:032x}\n_BOOT_ID={:032x}\n_PID=7\n_UID=0\n_TRANSPORT=journal\n",
        name(host),
        host + 1,
        host + 1
    );
    let sink = Upload {
        address: address.to_owned(),
        origin,
        copies: 1 + usize::from(oddity == HostOddity::UploadsTwice),
        has_rollups: oddity != HostOddity::LacksRollups,
        entry: EntryBuf::new(),
        bytes: Vec::new(),
    };
    let ahead_s = if oddity == HostOddity::ClockIsAhead { 3_600 } else { 0 };
    let at = |second: u64| Timestamps {
        realtime_us: (BEGIN_S + ahead_s + second) * 1_000_000 + host,
        monotonic_us: (1_000 + 17 * host + second) * 1_000_000,
    };
    let mut publisher = Publisher::new(
        RunId::from_bits(0x1000 * (u128::from(host) + 1)),
        sink,
        RECORDS_PER_SECOND_OWN,
        at(0),
    );
    publisher = publisher.with_rollups();
    publisher.start(RunRecord { host: name(host), version: "0.1.0".into(), ..RunRecord::default() }, at(0));
    let mut connections = 0;
    for second in (0..seconds).step_by(step).skip(1) {
        let delta = count(host, second, whole);
        connections += delta.counters[ProxyCounter::Accepted];
        publisher.interval(Some(&delta), None, Some(HostRecord::default()), at(second));
    }
    if oddity != HostOddity::WasKilled {
        let delta = count(host, seconds, whole);
        connections += delta.counters[ProxyCounter::Accepted];
        publisher.stop(RunRecord::default(), Some(&delta), None, None, at(seconds));
        while publisher.pending() + publisher.pending_rollups() > 0 {
            publisher.retry();
        }
    }
    publisher.sink().send();
    connections
}

#[test]
fn many_hosts_read_by_rollups_have_their_exact_totals_and_percentiles() {
    let test = "many_hosts_read_by_rollups_have_their_exact_totals_and_percentiles";
    let size = std::env::var("TLSDASH_FLEET").unwrap_or_else(|_| "20x10".into());
    let size: Vec<u64> = size.split('x').map(|number| number.parse().unwrap()).collect();
    let (hosts, seconds, step) = match *size {
        [hosts, minutes] => (hosts, 60 * minutes, 1),
        [hosts, minutes, step] => (hosts, 60 * minutes, step as usize),
        _ => panic!("TLSDASH_FLEET=HOSTSxMINUTES or HOSTSxMINUTESxINTERVAL-SECONDS"),
    };
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(store) = VictoriaLogs::start(test, &folder.path().join("data"), &[]) else { return };
    let (mut whole, mut each) = (Histogram::new(), Vec::new());
    for host in 0..hosts {
        each.push(simulate(host, (seconds, step), &store.address, &mut whole));
    }
    until("the records can be found", || {
        store.ask("internal/force_flush");
        store.ask("select/logsql/query?query=*+%7C+count()+n").contains("\"n\"")
    });
    let report = |source: &str, more: &[&str]| {
        let began = Instant::now();
        let output = run(state.path(), &[&["report", source, "--json", "-"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        println!("report {source} {more:?}: {:.1} s", began.elapsed().as_secs_f64());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["summary"]["proxy"].clone(), stderr(&output))
    };
    let us = |q: f64| Value::from(whole.quantile_ns(q).unwrap() as f64 / 1e3);
    let expected = [us(0.5), us(0.99), us(0.999)];
    for records in ["1000", "all"] {
        if hosts > 20 && records == "all" {
            // Nobody would read that much.
            continue;
        }
        let (proxy, told) = report(&store.source(), &["--records", records]);
        let exchange = &proxy["latency_us"]["exchange"];
        assert_eq!(proxy["connections"]["accepted"], each.iter().sum::<u64>(), "{records} {told}");
        assert_eq!(exchange["n"], whole.count(), "{records}");
        let found = ["p50", "p99", "p999"].map(|name| exchange[name].clone());
        assert_eq!(found, expected, "{records}");
        assert_eq!(told.contains(" are read, with the busiest clients only"), records == "1000");
    }
    // Two hosts of one name are two hosts; each other host by itself.
    for (host, accepted) in (0..).zip(&each).take(7) {
        let named: u64 =
            (0..).zip(&each).filter(|(other, _)| name(*other) == name(host)).map(|(_, n)| n).sum();
        let (proxy, _) = report(&store.source(), &["--records", "100", "--host", &name(host)]);
        assert_eq!(proxy["connections"]["accepted"], named, "host {host}, which counted {accepted}");
    }
}
