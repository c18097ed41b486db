//! The page of two compared runs, drawn over each other.

use maud::{Markup, html};
use model::runs::MetricSeries;
use records::metrics::{LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency};

use super::plot::curves::{self, CURVES, curve_name};
use super::plot::heat::{self, Extent};
use super::plot::{AxisScale, TimeMarks, short};
use super::plot::{effects, multiples, time};
use super::tables::{latency_table, whole};
use super::{made_by, page, rare, scrolled, section};
use crate::compare::{
    Comparison, ComparisonRow, Difference, ReasonShare, RowOutcome, are_open, digits, probability,
    side_by_side,
};
use crate::numbers::DASH;
use crate::report::Report;
use crate::report::columns::{PlotColumn, columns};
use crate::report::latency::ClassLatency;

/// Columns of both runs.
type Both<C> = [Vec<PlotColumn<C>>; 2];

impl Comparison<'_> {
    pub fn html(&self) -> String {
        let body = html! {
            (self.lead())
            (section("What differs in the settings", &self.differences()))
            (section("Figures", &self.figures()))
            (section("Each figure over time", &multiples::markup(&self.metrics, &self.names())))
            (section("What to bear in mind", &html! { ul { @for note in &self.notes { li { (note) } } } }))
            (section("Handshakes", &self.handshakes()))
            (section("Why handshakes were full", &whole(&ReasonShare::table(&self.full_by_reason))))
            (section("Percentile curves", &self.curves()))
            (section("In time", &self.in_time()))
            (section("Latencies", &self.latencies()))
            (rare("CPU", &self.cpu()))
            (rare("What happened", &each(self.reports().map(Report::event_table))))
            (rare("Environment and settings", &self.environment()))
            (rare("Quality of the data", &each(self.reports().map(Report::quality_list))))
            (rare("What the words mean", &self.definitions()))
            (made_by(self.command))
        };
        page(&self.title(), &body)
    }

    fn reports(&self) -> [&Report<'_>; 2] {
        [self.a.report, self.b.report]
    }

    /// The names of the lines of A and B: by the settings that differ if these are few, else by their sources.
    fn names(&self) -> [String; 2] {
        let values =
            |of: &dyn Fn(&Difference) -> String| self.differs.iter().map(of).collect::<Vec<_>>().join(", ");
        match &*self.differs {
            [] | [_, _, _, ..] => {
                [format!("A, {}", self.a.report.source), format!("B, {}", self.b.report.source)]
            }
            [_] | [_, _] => [
                format!("A, {}", values(&|differs| format!("{} {}", differs.0, differs.1))),
                format!("B, {}", values(&|differs| format!("{} {}", differs.0, differs.2))),
            ],
        }
    }

    /// The result in a sentence or two.
    fn lead(&self) -> Markup {
        let has_refused = self.metrics.iter().any(|row| row.outcome == RowOutcome::NotComparable);
        html! {
            @for line in self.forced_lines() { p.warn { (line) } }
            p.lead { (self.verdict) }
            ul { @for side in self.sides() { li { (side) } } }
            @if has_refused { p.warn { "Some figures are not comparable: what the plots show of them tells of something else than of what was compared." } }
        }
    }

    fn figures(&self) -> Markup {
        let confidence = self.metrics.iter().find_map(|row| Some(row.estimate?.confidence_percent));
        html! {
            (effects::of_rows("B against A: the difference of each figure, with its interval within the runs", &self.metrics))
            (figure_table(&self.metrics))
            p.dim {
                "Of blocks of " (short(self.block_s)) " s, but for the first " (short(self.discard_s)) " s of each run. "
                "Interval and p: Student's t over the figures of the four quarters of each run"
                @if let Some(percent) = confidence { (format!(", at {percent:.1} %")) }
                ". They say how the figure varied within the runs, and nothing of another hour. All figures together are judged at 5 %, each at 1 % at the most."
            }
        }
    }

    fn differences(&self) -> Markup {
        html! {
            @if self.differs.is_empty() {
                p { "No setting differs." }
            } @else {
                (scrolled("Settings that differ", &html! {
                    thead { tr { th { "setting" } th { "A" } th { "B" } } }
                    tbody { @for differs in &self.differs { tr { td { (differs.0) } td { (differs.1) } td { (differs.2) } } } }
                }))
            }
        }
    }

    fn latencies(&self) -> Markup {
        let pairs = pairs(self.reports());
        let rows = pairs.iter().flat_map(|[a, b]| [("A", a), ("B", b)]);
        html! { @if !pairs.is_empty() { (latency_table(rows.map(|(name, latency)| (format!("{}, {name}", latency.name()), latency)))) } }
    }

    fn curves(&self) -> Markup {
        let pairs = pairs(self.reports()).into_iter();
        let shown = pairs.filter(|[a, _]| CURVES.contains(&a.class));
        html! {
            @for [a, b] in shown {
                @let [name_a, name_b] = self.names();
                (curves::markup(format!("{}, by percentile", curve_name(a.class)), &[(name_a, a), (name_b, b)]))
            }
        }
    }

    fn in_time(&self) -> Markup {
        let [a, b] = self.reports();
        let class = if are_open(a.run, b.run) { LoadLatency::Response } else { LoadLatency::Service };
        let load = both(self.reports(), a.run.load(), b.run.load(), class);
        let proxy = both(self.reports(), a.run.proxy(), b.run.proxy(), ProxyLatency::Exchange);
        html! {
            @if let Some(load) = &load {
                (self.latency_plots(&format!("Load: {}", curve_name(class.into())), load))
                (self.rate("Load: requests answered well", load, LoadCounter::Ok))
            }
            @if let Some(proxy) = &proxy {
                (self.latency_plots("Proxy: exchange", proxy))
                (self.rate("Proxy: exchanges", proxy, ProxyCounter::Exchanges))
            }
        }
    }

    /// Median and 99th percentile of both runs in one plot each, then both heat maps.
    fn latency_plots<C: Metric>(&self, title: &str, [a, b]: &Both<C>) -> Markup {
        let (counted, names) = (self.counted(), self.names());
        let plot = |what: &str, q: f64| {
            let of = |column: &PlotColumn<C>| column.quantile_ms(q);
            let lines: [time::Line<'_, C>; 2] = [(&names[0], a, &of), (&names[1], b, &of)];
            time::markup(format!("{title}, {what}"), ("ms", AxisScale::Log), &lines, &counted)
        };
        html! {
            (plot("p50", 0.5))
            (plot("p99", 0.99))
            @if let Some(extent) = Extent::of(a.iter().chain(b)) {
                (heat::markup(&format!("{title}, A"), a, &extent))
                (heat::markup(&format!("{title}, B"), b, &extent))
            }
        }
    }

    fn rate<C: Metric>(&self, title: &str, [a, b]: &Both<C>, counter: C) -> Markup {
        let of = |column: &PlotColumn<C>| column.rate(column.counters[counter]);
        let names = self.names();
        let lines: [time::Line<'_, C>; 2] = [(&names[0], a, &of), (&names[1], b, &of)];
        time::markup(title.to_owned(), ("1/s", AxisScale::Linear), &lines, &self.counted())
    }

    /// A mark where the first block begins.
    fn counted(&self) -> TimeMarks {
        let tick = (self.discard_s > 0.0).then(|| (self.discard_s, "counted from here".to_owned()));
        TimeMarks { ticks: tick.into_iter().collect(), ..TimeMarks::default() }
    }

    fn handshakes(&self) -> Markup {
        let [a, b] = self.reports().map(Report::handshakes);
        let count = |of: &[(&str, String, u64)], by: (&str, &str)| {
            of.iter().find(|(kind, name, _)| (*kind, &**name) == by).map_or(0, |(.., count)| *count)
        };
        let mut names: Vec<(&str, &str)> = Vec::new();
        for (kind, name, _) in a.iter().chain(&b) {
            if !names.contains(&(*kind, &**name)) {
                names.push((*kind, name));
            }
        }
        html! {
            @if !names.is_empty() {
                (scrolled("Handshakes", &html! {
                    thead { tr { th { "by" } th { "which" } th.n { "A" } th.n { "B" } } }
                    tbody { @for by in names { tr { td { (by.0) } td { (by.1) } td.n { (count(&a, by)) } td.n { (count(&b, by)) } } } }
                }))
            }
        }
    }

    fn cpu(&self) -> Markup {
        let used = self.reports().map(|report| &report.summary.cpu_s);
        let whole_s = self.reports().map(|report| report.run.recorded_us() as f64 / 1e6);
        let share = |at: usize, name: &str| {
            let seconds = used[at].get(name).copied().filter(|_| whole_s[at] > 0.0);
            seconds.map_or_else(|| "–".to_owned(), |seconds| short(seconds / whole_s[at] * 100.0))
        };
        let names = used[0].keys().chain(used[1].keys().filter(|name| !used[0].contains_key(*name)));
        html! {
            @if used.iter().any(|used| !used.is_empty()) {
                (scrolled("CPU", &html! {
                    thead { tr { th { "threads of" } th.n { "A, % of one core" } th.n { "B, % of one core" } } }
                    tbody { @for name in names { tr { td { (name) } td.n { (share(0, name)) } td.n { (share(1, name)) } } } }
                }))
            }
        }
    }

    fn environment(&self) -> Markup {
        let [a, b] = self.reports();
        let settings = |report: &Report<'_>| -> Vec<(String, String)> {
            report.settings().into_iter().map(|(name, value, _)| (name, value)).collect()
        };
        let settings = side_by_side(&settings(a), &settings(b));
        html! {
            (scrolled("Environment", &html! {
                thead { tr { th { "what" } th { "A" } th { "B" } th { "differs" } } }
                tbody { @for (name, a, b) in side_by_side(&a.environment(), &b.environment()) { (difference_row(name, &a, &b)) } }
            }))
            @if !settings.is_empty() {
                (scrolled("Settings", &html! {
                    thead { tr { th { "setting, at the end" } th { "A" } th { "B" } th { "differs" } } }
                    tbody { @for (name, a, b) in settings { (difference_row(&name, &a, &b)) } }
                }))
            }
        }
    }

    fn definitions(&self) -> Markup {
        self.a.report.definitions()
    }
}

/// The outcome of each figure.
pub(super) fn figure_table(rows: &[ComparisonRow]) -> Markup {
    scrolled(
        "Figures",
        &html! {
            thead { tr { th { "figure" } th.n { "A" } th.n { "B" } th.n { "difference" } th.n { "interval" } th.n { "p" } th { "B against A" } } }
            tbody { @for row in rows { tr { (figure_cells(row)) } } }
        },
    )
}

fn figure_cells(row: &ComparisonRow) -> Markup {
    let [a, b] = row.values(digits).map(|value| value.unwrap_or_else(|| DASH.to_owned()));
    let estimate = row.estimate.map(|figures| (row.difference(&figures, 2), figures.p_value));
    html! {
        td { (row.name()) }
        td.n { (a) }
        td.n { (b) }
        @if let Some(([effect, low, high], p)) = estimate {
            td.n { (effect) }
            td.n { (low) " to " (high) }
            td.n { (probability(p)) }
        } @else {
            td.n { "–" } td.n { "–" } td.n { "–" }
        }
        td.why { strong { (row.outcome.to_string().to_uppercase()) } @if !row.reason.is_empty() { ": " (row.reason) } }
    }
}

/// Both parts, each under its run's name; empty parts are left out.
fn each([a, b]: [Markup; 2]) -> Markup {
    html! { @for (name, part) in [("A", a), ("B", b)] { @if !part.0.is_empty() { h3 { (name) } (part) } } }
}

/// The classes with samples in both runs.
fn pairs<'a>([a, b]: [&Report<'a>; 2]) -> Vec<[ClassLatency<'a>; 2]> {
    let of_b = b.latencies();
    let pair = |a: ClassLatency<'a>| {
        let b = of_b.iter().find(|b| b.class == a.class)?;
        Some([a, *b])
    };
    a.latencies().into_iter().filter_map(pair).collect()
}

/// The columns of both runs for one class; `None` if either run has none.
fn both<C: Metric, L: Metric>(
    [a, b]: [&Report<'_>; 2],
    of_a: Option<&MetricSeries<C, L>>,
    of_b: Option<&MetricSeries<C, L>>,
    class: L,
) -> Option<Both<C>> {
    let both = [columns(a, of_a?, class), columns(b, of_b?, class)];
    both.iter().all(|columns| !columns.is_empty()).then_some(both)
}

/// A row with both runs' values, marked if they differ.
fn difference_row(name: &str, a: &str, b: &str) -> Markup {
    html! { tr { td { (name) } td { (a) } td { (b) } td { @if a != b { "≠" } } } }
}
