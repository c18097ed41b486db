//! What the screen shows of a run at one moment, computed from the model.
//!
//! The view only lays out and formats it. A frozen view keeps its view model while the model changes.

pub(crate) mod alerts;
pub(crate) mod classes;
pub(crate) mod health;
pub(crate) mod load;
pub(crate) mod mark_comparison;
pub(crate) mod past;
pub(crate) mod proxy;
pub(crate) mod span;

use crate::panes::findings::model::OpenFindings;
use crate::panes::handshakes::model::{AbsentHandshakeFigures, Handshakes};
use crate::panes::http::model::HttpFigures;
use crate::view_model::alerts::{FiringAlert, LatencyLimit};
use crate::view_model::classes::LatencyRow;
use crate::view_model::health::{Health, Warning};
use crate::view_model::load::LoadFigures;
use crate::view_model::proxy::ProxyFigures;
use crate::view_model::span::{NOW_US, Span, SpanWindows};
use model::alerts::UndersampledAlert;
use model::insight::{self, Expiry};
use model::runs::{LogLine, MetricSeries, Model, Run, WorkerActivity};
use records::kinds::{HostRecord, RunRecord};
use records::metrics::{Counters, CpuGroup, LatencyClass, Metric, ProxyCounter, TlsCounter};
use records::text::quantity::counted;
use records::values::ProcessCpu;

/// Log lines that are taken: more than any screen shows.
const LOG_LINES_MAX: usize = 200;
/// Of these, lines about connections.
pub(crate) const LOG_CONNECTIONS_MAX: usize = 100;
/// Intervals whose length is compared to find the usual one.
const INTERVALS_COMPARED: usize = 60;
/// What lengths of intervals are rounded to, in microseconds, if they are not shorter than any tlsdash has.
const TICK_US: u64 = 10_000;
/// What lengths of long intervals are rounded to, and the length from which an interval is long, in microseconds: a
/// late tick shortens the next interval.
const LONG_TICK_US: u64 = 50_000;
const LONG_US: u64 = 500_000;
/// The shortest interval that tlsdash offers, in microseconds.
const INTERVAL_MIN_US: u64 = 100_000;
/// A run at one moment.
#[derive(Clone, Debug)]
pub(crate) struct ViewModel {
    /// Where the run listens and forwards to, or what its load is aimed at; empty if its beginning was not read.
    pub(crate) target: String,
    /// Certificate type and number of workers; empty in a run without a proxy.
    pub(crate) setup: String,
    /// Whole days to the end of the certificate that ends first; `None` if no setting says.
    pub(crate) certificate_expiry: Option<Expiry>,
    /// First digits of the run's id.
    pub(crate) run: String,
    /// How long it has run, in microseconds; also before what was recorded of it.
    pub(crate) duration_us: u64,
    /// Time between its records, in microseconds; 0 while unknown.
    pub(crate) interval_us: u64,
    /// True once it has ended in order.
    pub(crate) ended: bool,
    /// Over which time the rates and latencies are taken.
    pub(crate) span: Span,
    /// Latencies of every class that the run has.
    pub(crate) latencies: Vec<LatencyRow>,
    /// What the latencies are compared with, such as `mark 1`; `None` without a mark or change of a setting.
    pub(crate) against: Option<String>,
    pub(crate) proxy: Option<ProxyFigures>,
    /// HTTP; `None` in a run that is not in HTTP mode.
    pub(crate) http: Option<HttpFigures>,
    pub(crate) load: Option<LoadFigures>,
    /// Handshakes, by the proxy, or by the load in a run without one.
    pub(crate) handshakes: Handshakes,
    /// Counts of records written, read and lost.
    pub(crate) health: Health,
    /// Cores kept busy, by group of threads, those without threads left out: of late, or in the mean of an ended run that
    /// is shown whole.
    pub(crate) cpu: Vec<(&'static str, f64)>,
    /// What each worker of the proxy did of late.
    pub(crate) workers: Vec<WorkerActivity>,
    /// Cores that each process kept busy which is observed.
    pub(crate) observed: Vec<(ProcessCpu, f64)>,
    /// What the process used at its last reading, when known.
    pub(crate) host: Option<HostRecord>,
    /// Alerts that fire at the moment, the latest first.
    pub(crate) alerts: Vec<FiringAlert>,
    /// What alerts allow.
    pub(crate) limits: Vec<LatencyLimit>,
    /// What is about to break at the moment, and what would resume more.
    pub(crate) findings: OpenFindings,
    /// Alerts that are not evaluated, as they have too few samples.
    pub(crate) shortages: Vec<UndersampledAlert>,
    /// What cannot be trusted or overlooked: alerts, then the worst first.
    pub(crate) warnings: Vec<Warning>,
    /// Over which time the clients' rates are taken: the span, as far back as their records are kept.
    pub(crate) clients_span: Span,
    /// The latest log lines, oldest first.
    pub(crate) log: Vec<LogLine>,
}

impl ViewModel {
    /// Whether it shows all of a run that has ended: rates and CPU are then means, with the time before and after the load.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended && self.span == Span::WholeRun
    }

    /// Names the window of its figures.
    pub(crate) fn window(&self) -> String {
        if self.is_whole() {
            "mean of the whole run".to_owned()
        } else {
            format!("window {}", self.span.words())
        }
    }

    /// The latencies of a class, if the run has it.
    pub(crate) fn latency(&self, class: LatencyClass) -> Option<&LatencyRow> {
        self.latencies.iter().find(|row| row.class == class)
    }

    /// Returns whether an alert on p99 of a class fires.
    pub(crate) fn has_alert_on_p99(&self, class: LatencyClass) -> bool {
        self.alerts.iter().any(|alert| alert.is_about_p99(class))
    }

    /// `run` at a moment, over windows that have been slid to it. Health describes the reading and is always the latest,
    /// findings that are open at the moment have the latest figures; the reasons of failures are known only for the
    /// latest moment.
    pub(crate) fn at(model: &Model, run: &Run, us: u64, span: Span, windows: &SpanWindows) -> Self {
        let is_latest = us >= run.last_us();
        let ended = is_latest && run.stopped().is_some();
        // Beside rates of a whole run, the CPU of its last seconds would mislead.
        let is_whole = ended && span == Span::WholeRun;
        let began = run.began();
        let health = Health::of(model, run);
        let interval_us = run.proxy().map(interval_us).or_else(|| run.load().map(interval_us)).unwrap_or(0);
        let (proxy, load) = (windows.proxy(run, span), windows.load(run, span));
        let proxy_totals = run.proxy().map(|series| series.totals_at(us));
        let load_totals = run.load().map(|series| series.totals_at(us));
        let mut handshakes = match (proxy_totals.as_ref().zip(proxy.as_ref()), load_totals.zip(load.as_ref()))
        {
            (Some((totals, taken)), _) => Handshakes::of_proxy(totals, taken),
            (None, Some((totals, taken))) => Handshakes::of_load(&totals, taken),
            (None, None) => Handshakes::default(),
        };
        if let Some((tls, proxy)) = windows.tls(run, span).zip(proxy.as_ref()) {
            handshakes.add_tls(&tls, proxy);
        }
        if let Some(series) = run.tls() {
            handshakes.retransmitted = series.totals_at(us)[TlsCounter::HandshakesRetransmitted];
        }
        if is_latest && proxy.is_some() {
            handshakes.reasons = crate::panes::handshakes::model::reasons(run);
        }
        handshakes.absent = AbsentHandshakeFigures::of(run);
        let shortages = if is_latest { UndersampledAlert::of(run) } else { Vec::new() };
        let alerts = alerts::at(run, us, &shortages);
        let open = |totals: &Counters<ProxyCounter>| {
            let open_then = || totals[ProxyCounter::Accepted].saturating_sub(totals[ProxyCounter::Closed]);
            run.counted_log().is_none().then(|| if is_latest { run.proxy_open() } else { open_then() })
        };
        let proxy_figures = |(totals, taken)| ProxyFigures::of(totals, open(totals), taken);
        let load_figures = load_totals.as_ref().zip(load.as_ref());
        let http = run.http().map(|series| series.totals_at(us)).zip(windows.http(run, span));
        let http = http.map(|(totals, taken)| HttpFigures::of(run, &totals, &taken, run.http_gauges_at(us)));
        let mut load_figures = load_figures.and_then(|(totals, taken)| LoadFigures::of(run, totals, taken));
        let earlier = load_figures.as_mut().filter(|_| !is_latest).into_iter();
        earlier.for_each(|load| load.apply_settings(|name| run.setting_at(us.saturating_sub(1), name)));
        Self {
            target: began.map_or_else(String::new, |began| target_at(run, began, us)),
            setup: began.map_or_else(String::new, |began| setup_at(run, began, us)),
            certificate_expiry: insight::first_expiry(run),
            run: run.id().short(),
            duration_us: run.before_us().saturating_add(if us == run.last_us() {
                run.duration_us()
            } else {
                us.saturating_sub(run.began_us())
            }),
            interval_us,
            ended,
            span,
            latencies: classes::all(run, windows, span),
            against: None,
            proxy: proxy_totals.as_ref().zip(proxy.as_ref()).map(proxy_figures),
            http,
            load: load_figures,
            handshakes,
            warnings: warnings(&alerts, health::warnings(run, &health, span, us), &shortages),
            shortages,
            alerts,
            limits: alerts::limits(run, us),
            findings: OpenFindings::at(model, run, us),
            health,
            cpu: if is_whole { mean_cpu(run) } else { cpu_until(run, us) },
            workers: run.workers_until(us, NOW_US),
            observed: if is_whole { mean_observed(run) } else { run.observed_until(us, NOW_US) },
            host: run.host_at(us).cloned(),
            clients_span: crate::panes::tables::clients::model::span(span, interval_us),
            log: log_until(run, us),
        }
    }
}

/// All warnings: alerts that fire, then the worst first, then alerts that cannot fire.
fn warnings(
    firing: &[FiringAlert],
    of_health: Vec<Warning>,
    shortages: &[UndersampledAlert],
) -> Vec<Warning> {
    let said = firing.iter().map(FiringAlert::warning);
    said.chain(of_health).chain(alerts::idle(firing, shortages).map(alerts::shortage)).collect()
}

/// The latest log lines up to a moment.
fn log_until(run: &Run, us: u64) -> Vec<LogLine> {
    let newest_first = run.log().rev().skip_while(|line| line.mono_us > us);
    let mut connections = 0;
    let is_kept = |line: &&LogLine| {
        connections += usize::from(line.is_of_connection());
        connections <= LOG_CONNECTIONS_MAX || !line.is_of_connection()
    };
    let mut lines: Vec<LogLine> = newest_first.filter(is_kept).take(LOG_LINES_MAX).cloned().collect();
    lines.reverse();
    lines
}

/// The target at a moment: a reload may have put other upstreams in the place of those of the start.
fn target_at(run: &Run, began: &RunRecord, us: u64) -> String {
    let upstream_at = |us| run.setting_at(us, "proxy.upstream");
    match upstream_at(us).filter(|now| upstream_at(run.began_us()).as_ref() != Some(now)) {
        Some(upstream) => target(&RunRecord { upstream, ..began.clone() }),
        None => target(began),
    }
}

pub(crate) fn target(run: &RunRecord) -> String {
    if run.listen.is_empty() { run.upstream.clone() } else { format!("{} > {}", run.listen, run.upstream) }
}

fn setup_at(run: &Run, began: &RunRecord, us: u64) -> String {
    if began.listen.is_empty() || began.workers == 0 {
        return String::new();
    }
    let workers = run.setting_at(us, "proxy.workers").and_then(|workers| workers.parse().ok());
    format!("{}, {}", began.certificate, counted(workers.unwrap_or(began.workers), "worker"))
}

/// The usual time between the records of a series, in microseconds; 0 while unknown. The median, since the last
/// interval of a run is shorter and one with a loss is longer; without the milliseconds by which ticks wander.
fn interval_us<C: Metric, L: Metric>(series: &MetricSeries<C, L>) -> u64 {
    let latest = series.intervals().rev().take(INTERVALS_COMPARED);
    let mut lengths: Vec<u64> = latest.map(|i| i.end_us.saturating_sub(i.start_us)).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let tick_us = if median < LONG_US { TICK_US } else { LONG_TICK_US };
    if median < INTERVAL_MIN_US { median } else { (median + tick_us / 2) / tick_us * tick_us }
}

/// The groups of threads whose CPU is shown.
const CPU_GROUPS: [(&str, CpuGroup); 6] = [
    ("proxy", CpuGroup::Proxy),
    ("load", CpuGroup::Load),
    ("upstream", CpuGroup::Upstream),
    ("ui", CpuGroup::Dashboard),
    ("journal", CpuGroup::Journal),
    ("observer", CpuGroup::Observer),
];

/// Cores kept busy by each group of threads before a moment.
fn cpu_until(run: &Run, us: u64) -> Vec<(&'static str, f64)> {
    let ever_used = |group| run.host().is_some_and(|host| host.cpu[group] > 0);
    CPU_GROUPS
        .into_iter()
        .filter(|&(_, group)| ever_used(group))
        .filter_map(|(name, group)| Some((name, run.cpu_until(us, group, NOW_US)?.cores)))
        .collect()
}

/// Cores kept busy by each group of threads in the mean of the whole run.
fn mean_cpu(run: &Run) -> Vec<(&'static str, f64)> {
    let cores = |host: &HostRecord, group| cores(host.cpu[group], run);
    let used = |host| {
        CPU_GROUPS
            .map(|(name, group)| (name, cores(host, group)))
            .into_iter()
            .filter(|(_, cores)| *cores > 0.0)
    };
    run.host().into_iter().flat_map(used).collect()
}

/// Cores kept busy by each observed process in the mean of the whole run.
fn mean_observed(run: &Run) -> Vec<(ProcessCpu, f64)> {
    let processes = run.host().into_iter().flat_map(|host| host.observed_processes.iter());
    processes.map(|process| (process.clone(), cores(process.cpu_us, run))).collect()
}

/// CPU time of a run in cores.
fn cores(cpu_us: u64, run: &Run) -> f64 {
    cpu_us as f64 / run.duration_us().max(1) as f64
}
