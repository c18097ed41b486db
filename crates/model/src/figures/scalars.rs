//! Figures that are one number of a run: its counters, and the numbers of its summary.

use std::sync::LazyLock;

use super::{FigureSide, FigureUnit};
use crate::runs::{HttpSummary, JournalSummary, LoadSummary, ObservedProcess, Run, Summary};
use records::metrics::{CpuGroup, HttpCounter, LoadCounter, Metric, ProxyCounter, TlsCounter};
use records::values::LogFigure;

/// A figure that is one number of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// The name without the side's prefix.
    pub(super) name: &'static str,
    source: ScalarSource,
}

/// The source of a value.
#[derive(Clone, Copy, Debug)]
enum ScalarSource {
    Proxy(ProxyCounter),
    Tls(TlsCounter),
    Http(HttpCounter),
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
            ScalarSource::Proxy(_) | ScalarSource::Tls(_) => Proxy,
            ScalarSource::Http(_) => HttpMode,
            ScalarSource::Load(_) => Load,
            ScalarSource::Cpu(_) => FigureSide::Process,
            ScalarSource::Summary { side, .. } => side,
        }
    }

    pub(super) fn unit(&self) -> FigureUnit {
        let of_counter = |is_bytes: bool| if is_bytes { Bytes } else { Count };
        match self.source {
            ScalarSource::Proxy(counter) => of_counter(counter.field().unit == records::metrics::Unit::Bytes),
            ScalarSource::Tls(_) => Count,
            ScalarSource::Http(counter) => of_counter(counter.field().unit == records::metrics::Unit::Bytes),
            ScalarSource::Load(counter) => of_counter(counter.field().unit == records::metrics::Unit::Bytes),
            ScalarSource::Cpu(_) => Seconds,
            ScalarSource::Summary { unit, .. } => unit,
        }
    }

    pub(super) fn definition(&self) -> &'static str {
        match self.source {
            ScalarSource::Proxy(counter) => &counter.field().meaning,
            ScalarSource::Tls(counter) => &counter.field().meaning,
            ScalarSource::Http(counter) => &counter.field().meaning,
            ScalarSource::Load(counter) => &counter.field().meaning,
            ScalarSource::Cpu(group) => &group.field().meaning,
            ScalarSource::Summary { definition, .. } => definition,
        }
    }

    /// Why the log of another terminator does not give it.
    pub(super) fn absent<'r>(&self, run: &'r Run) -> Option<&'r str> {
        match self.source {
            ScalarSource::Proxy(counter) => run.absent(LogFigure::of_counter(counter)?),
            ScalarSource::Summary { side: Journal, .. } if self.name == "lost" => {
                run.absent(LogFigure::LostLines)
            }
            _ => None,
        }
    }

    pub(super) fn value(&self, run: &Run, summary: &Summary) -> Option<f64> {
        match self.source {
            ScalarSource::Proxy(_) if self.absent(run).is_some() => None,
            ScalarSource::Proxy(counter) => run.proxy().map(|series| series.totals()[counter] as f64),
            ScalarSource::Tls(counter) => run.tls().map(|series| series.totals()[counter] as f64),
            ScalarSource::Http(counter) => run.http().map(|series| series.totals()[counter] as f64),
            ScalarSource::Load(counter) => run.load().map(|series| series.totals()[counter] as f64),
            ScalarSource::Cpu(group) => Some(run.host().map_or(0.0, |host| host.cpu[group] as f64 / 1e6)),
            ScalarSource::Summary { value, .. } => value(summary),
        }
    }
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

fn of_http(summary: &Summary, value: fn(&HttpSummary) -> u64) -> Option<f64> {
    summary.proxy.as_ref()?.http.as_ref().map(|http| value(http) as f64)
}

fn of_load(summary: &Summary, value: fn(&LoadSummary) -> f64) -> Option<f64> {
    summary.load.as_ref().map(value)
}

fn of_journal(summary: &Summary, value: fn(&JournalSummary) -> u64) -> Option<f64> {
    summary.journal.as_ref().map(|journal| value(journal) as f64)
}

fn of_observed(summary: &Summary, value: fn(&ObservedProcess) -> f64) -> Option<f64> {
    summary.observed.as_ref().map(value)
}

/// What is missing of records and of the lines of a log; `None` if the log does not show what it lost.
fn lost(summary: &Summary) -> Option<f64> {
    let of_log = match summary.log.as_ref().and_then(|log| log.lines.as_ref()) {
        Some(lines) => lines.lost? as f64,
        None => 0.0,
    };
    of_journal(summary, |journal| journal.lost).map(|records| records + of_log)
}

/// The number of answers with a status of this class.
fn answers(summary: &Summary, class: u16) -> Option<f64> {
    Some(summary.load.as_ref()?.answers(class) as f64)
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

use FigureSide::{Http as HttpMode, Journal, Load, Observed as Observing, Proxy, Run as Whole};
use FigureUnit::{Bytes, Count, PerSecond, Percent, Ratio, Seconds};

/// Every scalar: the counters that are declared as figures, and the numbers of summaries.
pub(super) static SCALARS: LazyLock<Vec<Scalar>> = LazyLock::new(|| {
    let proxy = declared(ScalarSource::Proxy).chain(declared(ScalarSource::Tls));
    let counters = proxy.chain(declared(ScalarSource::Load)).chain(declared(ScalarSource::Http));
    counters.chain(declared(ScalarSource::Cpu)).chain(SUMMARIES).collect()
});

/// The members of a family that are declared as figures.
fn declared<M: Metric>(source: fn(M) -> ScalarSource) -> impl Iterator<Item = Scalar> {
    let figures =
        M::ALL.iter().map(move |&member| Scalar { name: member.names().figure, source: source(member) });
    figures.filter(|figure| !figure.name.is_empty())
}

// One line per figure.
#[rustfmt::skip]
const SUMMARIES: [Scalar; 33] = [
    summary(Proxy, "connections.open", Count, "Connections accepted and not yet closed.", |s| s.proxy.as_ref().map(|proxy| proxy.connections.open as f64)),
    summary(Load, "seconds", Seconds, "The time that the load's rates are divided by. Open loop: the schedule without warm-up and pauses; longer if the last answer came later after the schedule's end than the fastest answer took. Closed loop: until the end of the last request.", |s| of_load(s, |load| load.spans_s.measured)),
    summary(Load, "rate.achieved", PerSecond, "Requests answered whole, whatever their status, over `seconds`.", |s| of_load(s, |load| load.rate_per_s.achieved)),
    summary(Load, "rate.wanted", PerSecond, "Requests that fell due, over the schedule; open loop only.", |s| s.load.as_ref()?.rate_per_s.wanted),
    summary(Load, "requests.answered", Count, "Requests answered whole, whatever their status; timeouts, resets and refusals are not answers.", |s| of_load(s, |load| load.requests.answered as f64)),
    summary(Load, "errors", Count, "Requests that failed, were never sent, or were unfinished at the end.", |s| of_load(s, |load| load_errors(load) as f64)),
    Scalar { name: "resumptions.observed", source: ScalarSource::Load(LoadCounter::HandshakesResumed) },
    summary(Load, "early_data.rejected", Count, "Connections whose early data the server rejected; the request was sent again.", |s| of_load(s, |load| load.early_data.rejected as f64)),
    summary(Load, "generator.busy", Ratio, "CPU time of the generator's threads over what they could have used in `seconds`; above 0.9 the latencies measure the generator.", |s| of_load(s, |load| load.generator.busy)),
    summary(Load, "status.2xx", Count, "Answers with a status of 200 to 299.", |s| answers(s, 2)),
    summary(Load, "status.3xx", Count, "Answers with a status of 300 to 399.", |s| answers(s, 3)),
    summary(Load, "status.4xx", Count, "Answers with a status of 400 to 499.", |s| answers(s, 4)),
    summary(Load, "status.5xx", Count, "Answers with a status of 500 or above.", |s| answers(s, 5)),
    summary(HttpMode, "http.open", Count, "Requests in flight at the end.", |s| of_http(s, |http| http.now.requests)),
    summary(HttpMode, "http.queued", Count, "Requests that wait for an upstream connection at the end.", |s| of_http(s, |http| http.now.queued)),
    summary(HttpMode, "http.upstream.open", Count, "Upstream connections at the end, idle ones included.", |s| of_http(s, |http| http.now.upstream_open)),
    summary(HttpMode, "http.upstream.idle", Count, "Idle upstream connections at the end.", |s| of_http(s, |http| http.now.upstream_idle)),
    summary(HttpMode, "http.failed", Count, "Requests that failed in the proxy, whatever status was sent; each also counts under one cause.", |s| of_http(s, |http| http.requests.failed)),
    summary(Whole, "duration", Seconds, "From the run's first record to its last.", |s| Some(s.duration_s)),
    summary(Whole, "ended", Count, "1 if the run's last record was read; 0 while the run goes on, and if it was killed or not recorded to its end.", |s| Some(f64::from(u8::from(s.ended)))),
    summary(Whole, "errors", Count, "The sum of `proxy.connections.failed`, `proxy.handshakes.failed` and `load.errors`.", |s| Some(errors(s) as f64)),
    summary(Whole, "clients", Count, "Clients that have a record.", |s| Some(s.clients.len() as f64)),
    summary(Journal, "lost", Count, "Records missing after the first one read, and lines of an observed log that did not arrive.", lost),
    summary(Journal, "merged", Count, "Intervals merged into a later record because the journal did not accept theirs in time.", |s| of_journal(s, |journal| journal.merged)),
    summary(Journal, "suppressed", Count, "Messages that journald's rate limit dropped.", |s| of_journal(s, |journal| journal.suppressed)),
    summary(Journal, "malformed", Count, "Journal entries that are marked as records and cannot be decoded.", |s| of_journal(s, |journal| journal.malformed)),
    summary(Observing, "observed.cpu_s", Seconds, "CPU time of the observed process and its descendants since observing began.", |s| of_observed(s, |observed| observed.cpu_s)),
    summary(Observing, "observed.cpu_percent", Percent, "The same CPU time in percent of the run's duration: 100 is one core.", |s| of_observed(s, |observed| observed.cpu_percent)),
    summary(Observing, "observed.threads_max", Count, "The most threads in one sample.", |s| of_observed(s, |observed| observed.threads_max as f64)),
    summary(Observing, "observed.descriptors", Count, "Open descriptors at the last reading.", |s| of_observed(s, |observed| observed.descriptors as f64)),
    summary(Observing, "observed.listeners", Count, "Listening TCP sockets.", |s| of_observed(s, |observed| observed.listeners as f64)),
    summary(Observing, "observed.backlog", Count, "Connections that waited there to be accepted.", |s| of_observed(s, |observed| observed.backlog as f64)),
    summary(Observing, "observed.memory_max_bytes", Bytes, "The most resident memory in one sample.", |s| of_observed(s, |observed| observed.memory_max_bytes as f64)),
];
