//! The last moments of a run as a separate run, so every figure has a value over a window.

use std::collections::VecDeque;
use std::time::Duration;

use crate::figures::{Figure, FigurePart, FigureSide, FigureSubjects, NamedFigure, PartFigure};
use crate::runs::Model;
use records::delta::{LoadDelta, LoadState, NamedDelta as _, ProxyDelta};
use records::histogram::SparseHistogram;
use records::ids::RunId;
use records::kinds::{
    Body, HostRecord, HttpGauges, HttpRecord, LoadRecord, Phase, ProxyRecord, Record, RunRecord, Stamp,
    TlsRecord,
};
use records::metrics::{
    Counters, HttpCounter, KnownValue, LatencyClass, LoadCounter, Metric, ProxyCounter, RouteCounter,
    TimeResolution, TlsCounter, UpstreamCounter,
};
use records::values::{EventCounts, Latencies, Latency};

/// The most intervals that a window keeps apart; shorter ones are added up.
const PARTS_MAX: u64 = 60;

/// An interval that has ended. Times are `CLOCK_MONOTONIC` in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct AlertInterval<'a> {
    /// When it ended. It began when the previous interval ended.
    pub end_us: u64,
    /// False if the process did not run during all of it.
    pub is_whole: bool,
    /// The proxy's counts in it; `None` in a run without a proxy.
    pub proxy: Option<&'a ProxyDelta>,
    /// The load's counts in it, and its state at the end; `None` in a run without a load.
    pub load: Option<(&'a LoadDelta, LoadState)>,
    /// Resources that the process had used by the end.
    pub host: &'a HostRecord,
}

/// Gauges at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntervalGauges {
    pub(super) open: u64,
    /// The gauges of HTTP mode; `None` in TCP mode.
    pub(super) http: Option<HttpGauges>,
}

/// The data of the last intervals that an alert needs.
#[derive(Debug)]
pub(super) struct AlertWindow {
    figure: Figure,
    /// The index of the figure's route or upstream, if it is of one.
    part: Option<usize>,
    resolution: TimeResolution,
    span_us: u64,
    /// Oldest first.
    parts: VecDeque<WindowPart>,
    present: IntervalGauges,
    /// The end of the last interval.
    last: Option<GaugeSample>,
    /// Since when every interval is known.
    since_us: Option<u64>,
}

/// One interval or several short ones.
#[derive(Clone, Debug)]
struct WindowPart {
    end_us: u64,
    proxy: Counters<ProxyCounter>,
    tls: Counters<TlsCounter>,
    http: Counters<HttpCounter>,
    /// Counters of the figure's route.
    route: Counters<RouteCounter>,
    /// Counters of the figure's upstream.
    upstream: Counters<UpstreamCounter>,
    load: Counters<LoadCounter>,
    events: EventCounts,
    /// The histogram of the figure's class.
    latencies: SparseHistogram,
    /// When it began.
    before: GaugeSample,
}

/// Gauges of the run at a moment.
#[derive(Clone, Debug)]
struct GaugeSample {
    us: u64,
    load: LoadState,
    host: HostRecord,
}

impl AlertWindow {
    pub(super) fn new(figure: Figure, subjects: &FigureSubjects, span: Duration) -> Self {
        let part = match &figure {
            Figure::Named(figure) => subjects.index(figure),
            Figure::Latency(..) | Figure::Scalar(_) | Figure::Quotient(_) => None,
        };
        let resolution =
            if figure.side() == FigureSide::Load { TimeResolution::FINE } else { subjects.resolution() };
        Self {
            figure,
            part,
            resolution,
            span_us: span.as_micros() as u64,
            parts: VecDeque::new(),
            present: IntervalGauges::default(),
            last: None,
            since_us: None,
        }
    }

    /// Adds an interval, with the gauges at its end. After a gap, or while the load does not measure the figure, the
    /// window starts again.
    pub(super) fn add(&mut self, interval: &AlertInterval<'_>, present: IntervalGauges) {
        self.present = present;
        let load = interval.load.map_or_else(LoadState::default, |(_, state)| state);
        let before =
            self.last.replace(GaugeSample { us: interval.end_us, load, host: interval.host.clone() });
        let measures = self.figure.side() != FigureSide::Load || (load.running && load.measured_us > 0);
        let Some(before) = before.filter(|_| interval.is_whole && measures) else {
            self.parts.clear();
            self.since_us = None;
            return;
        };
        self.since_us.get_or_insert(before.us);
        let length_us = interval.end_us.saturating_sub(before.us);
        let part = self.part(interval, before);
        match self.parts.back_mut() {
            Some(last) if part.end_us.saturating_sub(last.before.us) <= self.span_us / PARTS_MAX => {
                last.add(&part);
            }
            _ => self.parts.push_back(part),
        }
        // Ticks wander by milliseconds, so a part counts if its middle lies within.
        let from_us = interval.end_us.saturating_sub(self.span_us.max(length_us));
        while self.parts.front().is_some_and(|part| part.before.us.midpoint(part.end_us) <= from_us) {
            self.parts.pop_front();
        }
    }

    fn part(&self, interval: &AlertInterval<'_>, before: GaugeSample) -> WindowPart {
        let AlertInterval { end_us, is_whole: _, proxy, load, host: _ } = *interval;
        let http = proxy.and_then(|delta| delta.http.as_ref());
        let route = self.part.and_then(|index| http?.routes.get(index));
        let upstream = self.part.and_then(|index| proxy?.upstreams.all().get(index));
        let latencies = match &self.figure {
            Figure::Latency(LatencyClass::Proxy(class), _) => {
                proxy.map(|delta| delta.latencies[*class].to_sparse())
            }
            Figure::Latency(LatencyClass::Tls(class), _) => {
                proxy.map(|delta| delta.tls.latencies[*class].to_sparse())
            }
            Figure::Latency(LatencyClass::Http(class), _) => {
                http.map(|delta| delta.latency(*class).to_sparse())
            }
            Figure::Latency(LatencyClass::Load(class), _) => {
                load.map(|(delta, _)| delta.latencies[*class].to_sparse())
            }
            Figure::Named(NamedFigure::Route(figure)) => {
                figure.class().and_then(|class| Some(route?.latency(class)))
            }
            Figure::Named(NamedFigure::Upstream(figure)) => {
                figure.class().and_then(|class| Some(upstream?.latency(class)))
            }
            Figure::Scalar(_) | Figure::Quotient(_) => None,
        };
        WindowPart {
            end_us,
            proxy: proxy.map(|delta| delta.counters).unwrap_or_default(),
            tls: proxy.map(|delta| delta.tls.counters).unwrap_or_default(),
            http: http.map(|delta| delta.counters).unwrap_or_default(),
            route: route.map(|delta| delta.counters).unwrap_or_default(),
            upstream: upstream.map(|delta| delta.counters).unwrap_or_default(),
            load: load.map(|(delta, _)| delta.counters).unwrap_or_default(),
            events: load.map(|(delta, _)| delta.events.clone()).unwrap_or_default(),
            latencies: latencies.unwrap_or_default(),
            before,
        }
    }

    /// The figure's value.
    ///
    /// # Errors
    /// When there is none: with the number of samples and the number needed, if these are too few.
    pub(super) fn value(&self) -> Result<KnownValue, Option<(u64, u64)>> {
        let model = self.run().ok_or(None)?;
        let run = model.current().ok_or(None)?;
        let value = self.figure.value(run, None);
        match self.figure.too_few_samples(run) {
            Some((0, _)) => Err(None),
            Some(too_few) => Err(Some(too_few)),
            None => value.map(|value| self.figure.known(value, self.resolution)).ok_or(None),
        }
    }

    pub(super) fn resolution(&self) -> TimeResolution {
        self.resolution
    }

    /// The window as a run; `None` until it is full.
    fn run(&self) -> Option<Model> {
        let (first, last) = (self.parts.front()?, self.parts.back()?);
        let length_us = last.end_us.saturating_sub(last.before.us);
        let known_us = last.end_us.saturating_sub(self.since_us?);
        if known_us + length_us / 2 < self.span_us {
            return None;
        }
        let GaugeSample { us: _, load: state, host } = self.last.as_ref()?;
        let mut sum = first.clone();
        self.parts.iter().skip(1).for_each(|part| sum.add(part));
        let mut model = Model::new(1);
        let stamp = |seq: u64| Stamp {
            run: RunId::from_bits(1),
            seq,
            mono_us: if seq == 1 { sum.before.us } else { sum.end_us },
            realtime_us: 0,
            interval_us: if seq == 1 { 0 } else { sum.end_us.saturating_sub(sum.before.us) },
        };
        let mut host = host.clone();
        host.rebase(&first.before.host);
        let hosts = || self.parts.iter().skip(1).map(|part| &part.before.host);
        let threads = hosts().map(|host| host.observed_threads).max().unwrap_or(0);
        let memory_bytes = hosts().map(|host| host.observed_memory_bytes).max().unwrap_or(0);
        host.observed_threads_max = host.observed_threads.max(threads);
        host.observed_memory_max_bytes = host.observed_memory_bytes.max(memory_bytes);
        let bodies = [
            Body::Run(Box::new(RunRecord { phase: Phase::Start, ..RunRecord::default() })),
            Body::Proxy(Box::new(self.proxy_record(&sum))),
            Body::Tls(Box::new(self.tls_record(&sum))),
            Body::Load(Box::new(self.load_record(&sum, state, &first.before.load))),
            Body::Host(host),
        ];
        let http = self.present.http.map(|gauges| Body::Http(Box::new(self.http_record(&sum, gauges))));
        let part = self.part_record(&sum);
        for (seq, body) in (1..).zip(bodies.into_iter().chain(http).chain(part)) {
            model.apply(Record { stamp: stamp(seq), body }, None);
        }
        Some(model)
    }

    fn proxy_record(&self, sum: &WindowPart) -> ProxyRecord {
        let latencies = match self.figure {
            Figure::Latency(LatencyClass::Proxy(class), _) => timed(class, &sum.latencies),
            _ => Latencies::default(),
        };
        ProxyRecord { open: self.present.open, counters: sum.proxy, latencies, ..ProxyRecord::default() }
    }

    fn tls_record(&self, sum: &WindowPart) -> TlsRecord {
        let latencies = match self.figure {
            Figure::Latency(LatencyClass::Tls(class), _) => timed(class, &sum.latencies),
            _ => Latencies::default(),
        };
        TlsRecord { counters: sum.tls, latencies, ..TlsRecord::default() }
    }

    fn http_record(&self, sum: &WindowPart, gauges: HttpGauges) -> HttpRecord {
        let latencies = match self.figure {
            Figure::Latency(LatencyClass::Http(class), _) => timed(class, &sum.latencies),
            _ => Latencies::default(),
        };
        HttpRecord { counters: sum.http, latencies, ..HttpRecord::of_gauges(gauges) }
    }

    /// `None` if the figure is not of a route or an upstream.
    fn part_record(&self, sum: &WindowPart) -> Option<Body> {
        match &self.figure {
            Figure::Named(NamedFigure::Route(figure)) => {
                Some(Body::Route(Box::new(named(figure, sum.route, &sum.latencies))))
            }
            Figure::Named(NamedFigure::Upstream(figure)) => {
                Some(Body::Upstream(Box::new(named(figure, sum.upstream, &sum.latencies))))
            }
            Figure::Latency(..) | Figure::Scalar(_) | Figure::Quotient(_) => None,
        }
    }

    fn load_record(&self, sum: &WindowPart, state: &LoadState, before: &LoadState) -> LoadRecord {
        let latencies = match self.figure {
            Figure::Latency(LatencyClass::Load(class), _) => timed(class, &sum.latencies),
            _ => Latencies::default(),
        };
        LoadRecord {
            events: sum.events.clone(),
            counters: sum.load,
            latencies,
            ..state.since(before).record()
        }
    }
}

impl WindowPart {
    fn add(&mut self, later: &Self) {
        self.end_us = later.end_us;
        self.proxy.add(&later.proxy);
        self.tls.add(&later.tls);
        self.http.add(&later.http);
        self.route.add(&later.route);
        self.upstream.add(&later.upstream);
        self.load.add(&later.load);
        self.events.add(&later.events);
        self.latencies = SparseHistogram::merged([&self.latencies, &later.latencies]);
    }
}

/// A record of the figure's part.
fn named<R: FigurePart>(
    figure: &PartFigure<R>,
    counters: Counters<R::Counter>,
    interval: &SparseHistogram,
) -> R {
    let mut record = R::named(figure.name.to_string());
    *record.counters_mut() = counters;
    if let Some(class) = figure.class() {
        *record.latencies_mut() = timed(class, interval);
    }
    record
}

fn timed<M: Metric>(class: M, interval: &SparseHistogram) -> Latencies<M> {
    let mut latencies = Latencies::default();
    latencies[class] = Latency { samples_total: interval.count(), interval: interval.clone() };
    latencies
}
