//! The state of a run at a moment, and its later records rebased to it.

use foldhash::HashMap;

use crate::delta::CLIENTS_MAX;
use crate::ids::{ClientId, RunId};
use crate::kinds::{
    Body, CERTIFICATES_MAX, CertificateRecord, HealthRecord, HostRecord, HttpRecord, LoadRecord, NamedRecord,
    Phase, ProxyRecord, Record, RouteRecord, RunRecord, Stamp, TlsRecord, UpstreamRecord, UsageRecord,
};
use crate::metrics::{ClientCounter, Counters, Dimension, UsageCounter};
use crate::setting::put_setting;

/// Routes, or other named parts of a kind, that are known of a run; the writer distinguishes fewer.
const NAMED_MAX: usize = 1_024;

/// Values of usage that are known of a run; the writer distinguishes fewer.
const USAGE_MAX: usize = 16_384;

/// The state of a run at a moment. A slice counts from it.
#[derive(Clone, Debug, Default)]
pub struct SliceBaseline {
    /// The stamp of the last record before.
    pub last: Option<Stamp>,
    /// The end of the last interval before, if there was one; else the run's first record.
    pub ticked: Option<Stamp>,
    /// The run's first record, with the settings at the moment.
    pub began: Option<Box<RunRecord>>,
    /// When the run began, `CLOCK_MONOTONIC` in microseconds.
    pub began_us: u64,
    /// The last records before, without the latencies of their intervals.
    pub proxy: ProxyRecord,
    pub tls: TlsRecord,
    pub http: HttpRecord,
    pub load: LoadRecord,
    pub host: HostRecord,
    pub health: HealthRecord,
    /// Epoch and totals of each client.
    pub clients: HashMap<ClientId, (u64, Counters<ClientCounter>)>,
    /// Totals of each value of usage.
    pub usage: HashMap<(Dimension, String), Counters<UsageCounter>>,
    /// Handshakes of each certificate, by file and fingerprint.
    pub certificates: HashMap<(String, String), u64>,
    pub routes: NamedBaseline<RouteRecord>,
    pub upstreams: NamedBaseline<UpstreamRecord>,
}

/// The last record of each name, without latencies.
#[derive(Clone, Debug, Default)]
pub struct NamedBaseline<R>(HashMap<String, R>);

impl<R: NamedRecord> NamedBaseline<R> {
    /// Adds a record from before the slice.
    pub fn note(&mut self, record: &R) {
        if self.0.len() < NAMED_MAX || self.0.contains_key(record.name()) {
            self.0.insert(record.name().to_owned(), record.without_intervals());
        }
    }

    /// Makes a later record count from here.
    fn rebase(&self, record: &mut R) {
        record.rebase(self.0.get(record.name()));
    }
}

fn certificate_key(record: &CertificateRecord) -> (String, String) {
    let (file, fingerprint) = record.key();
    (file.to_owned(), fingerprint.to_owned())
}

impl SliceBaseline {
    /// Adds a record from before the slice.
    pub(super) fn note(&mut self, record: &Record) {
        self.last = Some(record.stamp);
        match &record.body {
            Body::Run(run) if run.phase == Phase::Start => {
                self.began = Some(run.clone());
                self.began_us = record.stamp.mono_us.saturating_sub(record.stamp.interval_us);
                self.ticked = Some(record.stamp);
            }
            Body::Setting(setting) => {
                if let Some((after, began)) = setting.after.as_ref().zip(self.began.as_mut()) {
                    put_setting(&mut began.settings, after.clone());
                }
            }
            Body::Notice(notice) => {
                self.began.iter_mut().for_each(|began| began.absent.extend(&notice.absent));
            }
            Body::Proxy(proxy) => {
                self.ticked = Some(record.stamp);
                self.proxy = proxy.without_intervals();
            }
            Body::Tls(tls) => {
                self.ticked = Some(record.stamp);
                self.tls = tls.without_intervals();
            }
            Body::Usage(usage) => self.add_usage(usage),
            Body::Certificate(certificate) => self.add_certificate(certificate),
            Body::Http(http) => {
                self.ticked = Some(record.stamp);
                self.http = http.without_intervals();
            }
            Body::Route(route) => self.routes.note(route),
            Body::Upstream(upstream) => self.upstreams.note(upstream),
            Body::Load(load) => {
                self.ticked = Some(record.stamp);
                self.load = load.without_intervals();
            }
            Body::Host(host) => self.host = host.clone(),
            Body::Health(health) => self.health = health.clone(),
            Body::Client(client) => {
                if self.clients.len() < 2 * CLIENTS_MAX || self.clients.contains_key(&client.client) {
                    self.clients.insert(client.client, (client.epoch, client.counters));
                }
            }
            Body::Run(_)
            | Body::Connection(_)
            | Body::Request(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Alert(_)
            | Body::Unknown => {}
        }
    }

    /// Adds the record of a value of usage.
    pub fn add_usage(&mut self, record: &UsageRecord) {
        let key = (record.dimension, record.value.clone());
        if self.usage.len() < USAGE_MAX || self.usage.contains_key(&key) {
            self.usage.insert(key, record.counters);
        }
    }

    /// Adds the record of a certificate.
    pub fn add_certificate(&mut self, record: &CertificateRecord) {
        let key = certificate_key(record);
        if self.certificates.len() < CERTIFICATES_MAX || self.certificates.contains_key(&key) {
            self.certificates.insert(key, record.handshakes);
        }
    }

    /// The run; `None` without a record before.
    pub(super) fn run(&self) -> Option<RunId> {
        self.last.map(|last| last.run)
    }

    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// The run's first record, with the settings at the moment.
    pub(super) fn began(&self) -> Option<&RunRecord> {
        self.began.as_deref()
    }

    /// The first record of the slice; `None` if nothing was before it, or the first record of the run was not read.
    pub(super) fn header(&self, run: RunId) -> Option<Record> {
        let ticked = self.ticked?;
        let began = self.began.clone()?;
        let interval_us = ticked.mono_us.saturating_sub(self.began_us);
        Some(Record { stamp: Stamp { run, seq: 1, interval_us, ..ticked }, body: Body::Run(began) })
    }

    /// Makes a later record count from here.
    pub(super) fn rebase(&mut self, record: &mut Record) {
        let Some(last) = self.last else {
            if let Body::Run(run) = &record.body {
                self.began = Some(run.clone());
            }
            return;
        };
        let stamp = &mut record.stamp;
        stamp.seq = stamp.seq.saturating_sub(last.seq) + u64::from(self.began.is_some());
        match &mut record.body {
            Body::Run(run) => {
                // Histograms of a whole run cannot be rebased; the last interval has the totals.
                (run.proxy, run.tls, run.http, run.load) = (None, None, None, None);
                let began_us = self.ticked.map_or(last.mono_us, |ticked| ticked.mono_us);
                stamp.interval_us = stamp.interval_us.min(stamp.mono_us.saturating_sub(began_us));
            }
            Body::Proxy(proxy) => proxy.rebase(&self.proxy),
            Body::Tls(tls) => tls.rebase(&self.tls),
            Body::Usage(usage) => {
                let key = (usage.dimension, usage.value.clone());
                usage.rebase(self.usage.get(&key));
            }
            Body::Certificate(certificate) => {
                let before = self.certificates.get(&certificate_key(certificate));
                certificate.rebase(before.copied().unwrap_or_default());
            }
            Body::Http(http) => http.rebase(&self.http),
            Body::Route(route) => self.routes.rebase(route),
            Body::Upstream(upstream) => self.upstreams.rebase(upstream),
            Body::Load(load) => load.rebase(&self.load),
            Body::Client(client) => {
                let before = self.clients.get(&client.client).filter(|(epoch, _)| *epoch == client.epoch);
                if let Some((_, counters)) = before {
                    client.rebase(counters);
                }
            }
            Body::Host(host) => host.rebase(&self.host),
            Body::Health(health) => health.rebase(&self.health),
            Body::Connection(_)
            | Body::Request(_)
            | Body::Setting(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Notice(_)
            | Body::Alert(_)
            | Body::Unknown => {}
        }
    }
}
