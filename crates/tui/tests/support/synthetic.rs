//! A made-up run that is the same every time: a proxy with a load, twenty clients, some failures.

#[path = "synthetic_http.rs"]
mod http;
#[path = "synthetic_tls.rs"]
mod tls;

use std::time::Duration;

use model::figures::AlertFigure as _;
use model::history::{Batch, Update};
use records::histogram::{Histograms, Sketch};
use records::ids::{ClientId, ConnId, RunId};
use records::kinds::{
    AlertRecord, AlertState, Body, ClientRecord, ConnectionOutcome, ConnectionRecord, HostRecord, LoadRecord,
    MarkRecord, Phase, ProxyRecord, Record, RunRecord, SettingRecord, Stamp,
};
use records::metrics::{
    ClientCounter, Counters, CpuGroup, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency,
};
use records::setting::{Applies, Setting, Value};
use records::values::{Latencies, ProcessCpu, ProcessCpuList, WorkerCounts, WorkerList};

use http::SyntheticHttp;
use tls::SyntheticTls;

const SECOND_US: u64 = 1_000_000;
const BEGAN_MONO_US: u64 = 1_000 * SECOND_US;
/// 2026-01-02 12:04:00 UTC.
const BEGAN_REALTIME_US: u64 = 1_767_355_440 * SECOND_US;
const CLIENTS: u64 = 20;
/// Records a second of clients beyond those.
const RECORDS_OF_OTHERS: u64 = 40;

/// A run that grows by a second at a time.
pub struct SyntheticLoad {
    seq: u64,
    second: u64,
    rate: f64,
    running: bool,
    proxy: Counters<ProxyCounter>,
    proxy_samples: Counters<ProxyLatency>,
    proxy_whole: Histograms<ProxyLatency>,
    load: Counters<LoadCounter>,
    load_samples: Counters<LoadLatency>,
    load_whole: Histograms<LoadLatency>,
    clients: Vec<Counters<ClientCounter>>,
    cpu: Counters<CpuGroup>,
    /// How much longer the slowest answers take at present.
    pub stall_us: u64,
    /// How much longer all answers take at present.
    pub slower_us: u64,
    /// What it counts of HTTP; `None` in TCP mode.
    pub http: Option<SyntheticHttp>,
    /// What it counts of TLS; `None` for a recording from before that was recorded.
    tls: Option<SyntheticTls>,
    /// False while no connection fails.
    pub is_failing: bool,
    /// True if it observes a terminator: a master and a worker.
    pub observes: bool,
}

impl Default for SyntheticLoad {
    fn default() -> Self {
        Self {
            seq: 0,
            second: 0,
            rate: 5000.0,
            running: true,
            proxy: Counters::default(),
            proxy_samples: Counters::default(),
            proxy_whole: Histograms::default(),
            load: Counters::default(),
            load_samples: Counters::default(),
            load_whole: Histograms::default(),
            clients: vec![Counters::default(); CLIENTS as usize],
            cpu: Counters::default(),
            observes: false,
            stall_us: 0,
            slower_us: 0,
            http: None,
            tls: None,
            is_failing: true,
        }
    }
}

impl SyntheticLoad {
    /// A run with so many clients more, of which sixty have a record in a second, as the budget has it: the busiest
    /// each time, the others in turn.
    #[allow(dead_code, reason = "not every user of this file has a crowd")]
    pub fn crowd(clients: u64) -> Self {
        Self { clients: vec![Counters::default(); clients as usize], ..Self::default() }
    }

    /// A run in HTTP mode with two routes.
    #[allow(dead_code, reason = "not every user of this file speaks HTTP")]
    pub fn http() -> Self {
        Self { http: Some(SyntheticHttp::default()), ..Self::default() }
    }

    /// A run that tells why handshakes were full, and who uses what.
    #[allow(dead_code, reason = "not every user of this file looks at TLS")]
    pub fn tls() -> Self {
        Self { tls: Some(SyntheticTls::default()), ..Self::default() }
    }

    pub fn run_id() -> RunId {
        RunId::from_bits(0x1a2b_3c4d << 96)
    }

    fn record(&mut self, interval_us: u64, body: Body) -> Record {
        self.seq += 1;
        let since = self.second * SECOND_US;
        let stamp = Stamp {
            run: Self::run_id(),
            seq: self.seq,
            mono_us: BEGAN_MONO_US + since,
            realtime_us: BEGAN_REALTIME_US + since,
            interval_us,
        };
        Record { stamp, body }
    }

    /// A record of something that happens now.
    #[allow(dead_code, reason = "not every user of this file has other events")]
    pub fn event(&mut self, body: Body) -> Record {
        self.record(0, body)
    }

    /// So many records are lost.
    #[allow(dead_code, reason = "not every user of this file loses records")]
    pub fn lose(&mut self, records: u64) {
        self.seq += records;
    }

    /// The process does not run for so many seconds.
    #[allow(dead_code, reason = "not every user of this file stops its run")]
    pub fn stand_still(&mut self, seconds: u64) {
        self.second += seconds;
    }

    /// The record that opens the run.
    pub fn start(&mut self) -> Record {
        let run = RunRecord { phase: Phase::Start, settings: self.settings(), ..Self::description() };
        self.record(0, Body::Run(Box::new(run)))
    }

    /// The record that ends it, with the totals.
    #[allow(dead_code, reason = "not every user of this file ends its run")]
    pub fn stop(&mut self) -> Record {
        let run = RunRecord {
            phase: Phase::Stop,
            proxy: Some(ProxyRecord {
                counters: self.proxy,
                latencies: Latencies::new(&self.proxy_whole, &self.proxy_samples),
                ..ProxyRecord::default()
            }),
            load: Some(LoadRecord {
                latencies: Latencies::new(&self.load_whole, &self.load_samples),
                ..self.load_record()
            }),
            ..Self::description()
        };
        self.record(0, Body::Run(Box::new(run)))
    }

    fn description() -> RunRecord {
        RunRecord {
            version: "0.1.0".into(),
            host: "box".into(),
            listen: "127.0.0.1:8443".into(),
            upstream: "unix:/tmp/app.sock".into(),
            certificate: "ECDSA P-256".into(),
            workers: 2,
            ..RunRecord::default()
        }
    }

    fn settings(&self) -> Vec<Setting> {
        let setting = |name: &str, value, unit: &str, range| Setting {
            name: name.into(),
            value,
            unit: unit.into(),
            applies: Applies::Live,
            range,
        };
        vec![
            setting("load.rate", Value::Number(self.rate), "1/s", Some((0.001, 10_000_000.0))),
            setting("load.resume", Value::Number(80.0), "%", Some((0.0, 100.0))),
            setting("load.running", Value::Flag(self.running), "", None),
            setting("load.keep-alive", Value::Number(10.0), "", None),
            setting("load.threads", Value::Number(1.0), "", None),
            Setting {
                applies: Applies::Restart,
                ..setting("proxy.listen", Value::Text("127.0.0.1:8443".into()), "", None)
            },
        ]
    }

    /// Changes a setting as the program would, and gives the record that says so.
    #[allow(dead_code, reason = "not every user of this file changes settings")]
    pub fn set(&mut self, name: &str, value: Value) -> Option<Record> {
        let before = self.settings().into_iter().find(|setting| setting.name == name)?;
        match (name, &value) {
            ("load.rate", Value::Number(rate)) => self.rate = *rate,
            ("load.running", Value::Flag(on)) => self.running = *on,
            _ => return None,
        }
        let text = before.value.to_string();
        let after = Some(Setting { value, ..before });
        Some(self.record(
            0,
            Body::Setting(SettingRecord {
                name: name.into(),
                before: text,
                after,
                ..SettingRecord::default()
            }),
        ))
    }

    /// A person leaves a mark.
    #[allow(dead_code, reason = "not every user of this file leaves marks")]
    pub fn mark(&mut self, number: u64) -> Record {
        self.record(0, Body::Mark(MarkRecord { number, text: String::new() }))
    }

    /// An alert on p99 of responses fires, or no longer does.
    #[allow(dead_code, reason = "not every user of this file has alerts")]
    pub fn alert(&mut self, number: u64, state: AlertState) -> Record {
        let alert = AlertRecord {
            number,
            state,
            condition: "response.p99 > 5ms for 30s".into(),
            figure: "load.response.p99".into(),
            operator: ">".into(),
            limit: 5_000.0,
            value: 7_210.0,
            worst: 9_204.0,
            hold_us: 30 * SECOND_US,
            window_us: 10 * SECOND_US,
            firing_us: if state == AlertState::Fired { 0 } else { 72 * SECOND_US },
            ..AlertRecord::default()
        };
        self.record(0, Body::Alert(Box::new(alert.with_sentence())))
    }

    fn fails_now(&self) -> bool {
        self.is_failing && self.second % 4 == 1
    }

    /// All records of the next second.
    pub fn second(&mut self) -> Vec<Record> {
        self.second += 1;
        let mut records: Vec<Record> = (0..CLIENTS).filter_map(|client| self.client(client)).collect();
        let others = (self.clients.len() as u64).saturating_sub(CLIENTS);
        let first = self.second.saturating_sub(1) * RECORDS_OF_OTHERS;
        records.extend(
            (first..first + others.min(RECORDS_OF_OTHERS)).filter_map(|n| self.client(CLIENTS + n % others)),
        );
        records.push(self.proxy());
        let (second, fails) = (self.second, self.fails_now());
        let bodies = self.http.as_mut().map_or_else(Vec::new, |http| http.second(second, fails));
        records.extend(bodies.into_iter().map(|body| self.record(SECOND_US, body)));
        let bodies = self.tls.as_mut().map_or_else(Vec::new, SyntheticTls::second);
        records.extend(bodies.into_iter().map(|body| self.record(SECOND_US, body)));
        records.push(self.load());
        records.push(self.host());
        if self.fails_now() {
            records.push(self.failure());
        }
        records
    }

    /// The records of a second in HTTP mode before any request.
    #[allow(dead_code, reason = "not every user of this file speaks HTTP")]
    pub fn quiet_http_second(&mut self) -> Vec<Record> {
        self.second += 1;
        vec![self.proxy(), self.record(SECOND_US, Body::Http(Box::default()))]
    }

    /// A batch of the next second, as if it had been read 40 ms after it was made.
    #[allow(dead_code, reason = "not every user of this file is live")]
    pub fn batch(&mut self) -> Update {
        let records = self.second();
        Update::Batch(Self::live(records))
    }

    /// A batch of these records.
    pub fn live(records: Vec<Record>) -> Batch {
        let read_mono_us = records.last().map(|record| record.stamp.mono_us + 40_000);
        Batch { records, read_mono_us, ..Batch::default() }
    }

    fn client(&mut self, number: u64) -> Option<Record> {
        // Every third client rests now and then, so that it has no record.
        if number % 3 == 2 && (self.second + number).is_multiple_of(5) {
            return None;
        }
        let swing = 100 + (self.second * 7 + number * 13) % 40;
        let fails = number == 4 && self.fails_now();
        let counters = &mut self.clients[number as usize];
        let exchanges = (4000 / (number + 1)).max(20) * swing / 100;
        counters[ClientCounter::Exchanges] += exchanges;
        counters[ClientCounter::BytesIn] += exchanges * 120;
        counters[ClientCounter::BytesOut] += exchanges * 8_200;
        counters[ClientCounter::Connections] += exchanges / 10;
        counters[ClientCounter::HandshakesFull] += exchanges / 50;
        counters[ClientCounter::HandshakesResumed] += exchanges / 10 - exchanges / 50;
        counters[ClientCounter::Errors] += u64::from(fails);
        counters[ClientCounter::Retransmits] += u64::from(fails);
        let tells_latencies = (self.second + number) % 5 == 1;
        let exchange = if tells_latencies { sketch(exchanges * 5, number) } else { Sketch::default() };
        let address = if number == 6 {
            "2001:db8:17:4::a0c:1".to_owned()
        } else {
            format!("10.{}.{}.{}", number / 2048, number / 8 % 256, 11 + number * 3 % 240)
        };
        let client = address.parse::<ClientId>().expect("the addresses above are well formed");
        let counters = *counters;
        let open = 12 / (number + 1) + 1;
        let rtt_us = 180 + 450 * number;
        Some(self.record(
            SECOND_US,
            Body::Client(ClientRecord { client, epoch: 1, last: false, open, counters, rtt_us, exchange }),
        ))
    }

    fn proxy(&mut self) -> Record {
        let mut interval = Histograms::default();
        let mut add = |class, n: u64, from_us: u64, step_us: u64| {
            // A tail that only every thousandth sees.
            let sample =
                |i: u64| from_us + i * i * step_us / n.max(1) + if i % 1000 == 999 { 12_000 } else { 0 };
            fill(&mut interval, &mut self.proxy_samples, class, n, sample);
        };
        add(ProxyLatency::HandshakeFull, 100, 1_500, 20);
        add(ProxyLatency::HandshakeResumed, 400, 300, 2);
        add(ProxyLatency::ComputeFull, 100, 160, 1);
        add(ProxyLatency::ComputeResumed, 400, 90, 1);
        add(ProxyLatency::Connect, 500, 25, 1);
        if self.http.is_none() {
            add(ProxyLatency::Exchange, 4998, 180, 1);
        }
        add(ProxyLatency::Lifetime, 496, 19_000, 30);
        self.proxy_whole.add(&interval);
        let counts = [
            (ProxyCounter::Accepted, 502),
            (ProxyCounter::Closed, 496),
            (ProxyCounter::HandshakesFull, 100),
            (ProxyCounter::HandshakesResumed, 400),
            (ProxyCounter::Tls13Full, 98),
            (ProxyCounter::Tls13Resumed, 400),
            (ProxyCounter::Tls12Full, 2),
            (ProxyCounter::GroupMlkem, 470),
            (ProxyCounter::GroupX25519, 30),
            (ProxyCounter::CipherAes256, 500),
            (ProxyCounter::BytesIn, 599_760),
            (ProxyCounter::BytesOut, 40_983_600),
            (ProxyCounter::Exchanges, 4998),
            (ProxyCounter::UpstreamConnects, 500),
        ];
        for (counter, n) in counts {
            self.proxy[counter] += n;
        }
        let failed = u64::from(self.fails_now());
        self.proxy[ProxyCounter::Failed] += failed;
        self.proxy[ProxyCounter::HandshakesFailed] += failed;
        self.proxy[ProxyCounter::FailedAlert] += failed;
        let record = ProxyRecord {
            open: 64,
            counters: self.proxy,
            latencies: Latencies::new(&interval, &self.proxy_samples),
            ..ProxyRecord::default()
        };
        self.record(SECOND_US, Body::Proxy(Box::new(record)))
    }

    fn load_record(&self) -> LoadRecord {
        LoadRecord {
            running: self.running,
            rate: self.rate,
            resume_percent: 80.0,
            connections: 200,
            counters: self.load,
            ..LoadRecord::default()
        }
    }

    fn load(&mut self) -> Record {
        let n = if self.running { 4998 } else { 0 };
        let mut interval = Histograms::default();
        let (tail_us, slower_us) = (12_000 + self.stall_us, self.slower_us);
        let mut add = |class, from_us: u64| {
            let sample = |i: u64| from_us + i * i / 5000 + if i % 1000 == 999 { tail_us } else { 0 };
            fill(&mut interval, &mut self.load_samples, class, n, sample);
        };
        add(LoadLatency::Response, 420 + slower_us);
        add(LoadLatency::Service, 400 + slower_us);
        add(LoadLatency::Lag, 2);
        self.load_whole.add(&interval);
        if self.running {
            // All that the proxy accepts are the load's.
            self.load[LoadCounter::HandshakesFull] += 100;
            self.load[LoadCounter::HandshakesResumed] += 400;
            self.load[LoadCounter::HandshakesFailed] += 2;
        }
        for counter in [LoadCounter::Scheduled, LoadCounter::Sent, LoadCounter::Ok] {
            self.load[counter] += n;
        }
        let record =
            LoadRecord { latencies: Latencies::new(&interval, &self.load_samples), ..self.load_record() };
        self.record(SECOND_US, Body::Load(Box::new(record)))
    }

    fn host(&mut self) -> Record {
        let used = [
            (CpuGroup::Proxy, 880_000),
            (CpuGroup::Load, 610_000),
            (CpuGroup::Upstream, 200_000),
            (CpuGroup::Dashboard, 4_000),
            (CpuGroup::Journal, 10_000),
        ];
        for (group, us) in used {
            self.cpu[group] += us;
        }
        let host = HostRecord {
            memory_bytes: 31_000_000,
            memory_pss_bytes: 27_500_000,
            descriptors: 300,
            threads: 9,
            workers: self.workers(),
            cpu: self.cpu,
            ..self.observed()
        };
        self.record(SECOND_US, Body::Host(host))
    }

    /// Two workers, of which the first does most.
    fn workers(&self) -> WorkerList {
        let mut workers = WorkerList::default();
        for (number, share, loop_delay_us_max) in [(0, 2, 850), (1, 1, 140)] {
            workers.add(&WorkerCounts {
                number,
                cpu_us: self.cpu[CpuGroup::Proxy] * share / 3,
                open: share as i64 * 20,
                accepted: self.second * share * 170,
                handshakes_full: self.second * share * 30,
                handshakes_resumed: self.second * share * 130,
                loop_delay_us_max,
            });
        }
        workers
    }

    /// What a terminator uses, if it observes one.
    fn observed(&self) -> HostRecord {
        if !self.observes {
            return HostRecord::default();
        }
        let used =
            [(4711, "nginx: master process", 0), (4712, "nginx: worker process", self.second * 430_000)];
        let processes = used.map(|(pid, name, cpu_us)| ProcessCpu::new(pid, name, cpu_us));
        HostRecord {
            observed_pid: 4711,
            observed_memory_bytes: 12_000_000,
            observed_descriptors: 64,
            observed_processes: ProcessCpuList::new(processes.into()),
            ..HostRecord::default()
        }
    }

    fn failure(&mut self) -> Record {
        let connection = ConnectionRecord {
            conn: ConnId(self.second * 500),
            client: "10.0.0.23".parse().expect("the address is well formed"),
            outcome: ConnectionOutcome::HandshakeAlert,
            detail: "received fatal alert: UnknownCA".into(),
            tls_version: String::new(),
            cipher: String::new(),
            group: String::new(),
            sni: String::new(),
            alpn: String::new(),
            client_name: String::new(),
            resumed: false,
            bytes_in: 0,
            bytes_out: 0,
            lifetime_us: 900,
        };
        self.record(0, Body::Connection(Box::new(connection)))
    }
}

/// Latencies of a client that is the slower the higher its number, a tenth of the samples counted ten times.
fn sketch(samples: u64, number: u64) -> Sketch {
    let mut sketch = Sketch::default();
    let tenth = samples.div_ceil(10);
    (0..tenth).for_each(|i| {
        sketch.record(Duration::from_micros(180 + number % 20 * 50 + i * i * 900 / tenth / tenth));
    });
    let once = sketch.clone();
    (0..9).for_each(|_| sketch.add(&once));
    sketch
}

fn fill<M: Metric>(
    interval: &mut Histograms<M>,
    samples: &mut Counters<M>,
    class: M,
    n: u64,
    sample_us: impl Fn(u64) -> u64,
) {
    (0..n).for_each(|i| interval[class].record_ns(sample_us(i) * 1_000));
    samples[class] += n;
}
