//! Figures that are one number of a run: its counters, and what follows from them and from its records.

use std::sync::LazyLock;

use super::load::{self, ANSWERED, MeasuredSeconds, RequestCounts};
use super::{FigureSide, FigureUnit, JournalCounts};
use crate::runs::{MetricSeries, Run};
use records::kinds::{HostRecord, HttpRecord};
use records::metrics::{
    Counters, CpuGroup, HttpCounter, LoadCounter, Metric, ProxyCounter, RequestFailure, TlsCounter,
};
use records::values::LogFigure;

/// A figure that is one number of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// The name without the side's prefix.
    pub(super) name: &'static str,
    source: ScalarSource,
}

/// What a figure is computed from.
struct ScalarInput<'a> {
    run: &'a Run,
    journal: Option<JournalCounts>,
}

#[derive(Clone, Copy, Debug)]
enum ScalarSource {
    Proxy(ProxyCounter),
    Tls(TlsCounter),
    Http(HttpCounter),
    Load(LoadCounter),
    Cpu(CpuGroup),
    Computed {
        side: FigureSide,
        unit: FigureUnit,
        definition: &'static str,
        value: fn(&ScalarInput<'_>) -> Option<f64>,
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
            ScalarSource::Computed { side, .. } => side,
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
            ScalarSource::Computed { unit, .. } => unit,
        }
    }

    pub(super) fn definition(&self) -> &'static str {
        match self.source {
            ScalarSource::Proxy(counter) => &counter.field().meaning,
            ScalarSource::Tls(counter) => &counter.field().meaning,
            ScalarSource::Http(counter) => &counter.field().meaning,
            ScalarSource::Load(counter) => &counter.field().meaning,
            ScalarSource::Cpu(group) => &group.field().meaning,
            ScalarSource::Computed { definition, .. } => definition,
        }
    }

    /// Why the log of another terminator does not give it.
    pub(super) fn absent<'r>(&self, run: &'r Run) -> Option<&'r str> {
        match self.source {
            ScalarSource::Proxy(counter) => run.absent(LogFigure::of_counter(counter)?),
            ScalarSource::Computed { side: Journal, .. } if self.name == "lost" => {
                run.absent(LogFigure::LostLines)
            }
            _ => None,
        }
    }

    pub(super) fn value(&self, run: &Run, journal: Option<JournalCounts>) -> Option<f64> {
        match self.source {
            ScalarSource::Proxy(_) if self.absent(run).is_some() => None,
            ScalarSource::Proxy(counter) => run.proxy().map(|series| series.totals()[counter] as f64),
            ScalarSource::Tls(counter) => run.tls().map(|series| series.totals()[counter] as f64),
            ScalarSource::Http(counter) => run.http().map(|series| series.totals()[counter] as f64),
            ScalarSource::Load(counter) => run.load().map(|series| series.totals()[counter] as f64),
            ScalarSource::Cpu(group) => Some(run.host().map_or(0.0, |host| host.cpu[group] as f64 / 1e6)),
            ScalarSource::Computed { value, .. } => value(&ScalarInput { run, journal }),
        }
    }
}

const fn computed(
    side: FigureSide,
    name: &'static str,
    unit: FigureUnit,
    definition: &'static str,
    value: fn(&ScalarInput<'_>) -> Option<f64>,
) -> Scalar {
    Scalar { name, source: ScalarSource::Computed { side, unit, definition, value } }
}

/// A value computed from the load's totals and the last record with its measured times.
fn of_load(
    of: &ScalarInput<'_>,
    value: fn(&Run, &Counters<LoadCounter>, MeasuredSeconds) -> f64,
) -> Option<f64> {
    let series = of.run.load()?;
    Some(value(of.run, series.totals(), MeasuredSeconds::of(of.run.load_record(), series.whole())))
}

fn of_http(of: &ScalarInput<'_>, value: fn(&HttpRecord) -> u64) -> Option<f64> {
    of.run.proxy()?;
    of.run.http_record().map(|http| value(http) as f64)
}

fn of_journal(of: &ScalarInput<'_>, value: fn(&Run, JournalCounts) -> u64) -> Option<f64> {
    of.journal.map(|journal| value(of.run, journal) as f64)
}

/// The last record of the host, if it observes a process.
pub(super) fn observed(run: &Run) -> Option<&HostRecord> {
    run.host().filter(|host| host.observed_pid > 0)
}

/// CPU time of observed processes in percent of the run's duration: 100 is one core.
pub(crate) fn cpu_percent(run: &Run, cpu_us: u64) -> f64 {
    let run_us = run.recorded_us();
    if run_us > 0 { cpu_us as f64 / run_us as f64 * 100.0 } else { 0.0 }
}

/// What is missing of records, of packets and of the lines of a log; `None` if the log does not show what it lost.
fn lost(of: &ScalarInput<'_>) -> Option<f64> {
    let is_log = of.run.counted_log().is_some();
    let lines = of
        .run
        .proxy()
        .map(MetricSeries::totals)
        .filter(|totals| is_log && totals[ProxyCounter::LinesRead] > 0);
    if lines.is_some() && of.run.absent(LogFigure::LostLines).is_some() {
        return None;
    }
    let of_log = lines.map_or(0, |totals| totals[ProxyCounter::LinesLost]);
    let of_packets = of.run.proxy().map_or(0, |proxy| proxy.totals()[ProxyCounter::PacketsLost]);
    of_journal(of, |run, _| run.reading().lost()).map(|records| records + (of_log + of_packets) as f64)
}

/// The number of answers with a status of this class.
fn answers(of: &ScalarInput<'_>, class: u16) -> Option<f64> {
    of.run.load()?;
    Some(of.run.load_record().map_or(0, |record| load::answers(record, class)) as f64)
}

/// Causes of failed connections after the handshake. An idle connection that is closed is none.
const CUT: [ProxyCounter; 5] = [
    ProxyCounter::UpstreamConnectsFailed,
    ProxyCounter::UpstreamBroken,
    ProxyCounter::ClientBroken,
    ProxyCounter::SendTimeouts,
    ProxyCounter::PendingCuts,
];

/// Requests that failed in the proxy, whatever the cause.
pub(super) fn failed_requests(http: &Counters<HttpCounter>) -> u64 {
    http.sum(&RequestFailure::ALL.map(|(_, counter)| counter))
}

/// What the proxy failed to serve after the handshake: in HTTP mode requests, in TCP mode connections.
pub fn unserved(run: &Run) -> u64 {
    // In HTTP mode a failed connection's requests are counted, not the connection.
    let cut = || run.proxy().map_or(0, |series| series.totals().sum(&CUT));
    run.http().map_or_else(cut, |http| failed_requests(http.totals()))
}

fn errors(of: &ScalarInput<'_>) -> f64 {
    let handshakes = of.run.proxy().map_or(0, |series| series.totals()[ProxyCounter::HandshakesFailed]);
    let of_load = of.run.load().map_or(0, |series| RequestCounts::of(series.totals()).errors());
    handshakes.saturating_add(unserved(of.run)).saturating_add(of_load) as f64
}

use FigureSide::{Http as HttpMode, Journal, Load, Observed as Observing, Proxy, Run as Whole};
use FigureUnit::{Bytes, Count, PerSecond, Percent, Ratio, Seconds};

/// Every scalar: the counters that are declared as figures, and those that are computed.
pub(super) static SCALARS: LazyLock<Vec<Scalar>> = LazyLock::new(|| {
    let proxy = declared(ScalarSource::Proxy).chain(declared(ScalarSource::Tls));
    let counters = proxy.chain(declared(ScalarSource::Load)).chain(declared(ScalarSource::Http));
    counters.chain(declared(ScalarSource::Cpu)).chain(COMPUTED).collect()
});

/// The members of a family that are declared as figures.
fn declared<M: Metric>(source: fn(M) -> ScalarSource) -> impl Iterator<Item = Scalar> {
    let figures =
        M::ALL.iter().map(move |&member| Scalar { name: member.names().figure, source: source(member) });
    figures.filter(|figure| !figure.name.is_empty())
}

// One line per figure.
#[rustfmt::skip]
const COMPUTED: [Scalar; 36] = [
    computed(Proxy, "connections.open", Count, "Connections accepted and not yet closed.", |of| of.run.proxy().map(|_| of.run.proxy_open() as f64)),
    computed(Proxy, "certificates.days_left", Count, "Days to the last one of the served certificate that ends first; negative once it has ended.", |of| {
        let now = of.run.last_realtime_us() / 1_000_000;
        of.run.certificates().served().map(|record| record.days_left(now)).min().map(|days| days as f64)
    }),
    computed(Load, "seconds", Seconds, "The time that the load's rates are divided by. Open loop: the schedule without warm-up and pauses; longer if the last answer came later after the schedule's end than the server took for 99 % of the answers (`service.p99`). Closed loop: until the end of the last request.", |of| of_load(of, |_, _, spans| spans.measured)),
    computed(Load, "rate.achieved", PerSecond, "Requests answered whole, whatever their status, over `seconds`.", |of| of_load(of, |_, totals, spans| load::rates(&RequestCounts::of(totals), spans).achieved)),
    computed(Load, "rate.wanted", PerSecond, "Requests that fell due, over the schedule; open loop only.", |of| {
        let series = of.run.load()?;
        load::rates(&RequestCounts::of(series.totals()), MeasuredSeconds::of(of.run.load_record(), series.whole())).wanted
    }),
    computed(Load, "requests.answered", Count, "Requests answered whole, whatever their status; timeouts, resets and refusals are not answers.", |of| of_load(of, |_, totals, _| totals.sum(&ANSWERED) as f64)),
    computed(Load, "errors", Count, "Requests that failed, were never sent, or were unfinished at the end.", |of| of_load(of, |_, totals, _| RequestCounts::of(totals).errors() as f64)),
    Scalar { name: "resumptions.observed", source: ScalarSource::Load(LoadCounter::HandshakesResumed) },
    computed(Load, "early_data.rejected", Count, "Connections whose early data the server rejected; the request was sent again.", |of| of_load(of, |_, totals, _| load::early_data(totals).rejected as f64)),
    computed(Load, "generator.busy", Ratio, "CPU time of the generator's threads over what they could have used in `seconds`, at most 1; above 0.9 the latencies measure the generator.", |of| of_load(of, |run, _, spans| load::generator_busy(run, spans))),
    computed(Load, "status.2xx", Count, "Answers with a status of 200 to 299.", |of| answers(of, 2)),
    computed(Load, "status.3xx", Count, "Answers with a status of 300 to 399.", |of| answers(of, 3)),
    computed(Load, "status.4xx", Count, "Answers with a status of 400 to 499.", |of| answers(of, 4)),
    computed(Load, "status.5xx", Count, "Answers with a status of 500 or above.", |of| answers(of, 5)),
    computed(HttpMode, "http.open", Count, "Requests in flight at the end.", |of| of_http(of, |http| http.requests)),
    computed(HttpMode, "http.queued", Count, "Requests that wait for an upstream connection at the end.", |of| of_http(of, |http| http.queued)),
    computed(HttpMode, "http.upstream.open", Count, "Upstream connections at the end, idle ones included.", |of| of_http(of, |http| http.upstream_open)),
    computed(HttpMode, "http.upstream.idle", Count, "Idle upstream connections at the end.", |of| of_http(of, |http| http.upstream_idle)),
    computed(HttpMode, "http.failed", Count, "Requests that failed in the proxy, whatever status was sent; each also counts under one cause.", |of| of.run.http().map(|series| failed_requests(series.totals()) as f64)),
    computed(Whole, "duration", Seconds, "From the run's first record to its last.", |of| Some(of.run.duration_us() as f64 / 1e6)),
    computed(Whole, "ended", Count, "1 if the run's last record was read; 0 while the run goes on, and if it was killed or not recorded to its end.", |of| Some(f64::from(u8::from(of.run.stopped().is_some())))),
    computed(Whole, "errors", Count, "Failures, each once: `proxy.handshakes.failed`; in HTTP mode `http.failed`, in TCP mode connections that reached no upstream, broke, or were cut with bytes waiting; and `load.errors`, the same from the side of the load. Passed connections of HTTP mode are not among them.", |of| Some(errors(of))),
    computed(Whole, "clients", Count, "Clients that have a record.", |of| Some(of.run.clients().iter().count() as f64)),
    computed(Journal, "lost", Count, "Records missing after the first one read, and lines of an observed log that did not arrive.", lost),
    computed(Journal, "merged", Count, "Intervals merged into a later record because the journal did not accept theirs in time.", |of| of_journal(of, |run, _| run.health().merged_total)),
    computed(Journal, "suppressed", Count, "Messages that journald's rate limit dropped.", |of| of_journal(of, |run, _| run.health().suppressed_total.max(run.reading().suppressed()))),
    computed(Journal, "upload.waiting", Count, "Records that wait for a receiver of `--upload` that fails, or catches up.", |of| of_journal(of, |run, _| run.health().upload_waiting)),
    computed(Journal, "upload.lost", Count, "Records that left the archives before a receiver of `--upload` had confirmed them, or were too large for it.", |of| of_journal(of, |run, _| run.health().upload_lost_total)),
    computed(Journal, "malformed", Count, "Journal entries that are marked as records and cannot be decoded.", |of| of_journal(of, |_, journal| journal.malformed)),
    computed(Observing, "observed.cpu_s", Seconds, "CPU time of the observed process and its descendants since observing began.", |of| observed(of.run).map(|host| host.observed_cpu_us as f64 / 1e6)),
    computed(Observing, "observed.cpu_percent", Percent, "The same CPU time in percent of the run's duration: 100 is one core.", |of| observed(of.run).map(|host| cpu_percent(of.run, host.observed_cpu_us))),
    computed(Observing, "observed.threads_max", Count, "The most threads in one sample.", |of| observed(of.run).map(|host| host.observed_threads_max as f64)),
    computed(Observing, "observed.descriptors", Count, "Open descriptors at the last reading.", |of| observed(of.run).map(|host| host.observed_descriptors as f64)),
    computed(Observing, "observed.listeners", Count, "Listening TCP sockets.", |of| observed(of.run).map(|host| host.observed_listeners as f64)),
    computed(Observing, "observed.backlog", Count, "Connections that waited there to be accepted.", |of| observed(of.run).map(|host| host.observed_backlog as f64)),
    computed(Observing, "observed.memory_max_bytes", Bytes, "The most resident memory in one sample.", |of| observed(of.run).map(|host| host.observed_memory_max_bytes as f64)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::testing::{RunBuilder, add};

    #[test]
    fn each_failure_is_one_error() {
        let count = |failed_requests: Option<u64>| {
            let mut recorder = RunBuilder::begun(&[]);
            recorder.http = failed_requests.map(|_| HttpRecord::default());
            recorder.seconds(1, |recorder| {
                let failed =
                    [ProxyCounter::HandshakesFailed, ProxyCounter::Failed, ProxyCounter::FailedAlert];
                add(&mut recorder.proxy.counters, &failed.map(|counter| (counter, 3)));
                add(&mut recorder.proxy.counters, &[(ProxyCounter::ClientBroken, 2)]);
                if let Some((http, n)) = recorder.http.as_mut().zip(failed_requests) {
                    add(&mut http.counters, &[(HttpCounter::FailedConnect, n)]);
                }
            });
            errors(&ScalarInput { run: recorder.run(), journal: None }) as u64
        };
        assert_eq!([count(None), count(Some(20))], [5, 23]);
    }
}
