//! Runs for tests: an interval a second, whose counters a test fills.

use crate::runs::{Model, Run};
use records::ids::RunId;
use records::kinds::{
    Body, HostRecord, HttpRecord, LoadRecord, Phase, ProxyRecord, Record, RunRecord, SettingRecord, Stamp,
    TlsRecord,
};
use records::metrics::{Counters, LoadCounter, Metric, ProxyCounter, TlsCounter};
use records::setting::{Applies, Setting, Value};

/// 2026-03-01T00:00:00Z.
const BEGAN_REALTIME_US: u64 = 1_772_323_200_000_000;

/// Writes the records of a run, with totals that grow.
pub(crate) struct RunBuilder {
    model: Model,
    seq: u64,
    second: u64,
    pub(crate) proxy: ProxyRecord,
    pub(crate) tls: TlsRecord,
    pub(crate) http: Option<HttpRecord>,
    pub(crate) load: Option<LoadRecord>,
    pub(crate) host: HostRecord,
}

pub(crate) fn setting(name: &str, value: Value) -> Setting {
    Setting { name: name.into(), value, unit: String::new(), applies: Applies::Live, range: None }
}

impl RunBuilder {
    /// A run that has begun with these settings.
    pub(crate) fn begun(settings: &[(&str, Value)]) -> Self {
        let settings = settings.iter().map(|(name, value)| setting(name, value.clone())).collect();
        Self::of(RunRecord { settings, ..RunRecord::default() })
    }

    /// A run with this first record.
    pub(crate) fn of(began: RunRecord) -> Self {
        let mut recorder = Self {
            model: Model::default(),
            seq: 0,
            second: 0,
            proxy: ProxyRecord::default(),
            tls: TlsRecord::default(),
            http: None,
            load: None,
            host: HostRecord::default(),
        };
        recorder.write(Body::Run(Box::new(began)));
        recorder
    }

    pub(crate) fn write(&mut self, body: Body) {
        self.seq += 1;
        let passed_us = self.second * 1_000_000;
        let stamp = Stamp {
            run: RunId::from_bits(1),
            seq: self.seq,
            mono_us: 50_000_000 + passed_us,
            realtime_us: BEGAN_REALTIME_US + passed_us,
            interval_us: 1_000_000,
        };
        self.model.apply(Record { stamp, body }, None);
    }

    /// A record of TLS alone.
    pub(crate) fn tls(&mut self, tls: TlsRecord) {
        self.second += 1;
        self.write(Body::Tls(Box::new(tls)));
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        let after = Some(setting(name, value));
        self.write(Body::Setting(SettingRecord {
            name: name.into(),
            before: String::new(),
            after,
            ..SettingRecord::default()
        }));
    }

    /// Leaves records out, as if they were lost.
    pub(crate) fn lose(&mut self, records: u64) {
        self.seq += records;
    }

    /// So many seconds, in each of which `count` counts.
    pub(crate) fn seconds(&mut self, seconds: u64, count: impl Fn(&mut Self)) {
        for _ in 0..seconds {
            self.second += 1;
            count(self);
            self.write(Body::Proxy(Box::new(self.proxy.clone())));
            self.write(Body::Tls(Box::new(self.tls.clone())));
            self.http.clone().into_iter().for_each(|http| self.write(Body::Http(Box::new(http))));
            self.load.clone().into_iter().for_each(|load| self.write(Body::Load(Box::new(load))));
            self.write(Body::Host(self.host.clone()));
        }
    }

    pub(crate) fn stop(&mut self) {
        let (proxy, tls) = (Some(self.proxy.clone()), Some(self.tls.clone()));
        self.write(Body::Run(Box::new(RunRecord { phase: Phase::Stop, proxy, tls, ..RunRecord::default() })));
    }

    pub(crate) fn run(&self) -> &Run {
        self.model.current().unwrap()
    }
}

pub(crate) fn add<M: Metric>(counters: &mut Counters<M>, more: &[(M, u64)]) {
    for &(metric, n) in more {
        counters[metric] += n;
    }
}

/// A second of a busy proxy in which nothing is wrong: 100 handshakes, most of them resumed.
pub(crate) fn calm(recorder: &mut RunBuilder) {
    let proxy = [
        (ProxyCounter::Accepted, 100),
        (ProxyCounter::HandshakesFull, 20),
        (ProxyCounter::HandshakesResumed, 80),
        (ProxyCounter::Exchanges, 1_000),
        (ProxyCounter::UpstreamConnects, 100),
    ];
    add(&mut recorder.proxy.counters, &proxy);
    let tls = [
        (TlsCounter::FullFirstVisit, 10),
        (TlsCounter::FullNoTicket, 10),
        (TlsCounter::NoTicketAlone, 10),
        (TlsCounter::OffersToResume, 80),
    ];
    add(&mut recorder.tls.counters, &tls);
    if let Some(load) = &mut recorder.load {
        add(
            &mut load.counters,
            &[(LoadCounter::Scheduled, 1_000), (LoadCounter::Sent, 1_000), (LoadCounter::Ok, 1_000)],
        );
    }
}
