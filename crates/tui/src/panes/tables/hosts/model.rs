//! The hosts that are watched, in a line each, and their sum.

use std::time::Duration;

use model::runs::{MetricSeries, Run};
use records::histogram::Histogram;
use records::ids::RunId;
use records::metrics::{
    Counters, CpuGroup, HttpCounter, HttpLatency, LoadCounter, LoadLatency, Metric, ProxyCounter,
    ProxyLatency, TimeResolution,
};

use crate::clock::ClockReading;
use crate::view_model::classes::Quantile;
use crate::view_model::health::{GATHERING_MAX, silence_max};
use crate::view_model::span::NOW_US;

/// A clock that differs by less is not reported.
const CLOCK_DIFFERENCE_MIN_US: i64 = 1_000_000;

/// Whether records of a host arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostState {
    Live,
    /// The timestamp of its latest record is this many seconds in the future.
    ClockAhead(u64),
    /// All its records arrive this many seconds late, or its clock is behind.
    Late(u64),
    /// No record was read for this many seconds.
    Silent(u64),
    /// Its run has ended in order.
    Ended,
}

impl HostState {
    fn of(run: &Run, interval_us: u64, now: ClockReading) -> Self {
        let arrival = run.reading().arrival();
        let read_us = arrival.map_or_else(|| run.last_realtime_us(), |arrival| arrival.realtime_us);
        let silence = Duration::from_micros(now.realtime_us.saturating_sub(read_us));
        if run.stopped().is_some() {
            return Self::Ended;
        }
        if silence > silence_max(interval_us) {
            return Self::Silent(silence.as_secs());
        }
        match arrival.map_or(0, |arrival| arrival.least_delay_us) {
            least_us if least_us < -CLOCK_DIFFERENCE_MIN_US => {
                Self::ClockAhead(least_us.unsigned_abs() / 1_000_000)
            }
            least_us if least_us > GATHERING_MAX.as_micros() as i64 => {
                Self::Late(least_us.unsigned_abs() / 1_000_000)
            }
            _ => Self::Live,
        }
    }

    /// Returns whether its figures are of the present.
    pub(crate) fn is_live(self) -> bool {
        !matches!(self, Self::Silent(_) | Self::Ended)
    }

    /// Returns it in few cells.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Live => "live".to_owned(),
            Self::ClockAhead(seconds) => format!("clock +{seconds}s"),
            Self::Late(seconds) => format!("late {seconds}s"),
            Self::Silent(seconds) => format!("silent {}", records::text::quantity::elapsed_text(seconds)),
            Self::Ended => "ended".to_owned(),
        }
    }
}

/// What the latencies of a host are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerClass {
    /// First byte of HTTP mode.
    FirstByte,
    /// Exchanges of TCP mode.
    Exchange,
    /// Answers to a load without a proxy.
    Service,
}

/// What a host did in its last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HostFigures {
    /// Connections open; `None` without a proxy.
    pub(crate) open: Option<u64>,
    /// Full and resumed handshakes, and the time that they were counted in, in microseconds.
    handshakes: Option<([u64; 2], u64)>,
    pub(crate) handshakes_per_s: Option<f64>,
    /// Requests, exchanges or answers a second.
    pub(crate) answers_per_s: Option<f64>,
    /// The 99th percentile of their latencies.
    pub(crate) p99: Option<Quantile>,
    /// Cores that the process kept busy.
    pub(crate) cores: Option<f64>,
    /// From making a record to reading it, in microseconds, by the clocks of both hosts.
    pub(crate) lag_us: Option<u64>,
}

impl HostFigures {
    /// The share of resumed handshakes; `None` without handshakes.
    pub(crate) fn resumed(&self) -> Option<f64> {
        let ([full, resumed], _) = self.handshakes?;
        (full + resumed > 0).then(|| resumed as f64 / (full + resumed) as f64)
    }

    fn count_handshakes(&mut self, counted: [u64; 2], span_us: u64) {
        self.handshakes = Some((counted, span_us));
        self.handshakes_per_s =
            (span_us > 0).then(|| (counted[0] + counted[1]) as f64 * 1e6 / span_us as f64);
    }
}

/// The run of a host that is shown for it.
#[derive(Clone, Debug)]
pub(crate) struct HostRow {
    /// Its run; that of the sum does not exist.
    pub(crate) id: RunId,
    pub(crate) host: String,
    /// Version of tlsdash; empty if the beginning of the run was not read.
    pub(crate) version: String,
    /// User or unit; empty if the journal does not say.
    pub(crate) account: String,
    /// `None` in the row of the sum.
    pub(crate) state: Option<HostState>,
    /// Empty of a host that is not live.
    pub(crate) figures: HostFigures,
    /// Holes in its records.
    pub(crate) gaps: u64,
    pub(crate) lost: u64,
    pub(crate) began_realtime_us: u64,
}

/// All hosts at a moment, and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostTable {
    pub(crate) rows: Vec<HostRow>,
    /// The sum of the live ones; `None` without any.
    pub(crate) sum: Option<HostRow>,
}

impl HostTable {
    /// Returns the hosts of all runs that were read.
    pub(crate) fn of(runs: &[&Run], now: ClockReading) -> Self {
        let mut sum = HostSum::default();
        let mut scratch = Histogram::new();
        let states: Vec<HostState> =
            runs.iter().map(|run| HostState::of(run, interval_us(run), now)).collect();
        let has_given_way = |at: usize| {
            let (run, state) = (runs[at], states[at]);
            let is_later = |(other_at, other): (usize, &&Run)| {
                other_at != at
                    && other.writer().is_same_account(run.writer())
                    && (states[other_at].is_live(), other.began_realtime_us(), other_at)
                        > (false, run.began_realtime_us(), at)
            };
            !state.is_live() && runs.iter().enumerate().any(is_later)
        };
        let shown = (0..runs.len()).filter(|&at| !has_given_way(at));
        let rows = shown.map(|at| sum.row(runs[at], states[at], &mut scratch)).collect();
        Self { rows, sum: sum.row_of_all() }
    }

    pub(crate) fn live(&self) -> usize {
        self.rows.iter().filter(|row| row.state.is_some_and(HostState::is_live)).count()
    }

    /// Returns whether there are several hosts, not only several runs of one.
    pub(crate) fn has_several(&self) -> bool {
        self.rows.iter().any(|row| row.host != self.rows[0].host)
    }
}

/// The usual length of a run's intervals, in microseconds: that of its last one.
fn interval_us(run: &Run) -> u64 {
    let proxy = run.proxy().and_then(|series| Some(series.intervals().next_back()?.length_us()));
    let load = || run.load().and_then(|series| Some(series.intervals().next_back()?.length_us()));
    proxy.or_else(load).unwrap_or(0)
}

/// Adds up the live hosts.
#[derive(Debug, Default)]
struct HostSum {
    figures: HostFigures,
    answers: Histogram,
    /// The coarsest resolution of the hosts.
    resolution: TimeResolution,
    /// The class of all answers; `None` if they are of several.
    class: Option<AnswerClass>,
    has_mixed_classes: bool,
    versions: Vec<String>,
    gaps: u64,
    lost: u64,
    hosts: usize,
}

impl HostSum {
    fn row(&mut self, run: &Run, state: HostState, scratch: &mut Histogram) -> HostRow {
        let reading = run.reading();
        let version = run.began().map(|began| began.version.clone()).unwrap_or_default();
        let figures = if state.is_live() { self.figures_of(run, scratch) } else { HostFigures::default() };
        if state.is_live() {
            self.hosts += 1;
            self.gaps += reading.gaps_total();
            self.lost += reading.lost();
            if !self.versions.contains(&version) {
                self.versions.push(version.clone());
            }
        }
        HostRow {
            id: run.id(),
            host: run.hostname().to_owned(),
            version,
            account: run.writer().account(),
            state: Some(state),
            figures,
            gaps: reading.gaps_total(),
            lost: reading.lost(),
            began_realtime_us: run.began_realtime_us(),
        }
    }

    /// Returns the figures of a live host, and adds them.
    fn figures_of(&mut self, run: &Run, scratch: &mut Histogram) -> HostFigures {
        let reading = run.reading();
        let wall_lag_us = reading.arrival().and_then(|arrival| u64::try_from(arrival.delay_us).ok());
        let mut figures = HostFigures {
            open: run.proxy().map(|_| run.proxy_open()),
            cores: cores(run),
            lag_us: reading.lag_last_us().or(wall_lag_us),
            ..HostFigures::default()
        };
        scratch.clear();
        let mut class = None;
        if let Some(series) = run.proxy() {
            let (counted, span_us) = recent(series, None, scratch);
            let handshakes = [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed];
            figures.count_handshakes(handshakes.map(|counter| counted[counter]), span_us);
        }
        let answers = match (run.http(), run.proxy(), run.load()) {
            (Some(http), ..) => {
                class = Some(AnswerClass::FirstByte);
                let (counted, span_us) = recent(http, Some(HttpLatency::FirstByte), scratch);
                Some((counted[HttpCounter::Requests], span_us))
            }
            (None, Some(proxy), _) => {
                class = Some(AnswerClass::Exchange);
                let (counted, span_us) = recent(proxy, Some(ProxyLatency::Exchange), scratch);
                Some((counted[ProxyCounter::Exchanges], span_us))
            }
            (None, None, Some(load)) => {
                class = Some(AnswerClass::Service);
                let (counted, span_us) = recent(load, Some(LoadLatency::Service), scratch);
                let handshakes = [LoadCounter::HandshakesFull, LoadCounter::HandshakesResumed];
                figures.count_handshakes(handshakes.map(|counter| counted[counter]), span_us);
                Some((counted[LoadCounter::Ok], span_us))
            }
            (None, None, None) => None,
        };
        figures.answers_per_s = answers.filter(|(_, us)| *us > 0).map(|(n, us)| n as f64 * 1e6 / us as f64);
        // What a load timed is known finely.
        let counts_log = run.http().is_some() || run.proxy().is_some();
        let resolution =
            if counts_log { run.resolution(ProxyLatency::Exchange.into()) } else { TimeResolution::FINE };
        figures.p99 = p99(scratch, resolution);
        self.add(&figures, class, scratch);
        figures
    }

    fn add(&mut self, figures: &HostFigures, class: Option<AnswerClass>, answers: &Histogram) {
        let sum = &mut self.figures;
        sum.open = added(sum.open, figures.open, |a, b| a + b);
        sum.handshakes_per_s = added(sum.handshakes_per_s, figures.handshakes_per_s, |a, b| a + b);
        sum.answers_per_s = added(sum.answers_per_s, figures.answers_per_s, |a, b| a + b);
        sum.cores = added(sum.cores, figures.cores, |a, b| a + b);
        sum.lag_us = added(sum.lag_us, figures.lag_us, u64::max);
        sum.handshakes = added(sum.handshakes, figures.handshakes, |(a, a_us), (b, b_us)| {
            ([a[0] + b[0], a[1] + b[1]], a_us.max(b_us))
        });
        if answers.is_empty() {
            return;
        }
        self.has_mixed_classes |= self.class.is_some_and(|known| Some(known) != class);
        self.class = class;
        self.answers.add(answers);
        let coarser = figures.p99.map(|p99| p99.resolution).filter(|of| of.us() > self.resolution.us());
        self.resolution = coarser.unwrap_or(self.resolution);
    }

    fn row_of_all(self) -> Option<HostRow> {
        let Self {
            mut figures,
            answers,
            resolution,
            class: _,
            has_mixed_classes,
            versions,
            gaps,
            lost,
            hosts,
        } = self;
        figures.p99 = if has_mixed_classes { None } else { p99(&answers, resolution) };
        let version = match &*versions {
            [one] => one.clone(),
            several => format!("{} kinds", several.len()),
        };
        (hosts > 0).then(|| HostRow {
            id: RunId::from_bits(0),
            host: format!("sum of {hosts}"),
            version,
            account: String::new(),
            state: None,
            figures,
            gaps,
            lost,
            began_realtime_us: 0,
        })
    }
}

fn added<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(add(a, b)),
        (a, b) => a.or(b),
    }
}

fn p99(answers: &Histogram, resolution: TimeResolution) -> Option<Quantile> {
    Quantile::of(answers.count(), 0.99, answers.quantile_ns(0.99), resolution)
}

/// Returns the cores that all threads of the process kept busy.
fn cores(run: &Run) -> Option<f64> {
    let uses = CpuGroup::ALL.iter().filter_map(|&group| run.cpu(group, NOW_US));
    uses.map(|used| used.cores).reduce(|a, b| a + b)
}

/// Returns what was counted in the last ten seconds of a series, and the time that this covers in microseconds. Adds the
/// latencies of a class.
fn recent<C: Metric, L: Metric>(
    series: &MetricSeries<C, L>,
    class: Option<L>,
    latencies: &mut Histogram,
) -> (Counters<C>, u64) {
    let from_us = series.last_us().saturating_sub(NOW_US);
    let (mut counters, mut span_us) = (Counters::default(), 0);
    for interval in series.intervals().rev().take_while(|interval| interval.middle_us() > from_us) {
        counters.add(&interval.counters);
        span_us += interval.length_us();
        if let Some(class) = class {
            latencies.add_sparse(interval.latency(class));
        }
    }
    (counters, span_us)
}
