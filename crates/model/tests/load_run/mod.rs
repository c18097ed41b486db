//! A load run that is known whole, for the tests of what others make of one.

use model::runs::Model;
use recorder::host::HostSampler;
use recorder::publish::Publisher;
use records::delta::{LoadDelta, LoadState};
use records::ids::RunId;
use records::kinds::{RunRecord, Timestamps};
use records::metrics::{LoadCounter as C, LoadLatency};
use records::setting::{Applies, INSECURE, Setting, TRUST, Value};
use records::values::LoadEvent;

fn setting(name: &str, value: Value) -> Setting {
    let applies = Applies::Restart;
    Setting { name: name.to_owned(), value, unit: String::new(), applies, range: None }
}

/// A run of 1,000 requests over 20 s, 990 of them good, from 1 to 2 ms.
pub(crate) fn model(change: impl FnOnce(&mut LoadDelta, &mut LoadState)) -> (Model, RunId) {
    let mut delta = LoadDelta::default();
    for i in 0..990 {
        delta.latencies[LoadLatency::Response].record_ns(1_000_000 + i * 1_000);
        delta.latencies[LoadLatency::Service].record_ns(900_000 + i * 1_000);
        delta.latencies[LoadLatency::Total].record_ns(950_000 + i * 1_000);
        delta.events.count(LoadEvent::Status(200), || "GET /".to_owned());
    }
    for _ in 0..10 {
        delta.events.count(LoadEvent::Status(503), || "GET /busy".to_owned());
    }
    for (counter, n) in [
        (C::Scheduled, 1_000),
        (C::Sent, 1_000),
        (C::Ok, 990),
        (C::Failed, 10),
        (C::FailedStatus, 10),
        (C::Opened, 4),
        (C::Reused, 996),
        (C::BodyOut, 12_000),
        (C::HeadOut, 100_000),
        (C::HeadPlain, 400_000),
        (C::BytesOut, 112_000),
    ] {
        delta.counters[counter] = n;
    }
    let mut state = LoadState {
        rate: 50.0,
        connections: 4,
        threads: 2,
        due_us: 20_000_000,
        sending_us: 19_980_000,
        measured_us: 20_000_000,
        ..LoadState::default()
    };
    change(&mut delta, &mut state);
    let settings = vec![
        setting("load.target", Value::Text("https://localhost:8443/x".into())),
        setting("load.connections", Value::Number(4.0)),
        setting(TRUST, Value::Text(INSECURE.into())),
    ];
    let run = RunId::random().unwrap();
    let at = |us| Timestamps { realtime_us: 1_700_000_000_000_000 + us, monotonic_us: us };
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord { settings, ..RunRecord::default() }, at(0));
    let host = HostSampler::default().sample();
    publisher.stop(RunRecord::default(), None, Some((&delta, state)), Some(host), at(20_000_000));
    let mut model = Model::new(10);
    publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
    (model, run)
}
