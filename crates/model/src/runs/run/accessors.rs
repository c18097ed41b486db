//! Accessors of a run.

use std::time::Duration;

use super::Run;
use super::hosts::{CpuUse, WorkerActivity};
use super::reading::Reading;
use crate::runs::run::events::alerts::AlertEpisode;
use crate::runs::run::events::experiment::Experiment;
use crate::runs::run::events::log::LogLine;
use crate::runs::run::events::timeline::Marker;
use crate::runs::run::traffic::certificates::Certificates;
use crate::runs::run::traffic::client::ClientStats;
use crate::runs::run::traffic::clients::Clients;
use crate::runs::run::traffic::failures::Failures;
use crate::runs::run::traffic::named::NamedTable;
use crate::runs::run::traffic::recent::{RECENT_MAX, RecentUse, step_before};
use crate::runs::run::traffic::requests::Requests;
use crate::runs::run::traffic::usage::Usage;
use crate::runs::series::MetricSeries;
use records::codec::Writer;
use records::ids::{ClientId, RunId};
use records::kinds::{
    HandshakeCosts, HealthRecord, HostRecord, HttpGauges, HttpRecord, LoadRecord, RouteRecord, RunRecord,
    TlsRecord, UNFINISHED, UpstreamRecord,
};
use records::metrics::{
    ClientCounter, Counters, CpuGroup, HttpCounter, HttpLatency, LoadCounter, LoadLatency, ProxyCounter,
    ProxyLatency, TlsCounter, TlsLatency,
};
use records::setting::Setting;
use records::values::ProcessCpu;

impl Run {
    pub fn id(&self) -> RunId {
        self.header.id
    }

    /// The process that writes it.
    pub fn writer(&self) -> &Writer {
        &self.header.writer
    }

    /// The host's name: from the journal, else from the run; empty if neither was read.
    pub fn hostname(&self) -> &str {
        match (&*self.header.writer.hostname, self.began()) {
            ("", Some(began)) => &began.host,
            (hostname, _) => hostname,
        }
    }

    /// The service whose part of another run it is, that of [`RunId::whole`]; empty if it is no part.
    pub fn service(&self) -> &str {
        self.began().map_or("", |began| &began.service)
    }

    pub fn is_service(&self) -> bool {
        !self.service().is_empty()
    }

    pub(in crate::runs) fn is_of_process_of(&self, other: &Self) -> bool {
        self.writer().origin == other.writer().origin
    }

    /// Its first record; `None` if that was not read.
    pub fn began(&self) -> Option<&RunRecord> {
        self.header.began.as_ref().map(|(_, run)| &**run)
    }

    /// Its final record; `None` while it runs, or if it was killed.
    pub fn stopped(&self) -> Option<&RunRecord> {
        self.header.stopped.as_ref().map(|(_, run)| &**run)
    }

    /// `CLOCK_MONOTONIC` of its first record read, in microseconds.
    pub fn began_us(&self) -> u64 {
        self.header.first.map_or(0, |stamp| stamp.mono_us)
    }

    /// The moment of the monotonic clock from which its series are kept, in microseconds: the first record's, until
    /// the oldest intervals are removed.
    pub fn kept_from_us(&self) -> u64 {
        let proxy = self.proxy().and_then(|series| Some(series.timeline().next()?.start_us));
        let load = self.load().and_then(|series| Some(series.timeline().next()?.start_us));
        [proxy, load].into_iter().flatten().min().unwrap_or_else(|| self.began_us())
    }

    /// True if only its totals and its last interval are kept, since there are too many runs.
    pub fn is_brief(&self) -> bool {
        self.retention.is_brief
    }

    /// True if reading began in the middle of the run, with known totals; then latencies of the whole run cover only
    /// the part read.
    pub fn is_joined(&self) -> bool {
        self.retention.is_joined
    }

    /// `CLOCK_REALTIME` at the beginning of [`Self::duration_us`], in microseconds.
    pub fn began_realtime_us(&self) -> u64 {
        let not_read_us = self.duration_us() - self.read_us();
        self.header.first.map_or(0, |stamp| stamp.realtime_us.saturating_sub(not_read_us))
    }

    /// `CLOCK_REALTIME` of its last record read, in microseconds.
    pub fn last_realtime_us(&self) -> u64 {
        self.header.last.map_or(0, |stamp| stamp.realtime_us)
    }

    /// `CLOCK_MONOTONIC` of its last record read, in microseconds.
    pub fn last_us(&self) -> u64 {
        self.header.last.map_or(0, |stamp| stamp.mono_us)
    }

    /// Microseconds that make `CLOCK_REALTIME` of its monotonic clock, by its last record.
    pub(crate) fn realtime_shift_us(&self) -> i64 {
        self.last_realtime_us() as i64 - self.last_us() as i64
    }

    /// How long the run had lasted when its recorded part begins, in microseconds.
    pub fn before_us(&self) -> u64 {
        self.header.began.as_ref().map_or(0, |(stamp, _)| stamp.interval_us)
    }

    /// From its first record read to its last, in microseconds of the monotonic clock. The final record covers the
    /// whole run, also where its beginning was not read.
    pub fn duration_us(&self) -> u64 {
        let read_us = self.read_us();
        self.header.stopped.as_ref().map_or(read_us, |(stamp, _)| stamp.interval_us.max(read_us))
    }

    fn read_us(&self) -> u64 {
        self.header.first.map_or(0, |first| self.last_us().saturating_sub(first.mono_us))
    }

    /// The duration without the time between merged runs, in which nothing was counted.
    pub fn recorded_us(&self) -> u64 {
        self.duration_us().saturating_sub(self.header.idle_us)
    }

    pub fn settings(&self) -> &[Setting] {
        self.settings.all()
    }

    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }

    /// The value of a setting at a moment of the monotonic clock, as text; `None` if there is no such setting.
    pub fn setting_at(&self, us: u64, name: &str) -> Option<String> {
        self.setting(name).map(|setting| self.markers.value_at(us, setting))
    }

    /// Marks and changes of settings, oldest first, the latest thousand.
    pub fn markers(&self) -> impl DoubleEndedIterator<Item = &Marker> + ExactSizeIterator {
        self.markers.iter()
    }

    /// Alerts that fired, in the order in which they did, the latest thousand.
    pub fn alerts(&self) -> impl DoubleEndedIterator<Item = &AlertEpisode> + ExactSizeIterator {
        self.alerts.iter()
    }

    /// The moment of the monotonic clock at one of `CLOCK_REALTIME`, by the last record's clocks; both in microseconds.
    pub fn mono_at(&self, realtime_us: u64) -> u64 {
        let (last_realtime_us, last_us) = (self.last_realtime_us(), self.last_us());
        if realtime_us > last_realtime_us {
            last_us.saturating_add(realtime_us - last_realtime_us)
        } else {
            last_us.saturating_sub(last_realtime_us - realtime_us)
        }
    }

    /// `CLOCK_REALTIME` at a moment of the monotonic clock, by the last record's clocks; both in microseconds.
    pub fn realtime_at(&self, us: u64) -> u64 {
        let (realtime_us, last_us) = (self.last_realtime_us(), self.last_us());
        if us > last_us {
            realtime_us.saturating_add(us - last_us)
        } else {
            realtime_us.saturating_sub(last_us - us)
        }
    }

    /// Failed connections that have a record, by cause.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The proxy's series; `None` in a run without one.
    pub fn proxy(&self) -> Option<&MetricSeries<ProxyCounter, ProxyLatency>> {
        self.proxy.series.as_ref()
    }

    /// Connections of the proxy open when its last record was made.
    pub fn proxy_open(&self) -> u64 {
        self.proxy.open
    }

    /// TLS counters of the proxy; `None` without such records.
    pub fn tls(&self) -> Option<&MetricSeries<TlsCounter, TlsLatency>> {
        self.tls.series.as_ref()
    }

    /// The last record of TLS, without latencies.
    pub fn tls_record(&self) -> Option<&TlsRecord> {
        self.tls.record.as_ref()
    }

    /// Usage of TLS parameters, certificates and names.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The certificates that the proxy serves or served.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The proxy's counts and latencies of HTTP over all routes; `None` in a run that is not in HTTP mode.
    pub fn http(&self) -> Option<&MetricSeries<HttpCounter, HttpLatency>> {
        self.http.series.as_ref()
    }

    /// The last record of HTTP, without latencies: statuses, and requests and upstream connections at that moment.
    pub fn http_record(&self) -> Option<&HttpRecord> {
        self.http.record.as_ref()
    }

    /// The gauges of HTTP mode at a moment of the monotonic clock, from the latest record before it; `None` in TCP
    /// mode, and if that record is no longer kept.
    pub fn http_gauges_at(&self, us: u64) -> Option<HttpGauges> {
        if self.counted_log().is_some() {
            return None;
        }
        if us < self.last_us() { self.http_gauges.at(us) } else { self.http_record().map(HttpRecord::gauges) }
    }

    /// The routes that served requests.
    pub fn routes(&self) -> &NamedTable<RouteRecord> {
        &self.routes
    }

    /// The upstreams of the proxy.
    pub fn upstreams(&self) -> &NamedTable<UpstreamRecord> {
        &self.upstreams
    }

    /// Single requests: failed ones, the slowest of each interval, and a sample.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The load's series; `None` in a run without one.
    pub fn load(&self) -> Option<&MetricSeries<LoadCounter, LoadLatency>> {
        self.load.series.as_ref()
    }

    /// The load's last record, without latencies.
    pub fn load_record(&self) -> Option<&LoadRecord> {
        self.load.record.as_ref()
    }

    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The proxy's clients with their totals, those with most bytes first.
    pub fn clients_by_bytes(&self) -> Vec<(&ClientStats, Counters<ClientCounter>)> {
        let mut clients: Vec<_> = self.clients.iter().map(|client| (client, client.totals())).collect();
        let bytes = |totals: &Counters<ClientCounter>| {
            totals[ClientCounter::BytesIn].saturating_add(totals[ClientCounter::BytesOut])
        };
        clients.sort_by(|(a, of_a), (b, of_b)| bytes(of_b).cmp(&bytes(of_a)).then(a.id.cmp(&b.id)));
        clients
    }

    /// What a client used lately, and in how many seconds: `last`, in whole steps of 10 s, or since the run began.
    pub fn recent_use(&self, client: &ClientStats, last: Duration) -> (RecentUse, f64) {
        let now_us = self.proxy().map_or(0, MetricSeries::last_us);
        let from_us = step_before(now_us, last.min(RECENT_MAX));
        let span_us = now_us.saturating_sub(from_us.max(self.began_us()));
        (client.recent.since(from_us), span_us as f64 / 1e6)
    }

    /// Clients whose changes waited for a record at the end of the last interval.
    pub fn clients_deferred(&self) -> u64 {
        self.proxy.clients_deferred
    }

    /// The moment up to which its records say what a client did: the last one, unless a later record may be deferred or
    /// lost. `None` if its only record had no predecessor to compare with.
    pub fn client_known_until_us(&self, client: &ClientStats) -> Option<u64> {
        let now_us = self.proxy().map_or(0, MetricSeries::last_us);
        let is_known = client.history().len() > 0 || client.last_us < now_us;
        is_known.then(|| client.last_us.max(self.clients_recorded_until_us()))
    }

    /// The moment up to which all that clients did has been recorded: a client without a later record did nothing
    /// between its last one and this moment.
    pub fn clients_recorded_until_us(&self) -> u64 {
        if self.proxy.clients_deferred > 0 || self.clients.has_new_losses(self.reading.lost()) {
            return self.clients.recorded_until_us();
        }
        self.proxy().map_or(0, MetricSeries::last_us)
    }

    pub fn client(&self, id: ClientId) -> Option<&ClientStats> {
        self.clients.get(id)
    }

    /// The latest record of the resources that the process used.
    pub fn host(&self) -> Option<&HostRecord> {
        self.hosts.latest()
    }

    /// The latest record of used resources at a moment of the monotonic clock.
    pub fn host_at(&self, us: u64) -> Option<&HostRecord> {
        self.hosts.at(us)
    }

    /// CPU time of the load's threads since the load began to measure, in microseconds.
    pub(crate) fn load_cpu_us(&self) -> u64 {
        self.hosts.load_cpu_us()
    }

    /// CPU of a group of threads over about `span_us` microseconds up to the last record, or over the last interval if
    /// that is longer; `None` before there are two records.
    pub fn cpu(&self, group: CpuGroup, span_us: u64) -> Option<CpuUse> {
        self.cpu_until(u64::MAX, group, span_us)
    }

    /// As [`Self::cpu`], up to a moment of the monotonic clock.
    pub fn cpu_until(&self, until_us: u64, group: CpuGroup, span_us: u64) -> Option<CpuUse> {
        self.hosts.cpu_until(until_us, group, span_us)
    }

    /// Cores that each observed process kept busy over about `span_us` microseconds up to a moment.
    pub fn observed_until(&self, until_us: u64, span_us: u64) -> Vec<(ProcessCpu, f64)> {
        self.hosts.observed_until(until_us, span_us)
    }

    /// What each worker of the proxy did over about `span_us` microseconds up to a moment; empty if that is not recorded.
    pub fn workers_until(&self, until_us: u64, span_us: u64) -> Vec<WorkerActivity> {
        self.hosts.workers_until(until_us, span_us)
    }

    /// The cost of the parts of a handshake on its machine, by its latest calibration.
    pub fn handshake_costs(&self) -> Option<&HandshakeCosts> {
        self.calibration.as_ref().map(|(_, costs)| &**costs)
    }

    /// The age of its latest calibration at its last record.
    pub fn calibration_age(&self) -> Option<Duration> {
        let (stamp, _) = self.calibration.as_ref()?;
        Some(Duration::from_micros(self.last_us().saturating_sub(stamp.mono_us)))
    }

    /// Its experiments, oldest first.
    pub fn experiments(&self) -> impl DoubleEndedIterator<Item = &Experiment> + ExactSizeIterator {
        self.experiments.iter()
    }

    /// Why an experiment has no verdict: it was cut off, by the end of the run or before another one began, or the records
    /// end before it does. `None` if it is over.
    pub fn why_no_verdict(&self, experiment: &Experiment) -> Option<String> {
        let is_latest = self.experiments().next_back().is_some_and(|latest| std::ptr::eq(latest, experiment));
        (!experiment.is_over()).then(|| match self.stopped() {
            None if is_latest => format!("the records end in {}", experiment.progress()),
            _ => UNFINISHED.to_owned(),
        })
    }

    /// The setting that an experiment compares at present; `None` between experiments, and once the run has ended.
    pub fn compared_setting(&self) -> Option<&str> {
        let latest = self.experiments().next_back().filter(|latest| !latest.is_over())?;
        self.stopped().is_none().then_some(&*latest.state.setting)
    }

    /// The losses that the writer counted.
    pub fn health(&self) -> &HealthRecord {
        &self.health
    }

    /// The latest log lines, oldest first.
    pub fn log(&self) -> impl DoubleEndedIterator<Item = &LogLine> + ExactSizeIterator {
        self.log.iter()
    }

    /// The state of reading this run.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }
}
