//! Records for tests of this crate and those above it, each of which uses a part.

#![allow(dead_code, reason = "see above")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use records::delta::FinishedRequest;
use records::histogram::{Histograms, Sketch};
use records::ids::{ClientId, ConnId};
use records::kinds::{
    AlertRecord, AlertState, Arm, Body, CertificateRecord, ClientRecord, ConnectionOutcome, ConnectionRecord,
    Cost, CostTable, Estimate, ExperimentOutcome, ExperimentRecord, ExperimentStep, HandshakeCosts,
    HealthRecord, HostRecord, HttpRecord, HttpVersion, Level, LoadRecord, MarkRecord, NoticeRecord, Phase,
    ProxyRecord, RequestRecord, RouteRecord, RunRecord, SettingRecord, Stage, TlsRecord, UpstreamRecord,
    UpstreamState, UsageRecord,
};
use records::metrics::{Counters, Dimension, Metric, RequestFailure};
use records::setting::{Applies, Setting, Value};
use records::values::{
    AbsentFigures, AgeCounts, ConnectionMix, EventCounts, Latencies, LoadEvent, Mix, ProcessCpu,
    ProcessCpuList, StatusCounts, WorkerCounts, WorkerList,
};

pub(crate) fn client(n: u8) -> ClientId {
    IpAddr::from(Ipv4Addr::new(127, 0, 0, n)).into()
}

/// Two workers.
fn workers(numbers: &[u64]) -> WorkerList {
    let mut list = WorkerList::default();
    for number in [0, 7] {
        list.add(&WorkerCounts {
            number,
            cpu_us: numbers[14],
            open: numbers[9] as i64,
            accepted: numbers[8],
            handshakes_full: numbers[7],
            handshakes_resumed: numbers[6],
            loop_delay_us_max: numbers[5],
        });
    }
    list
}

pub(crate) fn connection(n: u64) -> ConnectionRecord {
    ConnectionRecord {
        conn: ConnId(n),
        client: client(2),
        outcome: ConnectionOutcome::NotTls,
        detail: "first byte 0x47".into(),
        tls_version: String::new(),
        cipher: String::new(),
        group: String::new(),
        sni: "example.org".into(),
        client_name: "worker-7".into(),
        alpn: String::new(),
        resumed: false,
        bytes_in: 0,
        bytes_out: 0,
        lifetime_us: 1_200,
    }
}

/// A request that was answered well.
pub(crate) fn finished() -> FinishedRequest<'static> {
    FinishedRequest {
        route: Some(0),
        conn: ConnId(1),
        client: client(1),
        version: HttpVersion::Http2,
        method: "GET",
        path: "/",
        upstream: "127.0.0.1:80",
        status: Some(200),
        grpc_status: None,
        failure: None,
        queue: None,
        upstream_time: Some(Duration::from_millis(2)),
        first_byte: Some(Duration::from_millis(3)),
        duration: Some(Duration::from_millis(4)),
        body_in: Some(0),
        body_out: Some(13),
        is_reused: true,
        is_retried: false,
    }
}

fn http(numbers: &[u64]) -> HttpRecord {
    let number = |at: usize| numbers[at % numbers.len()];
    let mut statuses = StatusCounts::default();
    for number in numbers {
        statuses.count((number % 80) as u16 + 200, number / 1_000);
    }
    HttpRecord {
        requests: number(16),
        queued: number(17),
        upstream_open: number(18),
        upstream_idle: number(19),
        routes_deferred: number(20),
        grpc_statuses: statuses.clone(),
        statuses,
        counters: fill(numbers),
        latencies: latencies(numbers),
    }
}

fn tls(numbers: &[u64]) -> TlsRecord {
    let ages = |step: usize| {
        let mut ages = AgeCounts::default();
        numbers.iter().step_by(step).for_each(|number| ages.count(Duration::from_secs(number % 100_000)));
        ages
    };
    TlsRecord {
        usage_deferred: numbers[3 % numbers.len()],
        ages_accepted: ages(1),
        ages_expired: ages(3),
        counters: fill(numbers),
        latencies: latencies(numbers),
    }
}

fn costs(numbers: &[u64], text: &str) -> HandshakeCosts {
    let table = |at: usize| {
        let mut table = CostTable::default();
        table.insert(text, Cost::from([numbers[at], numbers[at + 1], numbers[at + 2]]));
        table
    };
    HandshakeCosts {
        took_us: numbers[0],
        key_exchange: table(1),
        signature: table(2),
        rest: CostTable::default(),
    }
}

fn route(numbers: &[u64], text: &str, flag: bool) -> RouteRecord {
    RouteRecord { route: text.into(), last: flag, counters: fill(numbers), latencies: latencies(numbers) }
}

fn certificate(numbers: &[u64], text: &str, flag: bool) -> CertificateRecord {
    let text = || text.to_owned();
    CertificateRecord {
        fingerprint: text(),
        file: text(),
        names: text(),
        more_names: numbers[1],
        issuer: text(),
        serial: text(),
        key: text(),
        chain: numbers[2],
        chain_bytes: numbers[3],
        not_before: numbers[4],
        not_after: numbers[5],
        since: numbers[6],
        handshakes: numbers[7],
        is_default: flag,
        stapled_until: numbers[8],
        must_staple: flag,
        faults: text(),
        refusal: text(),
        renewal_at: numbers[9],
        renewal_error: text(),
        is_replaced: flag,
    }
}

fn upstream(numbers: &[u64], text: &str, flag: bool) -> UpstreamRecord {
    UpstreamRecord {
        upstream: text.into(),
        last: flag,
        state: if flag { UpstreamState::Down } else { UpstreamState::Up },
        state_us: numbers[1],
        reason: if flag { text.into() } else { String::new() },
        open: numbers[2],
        idle: numbers[3],
        counters: fill(numbers),
        latencies: latencies(numbers),
    }
}

fn request(numbers: &[u64], text: &str, flag: bool) -> RequestRecord {
    let number = |at: usize| numbers[at % numbers.len()];
    RequestRecord {
        route: text.into(),
        conn: ConnId(number(21)),
        client: client(3),
        version: if flag { HttpVersion::Http2 } else { HttpVersion::Http1 },
        method: "GET".into(),
        path: text.into(),
        upstream: "unix:/a".into(),
        status: number(22),
        failure: flag.then_some(RequestFailure::UpstreamCut),
        queue_us: number(23),
        upstream_us: number(24),
        first_byte_us: number(25),
        duration_us: number(26),
        body_in: number(27),
        body_out: number(28),
        reused: flag,
        retried: !flag,
    }
}

fn fill<M: Metric>(numbers: &[u64]) -> Counters<M> {
    let mut counters = Counters::default();
    for (&metric, &number) in M::ALL.iter().zip(numbers.iter().cycle()) {
        counters[metric] = number;
    }
    counters
}

fn latencies<M: Metric>(numbers: &[u64]) -> Latencies<M> {
    let mut histograms = Histograms::default();
    for (i, &number) in numbers.iter().enumerate() {
        histograms[M::ALL[i % M::ALL.len()]].record_ns(number % 70_000_000_000);
    }
    Latencies::new(&histograms, &fill(numbers))
}

fn sketch(numbers: &[u64]) -> Sketch {
    let mut sketch = Sketch::default();
    for &number in numbers {
        sketch.record(Duration::from_nanos(number));
    }
    sketch
}

fn event_counts(numbers: &[u64], text: &str) -> EventCounts {
    let mut counts = EventCounts::default();
    counts.count(LoadEvent::Status(numbers[0] as u16), || text.to_owned());
    counts.count(LoadEvent::AlertReceived(numbers[1] as u8), String::new);
    counts
}

fn experiment(numbers: &[u64], text: &str, flag: bool) -> ExperimentRecord {
    ExperimentRecord {
        number: numbers[12],
        step: if flag { ExperimentStep::Verdict } else { ExperimentStep::Switch },
        stage: Stage::Comparison,
        arm: Arm::B,
        setting: "load.rate".into(),
        a: text.into(),
        flush: flag,
        seed: numbers[13],
        estimate: flag.then(|| Estimate { effect: -5.1, p_value: 0.031_25, ..Estimate::default() }),
        outcome: if flag { ExperimentOutcome::NoDifference } else { ExperimentOutcome::Pending },
        reason: text.into(),
        ..ExperimentRecord::default()
    }
}

fn notice(text: &str, flag: bool) -> NoticeRecord {
    let level = if flag { Level::Warning } else { Level::Info };
    let absent = if flag { "lost lines: not numbered; or not told".into() } else { AbsentFigures::default() };
    NoticeRecord { level, topic: "upstream".into(), text: text.into(), absent }
}

fn alert(numbers: &[u64], text: &str, flag: bool) -> AlertRecord {
    AlertRecord {
        number: numbers[14],
        state: if flag { AlertState::Fired } else { AlertState::Withdrawn },
        condition: text.into(),
        figure: "load.response.p99".into(),
        limit: 5_000.0,
        value: numbers[15] as f64 / 7.0,
        ..AlertRecord::default()
    }
}

fn setting(text: &str, flag: bool) -> Setting {
    Setting {
        name: "load.rate".into(),
        value: if flag { Value::Number(0.1) } else { Value::Text(text.into()) },
        unit: "1/s".into(),
        applies: Applies::Live,
        range: Some((0.0, 1e6)),
    }
}

fn mix(numbers: &[u64]) -> Mix {
    let mut mix = Mix::default();
    let mut connection = ConnectionMix::default();
    for carried in numbers.windows(2) {
        mix.connections.count(carried[0]);
        connection.request(carried[0], Some([carried[0], carried[1]]), &mut mix);
    }
    connection.end([0; 2], &mut mix);
    mix
}

/// One record of each kind.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn bodies(numbers: &[u64], text: &str, flag: bool) -> Vec<Body> {
    let proxy = ProxyRecord {
        open: numbers[4],
        clients_deferred: numbers[5],
        upstreams_deferred: numbers[6],
        counters: fill(numbers),
        latencies: latencies(numbers),
        mix: mix(numbers),
    };
    let load = LoadRecord {
        running: flag,
        rate: numbers[6] as f64 / 7.0,
        resume_percent: 12.5,
        connections: numbers[7],
        threads: 2,
        due_us: numbers[8],
        sending_us: numbers[9],
        measured_us: numbers[10],
        events: event_counts(numbers, text),
        counters: fill(numbers),
        latencies: latencies(numbers),
    };
    let setting = setting(text, flag);
    let run = RunRecord {
        phase: Phase::Stop,
        version: text.into(),
        host: text.into(),
        settings: vec![setting.clone()],
        proxy: Some(proxy.clone()),
        tls: Some(tls(numbers)),
        http: flag.then(|| http(numbers)),
        load: flag.then(|| load.clone()),
        ..RunRecord::default()
    };
    vec![
        Body::Run(Box::new(run)),
        Body::Proxy(Box::new(proxy)),
        Body::Tls(Box::new(tls(numbers))),
        Body::Usage(Box::new(UsageRecord {
            dimension: if flag { Dimension::Name } else { Dimension::Version },
            value: text.into(),
            counters: fill(numbers),
        })),
        Body::Certificate(Box::new(certificate(numbers, text, flag))),
        Body::Upstream(Box::new(upstream(numbers, text, flag))),
        Body::Http(Box::new(http(numbers))),
        Body::Route(Box::new(route(numbers, text, flag))),
        Body::Request(Box::new(request(numbers, text, flag))),
        Body::Load(Box::new(load)),
        Body::Client(ClientRecord {
            client: if flag { ClientId::Other } else { client(9) },
            epoch: numbers[8],
            last: flag,
            open: numbers[9],
            counters: fill(numbers),
            rtt_us: numbers[10],
            exchange: sketch(numbers),
        }),
        Body::Connection(Box::new(ConnectionRecord {
            detail: text.into(),
            resumed: flag,
            ..connection(numbers[10])
        })),
        Body::Setting(SettingRecord {
            name: "load.rate".into(),
            before: text.into(),
            after: Some(setting),
            ..SettingRecord::default()
        }),
        Body::Mark(MarkRecord { number: numbers[11], text: text.into() }),
        Body::Calibration(Box::new(costs(numbers, text))),
        Body::Experiment(Box::new(experiment(numbers, text, flag))),
        Body::Host(HostRecord {
            memory_bytes: numbers[12],
            memory_pss_bytes: numbers[11],
            observed_cpu_us: numbers[13],
            observed_processes: ProcessCpuList::new(vec![ProcessCpu::new(7, text, numbers[13])]),
            workers: workers(numbers),
            cpu: fill(numbers),
            withheld: fill(numbers),
            ..HostRecord::default()
        }),
        Body::Health(HealthRecord {
            refused_total: numbers[13],
            clock_step_us: numbers[14] as i64,
            clock_steps_total: numbers[12],
            error: text.into(),
            ..HealthRecord::default()
        }),
        Body::Notice(notice(text, flag)),
        Body::Alert(Box::new(alert(numbers, text, flag))),
    ]
}
