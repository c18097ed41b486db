//! Figures that are one number of a run: its counters, and the numbers of its summary.

use super::{FigureSide, FigureUnit};
use crate::metrics::{CpuGroup, LoadCounter, Metric, ProxyCounter};
use crate::model::{JournalSummary, LoadSummary, Observed, Run, Summary};
use crate::record::event_counts::LoadEvent;

/// A figure that is one number of a run.
#[derive(Debug)]
pub struct Scalar {
    /// The name without the side's prefix.
    pub(super) name: &'static str,
    source: ScalarSource,
}

/// Where the value comes from.
#[derive(Debug)]
enum ScalarSource {
    Proxy(ProxyCounter),
    Load(LoadCounter),
    Cpu(CpuGroup),
    Summary {
        side: FigureSide,
        unit: FigureUnit,
        definition: &'static str,
        value: fn(&Summary) -> Option<f64>,
    },
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        (self.side(), self.name) == (other.side(), other.name)
    }
}

impl Scalar {
    pub(super) fn side(&self) -> FigureSide {
        match self.source {
            ScalarSource::Proxy(_) => Proxy,
            ScalarSource::Load(_) => Load,
            ScalarSource::Cpu(_) => FigureSide::Process,
            ScalarSource::Summary { side, .. } => side,
        }
    }

    pub(super) fn unit(&self) -> FigureUnit {
        let of_counter = |is_bytes: bool| if is_bytes { Bytes } else { Count };
        match self.source {
            ScalarSource::Proxy(counter) => of_counter(counter.field().unit == crate::Unit::Bytes),
            ScalarSource::Load(counter) => of_counter(counter.field().unit == crate::Unit::Bytes),
            ScalarSource::Cpu(_) => Seconds,
            ScalarSource::Summary { unit, .. } => unit,
        }
    }

    pub(super) fn definition(&self) -> &'static str {
        match self.source {
            ScalarSource::Proxy(counter) => &counter.field().meaning,
            ScalarSource::Load(counter) => &counter.field().meaning,
            ScalarSource::Cpu(group) => &group.field().meaning,
            ScalarSource::Summary { definition, .. } => definition,
        }
    }

    pub(super) fn value(&self, run: &Run, summary: &Summary) -> Option<f64> {
        match self.source {
            ScalarSource::Proxy(counter) => run.proxy().map(|series| series.totals()[counter] as f64),
            ScalarSource::Load(counter) => run.load().map(|series| series.totals()[counter] as f64),
            ScalarSource::Cpu(group) => Some(run.host().map_or(0.0, |host| host.cpu[group] as f64 / 1e6)),
            ScalarSource::Summary { value, .. } => value(summary),
        }
    }
}

const fn proxy(name: &'static str, counter: ProxyCounter) -> Scalar {
    Scalar { name, source: ScalarSource::Proxy(counter) }
}

const fn load(name: &'static str, counter: LoadCounter) -> Scalar {
    Scalar { name, source: ScalarSource::Load(counter) }
}

const fn cpu(name: &'static str, group: CpuGroup) -> Scalar {
    Scalar { name, source: ScalarSource::Cpu(group) }
}

const fn summary(
    side: FigureSide,
    name: &'static str,
    unit: FigureUnit,
    definition: &'static str,
    value: fn(&Summary) -> Option<f64>,
) -> Scalar {
    Scalar { name, source: ScalarSource::Summary { side, unit, definition, value } }
}

fn of_load(summary: &Summary, value: fn(&LoadSummary) -> f64) -> Option<f64> {
    summary.load.as_ref().map(value)
}

fn of_journal(summary: &Summary, value: fn(&JournalSummary) -> u64) -> Option<f64> {
    summary.journal.as_ref().map(|journal| value(journal) as f64)
}

fn of_observed(summary: &Summary, value: fn(&Observed) -> f64) -> Option<f64> {
    summary.observed.as_ref().map(value)
}

/// The number of answers with a status of this class.
fn answers(summary: &Summary, class: u16) -> Option<f64> {
    let is_of_class = |event| matches!(event, LoadEvent::Status(code) if code / 100 == class);
    let events = summary.load.as_ref()?.events.iter().filter(|entry| is_of_class(entry.event));
    Some(events.fold(0, |sum: u64, entry| sum.saturating_add(entry.count)) as f64)
}

/// The number of requests that failed, were never sent, or had no whole answer.
fn load_errors(load: &LoadSummary) -> u64 {
    let requests = &load.requests;
    [requests.failed, requests.never_sent, requests.unfinished].into_iter().fold(0, u64::saturating_add)
}

fn errors(summary: &Summary) -> u64 {
    let of_proxy = summary
        .proxy
        .as_ref()
        .map_or(0, |proxy| proxy.connections.failed.saturating_add(proxy.handshakes.failed));
    of_proxy.saturating_add(summary.load.as_ref().map_or(0, load_errors))
}

use FigureSide::{Journal, Load, Observed as Observing, Proxy, Run as Whole};
use FigureUnit::{Bytes, Count, PerSecond, Percent, Ratio, Seconds};

// One line per figure.
#[rustfmt::skip]
pub(super) static SCALARS: &[Scalar] = &[
    proxy("connections.accepted", ProxyCounter::Accepted),
    summary(Proxy, "connections.open", Count, "Connections accepted and not yet closed.", |s| s.proxy.as_ref().map(|proxy| proxy.connections.open as f64)),
    proxy("connections.failed", ProxyCounter::Failed),
    proxy("handshakes.full", ProxyCounter::HandshakesFull),
    proxy("handshakes.resumed", ProxyCounter::HandshakesResumed),
    proxy("handshakes.failed", ProxyCounter::HandshakesFailed),
    proxy("bytes.in", ProxyCounter::BytesIn),
    proxy("bytes.out", ProxyCounter::BytesOut),
    summary(Load, "seconds", Seconds, "The time that the load's rates are divided by. Open loop: the schedule without warm-up and pauses; longer if the last answer came later after the schedule's end than the fastest answer took. Closed loop: until the end of the last request.", |s| of_load(s, |load| load.spans_s.measured)),
    summary(Load, "rate.achieved", PerSecond, "Requests answered whole, whatever their status, over `seconds`.", |s| of_load(s, |load| load.rate_per_s.achieved)),
    summary(Load, "rate.wanted", PerSecond, "Requests that fell due, over the schedule; open loop only.", |s| s.load.as_ref()?.rate_per_s.wanted),
    load("requests.scheduled", LoadCounter::Scheduled),
    load("requests.sent", LoadCounter::Sent),
    summary(Load, "requests.answered", Count, "Requests answered whole, whatever their status; timeouts, resets and refusals are not answers.", |s| of_load(s, |load| load.requests.answered as f64)),
    load("requests.ok", LoadCounter::Ok),
    load("requests.failed", LoadCounter::Failed),
    load("requests.never_sent", LoadCounter::NeverSent),
    load("requests.throttled", LoadCounter::Throttled),
    load("requests.unfinished", LoadCounter::Unfinished),
    load("requests.late", LoadCounter::Late),
    load("requests.warmup", LoadCounter::Warmup),
    load("requests.reused", LoadCounter::Reused),
    load("requests.retried", LoadCounter::Retried),
    summary(Load, "errors", Count, "Requests that failed, were never sent, or were unfinished at the end.", |s| of_load(s, |load| load_errors(load) as f64)),
    load("connections", LoadCounter::Opened),
    load("handshakes.full", LoadCounter::HandshakesFull),
    load("handshakes.resumed", LoadCounter::HandshakesResumed),
    load("handshakes.failed", LoadCounter::HandshakesFailed),
    load("resumptions.wanted", LoadCounter::ResumptionsWanted),
    load("resumptions.offered", LoadCounter::ResumptionsOffered),
    load("resumptions.observed", LoadCounter::HandshakesResumed),
    load("early_data.wanted", LoadCounter::EarlyWanted),
    load("early_data.offered", LoadCounter::EarlyOffered),
    load("early_data.accepted", LoadCounter::EarlyAccepted),
    summary(Load, "early_data.rejected", Count, "Connections whose early data the server rejected; the request was sent again.", |s| of_load(s, |load| load.early_data.rejected as f64)),
    load("bytes.in", LoadCounter::BytesIn),
    load("bytes.out", LoadCounter::BytesOut),
    load("body.in", LoadCounter::BodyIn),
    load("body.out", LoadCounter::BodyOut),
    load("head.out", LoadCounter::HeadOut),
    load("head.plain", LoadCounter::HeadPlain),
    summary(Load, "generator.busy", Ratio, "CPU time of the generator's threads over what they could have used in `seconds`; above 0.9 the latencies measure the generator.", |s| of_load(s, |load| load.generator.busy)),
    load("errors.body", LoadCounter::FailedBody),
    load("errors.connect", LoadCounter::FailedConnect),
    load("errors.protocol", LoadCounter::FailedProtocol),
    load("errors.reset", LoadCounter::FailedReset),
    load("errors.short", LoadCounter::FailedShort),
    load("errors.status", LoadCounter::FailedStatus),
    load("errors.timeout", LoadCounter::FailedTimeout),
    load("errors.tls", LoadCounter::FailedTls),
    summary(Load, "status.2xx", Count, "Answers with a status of 200 to 299.", |s| answers(s, 2)),
    summary(Load, "status.3xx", Count, "Answers with a status of 300 to 399.", |s| answers(s, 3)),
    summary(Load, "status.4xx", Count, "Answers with a status of 400 to 499.", |s| answers(s, 4)),
    summary(Load, "status.5xx", Count, "Answers with a status of 500 to 599.", |s| answers(s, 5)),
    summary(Whole, "duration", Seconds, "From the run's first record to its last.", |s| Some(s.duration_s)),
    summary(Whole, "ended", Count, "1 if the run's last record was read; 0 while the run goes on, and if it was killed or not recorded to its end.", |s| Some(f64::from(u8::from(s.ended)))),
    summary(Whole, "errors", Count, "The sum of `proxy.connections.failed`, `proxy.handshakes.failed` and `load.errors`.", |s| Some(errors(s) as f64)),
    summary(Whole, "clients", Count, "Clients that have a record.", |s| Some(s.clients.len() as f64)),
    summary(Journal, "lost", Count, "Records missing after the first one read.", |s| of_journal(s, |journal| journal.lost)),
    summary(Journal, "merged", Count, "Intervals merged into a later record because the journal did not accept theirs in time.", |s| of_journal(s, |journal| journal.merged)),
    summary(Journal, "suppressed", Count, "Messages that journald's rate limit dropped.", |s| of_journal(s, |journal| journal.suppressed)),
    summary(Journal, "malformed", Count, "Journal entries that are marked as records and cannot be decoded.", |s| of_journal(s, |journal| journal.malformed)),
    cpu("cpu.dashboard", CpuGroup::Dashboard),
    cpu("cpu.journal", CpuGroup::Journal),
    cpu("cpu.load", CpuGroup::Load),
    cpu("cpu.proxy", CpuGroup::Proxy),
    cpu("cpu.upstream", CpuGroup::Upstream),
    summary(Observing, "observed.cpu_s", Seconds, "CPU time of the observed process and its descendants since observing began.", |s| of_observed(s, |observed| observed.cpu_s)),
    summary(Observing, "observed.cpu_percent", Percent, "The same CPU time in percent of the run's duration: 100 is one core.", |s| of_observed(s, |observed| observed.cpu_percent)),
    summary(Observing, "observed.threads_max", Count, "The most threads in one sample.", |s| of_observed(s, |observed| observed.threads_max as f64)),
    summary(Observing, "observed.memory_max_bytes", Bytes, "The most resident memory in one sample.", |s| of_observed(s, |observed| observed.memory_max_bytes as f64)),
];
