//! Writes a recording of hours in minutes with the code that writes real ones: the records of a proxy and its
//! load, one interval per second, like those of the demo with this many clients.
//!
//! ```text
//! cargo run --release -p benchmarks --example recording -- /var/tmp/hour.journal --seconds 3600 --clients 200
//! ```
//!
//! With `--roll-ups` it has those too, as the program's journal has.

use std::path::Path;

use benchmarks::spread::LatencySpread;
use benchmarks::traffic::{LoadTraffic, count_load, count_proxy, host};
use benchmarks::{Result, argument};
use journal::Timestamps;
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN};
use records::delta::{Delta, LoadDelta, LoadState, ProxyDelta};
use records::ids::RunId;
use records::kinds::{RunRecord, SettingRecord};
use records::setting::{Applies, Setting, Value};

const SECOND_US: u64 = 1_000_000;
/// 2023-11-14, 22:13:20 UTC.
const BEGAN_US: u64 = 1_700_000_000_000_000;
/// The interval between changes of a setting and marks, in seconds.
const EVENT_S: u64 = 300;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("name the journal file to write")?;
    let number = |name: &str, usual: u64| argument(name).map_or(Ok(usual), |text| text.parse::<u64>());
    let traffic =
        LoadTraffic { requests: number("rate", 1_000)?, clients: u32::try_from(number("clients", 200)?)? };
    let rolled_up = std::env::args().any(|arg| arg == "--roll-ups");
    let records = write(Path::new(&path), number("seconds", 3_600)?, traffic, rolled_up)?;
    #[expect(clippy::print_stdout, reason = "a program")]
    {
        println!("{records} records");
    }
    Ok(())
}

/// Writes the recording; returns the number of its records.
fn write(path: &Path, seconds: u64, traffic: LoadTraffic, rolled_up: bool) -> Result<u64> {
    let at = |second: u64| Timestamps {
        realtime_us: BEGAN_US + second * SECOND_US,
        monotonic_us: 1_000 * SECOND_US + second * SECOND_US,
    };
    let mut publisher =
        Publisher::new(RunId::random()?, benchmarks::create_records(path)?, RECORDS_PER_SECOND_OWN, at(0));
    if rolled_up {
        publisher = publisher.with_rollups();
    }
    let run = RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen: "127.0.0.1:8443".to_owned(),
        upstream: "unix:/tmp/app.sock".to_owned(),
        certificate: "ECDSA P-256".to_owned(),
        workers: 1,
        cores: 2,
        settings: vec![resume(80.0)],
        ..RunRecord::default()
    };
    publisher.start(run.clone(), at(0));
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    let mut spread = LatencySpread::default();
    for second in 1..=seconds {
        proxy.clear();
        load.clear();
        count_proxy(&mut proxy, traffic, &mut spread);
        count_load(&mut load, traffic, &mut spread);
        if second % EVENT_S == 0 {
            let resumed = if (second / EVENT_S).is_multiple_of(2) { 80.0 } else { 40.0 };
            let after = Some(resume(resumed));
            publisher.setting(
                SettingRecord {
                    name: "load.resume".to_owned(),
                    before: String::new(),
                    after,
                    ..SettingRecord::default()
                },
                at(second),
            );
            publisher.mark("as planned", at(second));
        }
        let state = LoadState {
            running: second < seconds,
            rate: traffic.requests as f64,
            resume_percent: 80.0,
            connections: u64::from(traffic.clients),
            threads: 1,
            due_us: second * SECOND_US,
            sending_us: second * SECOND_US,
            measured_us: second * SECOND_US,
        };
        publisher.interval(Some(&proxy), Some((&load, state)), Some(host(second)), at(second));
    }
    let end = Timestamps {
        realtime_us: at(seconds).realtime_us + 1_000,
        monotonic_us: at(seconds).monotonic_us + 1_000,
    };
    publisher.stop(run, None, None, Some(host(seconds)), end);
    if publisher.pending() > 0 {
        return Err(format!("the file takes no records: {:?}", publisher.refusal()).into());
    }
    let made = publisher.made();
    publisher.into_sink().close()?;
    Ok(made)
}

fn resume(percent: f64) -> Setting {
    Setting {
        name: "load.resume".to_owned(),
        value: Value::Number(percent),
        unit: "%".to_owned(),
        applies: Applies::NewConnections,
        range: Some((0.0, 100.0)),
    }
}
