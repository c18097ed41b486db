//! The page of a comparison of targets: which is the cheapest, by how much, how sure; then each case.

use std::collections::BTreeMap;

use bench::compare::{
    BenchAssertionOutcome, BenchComparison, CaseComparison, CellFigureComparison, PublishedComparison,
    TargetComparison,
};
use bench::output::{CaseAnswer, CaseRemark, ColumnFormat, REMARKS_SHOWN, no_usable_round, wording};
use experiment::Ratio;
use maud::{Markup, html};
use model::figures::FigureUnit;
use records::kinds::ExperimentOutcome;
use records::text::quantity;

use super::plot::effects::{self, EffectRow, RATIO};
use super::plot::{AxisScale, Plot, PlotLine, TimeMarks, round_steps, short};
use super::{made_by, page, scrolled, section};
use crate::numbers::DASH;

/// The most lines of a plot, each with its own dashes and colour.
const LINES_MAX: usize = 10;
/// Rates that differ by less than this share are one place of the axis.
const RATES_DIFFER: f64 = 1.02;
/// The figure of cost.
const CPU_PER_REQUEST: &str = "target.cpu.per_request";

/// The figures of a case's table, with their titles. JSON and CSV have all.
const FIGURES: [(&str, &str); 21] = [
    (CPU_PER_REQUEST, "CPU time per request"),
    ("target.cpu.user_per_request", "in user mode"),
    ("target.cpu.system_per_request", "in the kernel"),
    ("target.requests.per_cpu_second", "requests per CPU-second"),
    ("target.cpu.percent", "CPU use (100: one core)"),
    ("rate.achieved", "achieved rate"),
    ("response.p50", "response p50 (CO-corrected)"),
    ("response.p99", "response p99 (CO-corrected)"),
    ("service.p50", "service p50"),
    ("service.p99", "service p99"),
    ("handshake_full.p50", "full handshake p50"),
    ("handshake_full.p99", "full handshake p99"),
    ("handshake_resumed.p50", "resumed handshake p50"),
    ("handshake_resumed.p99", "resumed handshake p99"),
    ("target.memory.pss_at_rest", "memory at rest (PSS)"),
    ("target.memory.pss_peak", "memory peak (PSS)"),
    ("target.threads", "threads"),
    ("target.context_switches.per_request", "context switches per request"),
    ("bytes.out", "bytes received"),
    ("generator.cpu.percent", "generator's CPU use"),
    ("upstream.cpu.per_request", "upstream's CPU time per request"),
];

/// The page. `conditions` are the conditions of the run, such as the seed and the machine; `command` is the command
/// that made it.
pub fn targets_page(comparison: &BenchComparison, conditions: &[(String, String)], command: &str) -> String {
    let cases = &comparison.cases;
    let baseline = &comparison.baseline;
    let body = html! {
        p.lead { (comparison.title) }
        @if !comparison.assertions.is_empty() { (assertions(comparison)) }
        ul.tiles { @for case in cases { (answer(case, baseline)) } }
        (section(&format!("Ratios to {baseline}"), &ratios(comparison)))
        (section("Conditions", &conditions_table(comparison, conditions)))
        (section("What to bear in mind", &html! { ul { @for note in &comparison.notes { li { (note) } } } }))
        @for case in cases {
            section {
                h2 { (case.name) }
                p { (wording::question(case)) "." }
                (remarks(case))
                (curves(case))
                (figure_table(case, baseline))
                (negotiated(case))
            }
        }
        (section("Cost against rate", &cost_against_rate(cases)))
        (section("Published figures, on other machines", &published(&comparison.published)))
        (made_by(command))
    };
    page(&format!("tlsdash bench: {}", comparison.name), &body)
}

fn answer(case: &CaseComparison, baseline: &str) -> Markup {
    let CaseAnswer { headline, sentence } = CaseAnswer::of(case, baseline);
    html! {
        li.tile {
            span.title { (case.name) ": " (wording::question(case)) }
            strong { (headline) }
            span.sentence { (sentence) }
        }
    }
}

/// The plots of ratios with their legend; empty without ratios.
fn ratios(comparison: &BenchComparison) -> Markup {
    let BenchComparison { cases, baseline, .. } = comparison;
    let plots: Vec<Markup> = cases.iter().map(|case| forest(case, baseline)).collect();
    html! {
        @if plots.iter().any(|plot| !plot.0.is_empty()) {
            @for plot in &plots { (plot) }
            p.dim { "Logarithmic scale. A filled dot shows a difference. " (wording::method(comparison)) "." }
        }
    }
}

fn forest(case: &CaseComparison, baseline: &str) -> Markup {
    let effect = |target: &TargetComparison| {
        let figure = target.figure(&case.figure)?;
        let ratio = figure.ratio?;
        let verdict = wording::verdict(target, baseline);
        Some(EffectRow {
            name: target.name.clone(),
            finding: format!("{} ({}), {verdict}", wording::ratio(ratio.mean), wording::interval(figure)),
            low: ratio.low,
            value: ratio.mean,
            high: ratio.high,
            is_shown: is_shown(target),
        })
    };
    let effects: Vec<EffectRow> = case.targets.iter().filter_map(effect).collect();
    effects::markup(&format!("{}: {}", case.name, wording::question(case)), &effects, &RATIO)
}

fn is_shown(target: &TargetComparison) -> bool {
    target.verdict.as_ref().is_some_and(|verdict| {
        matches!(verdict.outcome, ExperimentOutcome::Better | ExperimentOutcome::Worse)
    })
}

/// The remarks that matter most; the others are folded.
fn remarks(case: &CaseComparison) -> Markup {
    let all = CaseRemark::all(case);
    let none = no_usable_round(case, &all);
    let (shown, more) = all.split_at(all.len().min(REMARKS_SHOWN));
    let list = |remarks: &[CaseRemark<'_>]| {
        html! { ul { @for remark in remarks { li { strong { (remark.targets.join(", ")) } ": " (remark.text) } } } }
    };
    html! {
        // Its reason is the first remark.
        @if none.is_some() { p.warn { "No usable round." } }
        @if !shown.is_empty() { (list(shown)) }
        @if !more.is_empty() { details { summary { (more.len()) " more" } (list(more)) } }
    }
}

/// The latency curves of the targets, laid over each other.
fn curves(case: &CaseComparison) -> Markup {
    let series = |target: &TargetComparison| {
        let point = |(percentile, us): &(f64, f64)| {
            // The curve ends where a sample of a million would end.
            let above = (1.0 - percentile / 100.0).max(1e-6);
            (-above.log10(), Some(us / 1e3))
        };
        PlotLine { name: target.name.clone(), points: target.response_curve.iter().map(point).collect() }
    };
    let all: Vec<PlotLine> =
        case.targets.iter().filter(|target| !target.response_curve.is_empty()).map(series).collect();
    plots(all, |series, part| {
        super::plot::curves::plot(format!("{}: response time by percentile{part}", case.name), series)
    })
}

/// Plots of at most ten lines each.
fn plots(mut series: Vec<PlotLine>, plot: impl Fn(Vec<PlotLine>, &str) -> Plot) -> Markup {
    let mut parts = Vec::new();
    let is_one = series.len() <= LINES_MAX;
    while !series.is_empty() {
        let rest = series.split_off(series.len().min(LINES_MAX));
        let part = if is_one { String::new() } else { format!(", part {}", parts.len() + 1) };
        parts.push(plot(series, &part).markup());
        series = rest;
    }
    html! { @for part in parts { (part) } }
}

/// A row for each figure, a column for each target: the median, and the ratio with its interval.
fn figure_table(case: &CaseComparison, baseline: &str) -> Markup {
    let format = |name: &str| ColumnFormat::of_figure(case, name);
    let rows: Vec<(&str, &str, ColumnFormat)> =
        FIGURES.into_iter().filter_map(|(name, title)| Some((name, title, format(name)?))).collect();
    if rows.is_empty() {
        return html! {};
    }
    let table = html! {
        thead { tr { th { "median of the rounds" } @for target in &case.targets {
            th.n { (target.name) @if target.name == baseline { br; span.dim { "baseline" } } }
        } } }
        tbody { @for (name, title, format) in rows { tr {
            td { (format.heading(title)) }
            @for target in &case.targets { td.n { (cell(target.figure(name), format)) } }
        } } }
    };
    scrolled(
        "Below a median: its ratio to the baseline with the 95 % interval. In brackets: every round is in doubt.",
        &table,
    )
}

fn cell(figure: Option<&CellFigureComparison>, format: ColumnFormat) -> Markup {
    html! {
        (format.median(figure))
        @if let Some(Ratio { mean, low, high, .. }) = figure.and_then(|figure| figure.ratio) {
            @let [mean, low, high] = [mean, low, high].map(|ratio| quantity::ratio(ratio, 2));
            br; span.dim { (mean) " (" (low) "–" (high) ")" }
        }
    }
}

/// The negotiated parameters; in one sentence if they are the same for all targets.
fn negotiated(case: &CaseComparison) -> Markup {
    let mut by_words: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for target in &case.targets {
        for words in &target.negotiated {
            by_words.entry(words).or_default().push(&target.name);
        }
    }
    html! {
        @for (words, targets) in by_words { p.dim { "Negotiated by " (targets.join(", ")) ": " (words) "." } }
    }
}

/// CPU time per request over the achieved rate, in the cases whose targets or variants have different rates.
fn cost_against_rate(cases: &[CaseComparison]) -> Markup {
    let mut groups: BTreeMap<String, Vec<&CaseComparison>> = BTreeMap::new();
    for case in cases {
        groups.entry(without_rate(&case.name)).or_default().push(case);
    }
    html! { @for (name, cases) in groups { (cost_plot(&name, &cases)) } }
}

/// The name of a case of a matrix without its rate, so variants that differ only in the rate are one line.
fn without_rate(name: &str) -> String {
    let words = name.split(' ').map(|word| {
        let parts: Vec<&str> = word.split(',').filter(|part| !part.starts_with("rate=")).collect();
        parts.join(",")
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn cost_plot(name: &str, cases: &[&CaseComparison]) -> Markup {
    // By name, in the order of the scenario: a case may leave targets out.
    let mut all: Vec<PlotLine> = Vec::new();
    for target in cases.iter().flat_map(|case| &case.targets) {
        let (Some(rate), Some(cost)) = (target.figure("rate.achieved"), target.figure(CPU_PER_REQUEST))
        else {
            continue;
        };
        let point = (rate.median, Some(cost.median));
        match all.iter_mut().find(|series| series.name == target.name) {
            Some(series) => series.points.push(point),
            None => all.push(PlotLine { name: target.name.clone(), points: vec![point] }),
        }
    }
    let rates: Vec<f64> = all
        .iter()
        .flat_map(|series| &series.points)
        .map(|(rate, _)| *rate)
        .filter(|rate| *rate > 0.0)
        .collect();
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    if high < low * RATES_DIFFER {
        return html! {};
    }
    for series in &mut all {
        series.points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    plots(all, |series, part| Plot {
        title: format!("{name}: CPU time per request by the achieved rate{part}"),
        x_name: "requests per second, achieved",
        x_ticks: round_steps(low, high, 6.0).into_iter().map(|rate| (rate, short(rate))).collect(),
        x_text: |rate| format!("{}/s", short(rate)),
        y_name: "µs",
        scale: AxisScale::Linear,
        series,
        marks: TimeMarks::default(),
    })
}

fn conditions_table(comparison: &BenchComparison, conditions: &[(String, String)]) -> Markup {
    let table = html! {
        tbody {
            @for (name, value) in conditions { tr { th scope="row" { (name) } td { (value) } } }
            tr { th scope="row" { "state of the machine" } td { (wording::machine(comparison)) } }
        }
    };
    scrolled("Conditions of the run", &table)
}

fn assertions(comparison: &BenchComparison) -> Markup {
    html! {
        ul {
            @for result in &comparison.assertions {
                @let (class, word, reason) = match &result.outcome {
                    BenchAssertionOutcome::Holds(reason) => ("pass", "✓ pass", reason),
                    BenchAssertionOutcome::Breached(reason) => ("fail", "✗ FAIL", reason),
                };
                li.(class) { (word) ": " (result.condition) " of " (result.target) " in " (result.case) ": " (reason) }
            }
        }
    }
}

fn published(all: &[PublishedComparison]) -> Markup {
    if all.is_empty() {
        return html! {};
    }
    let show = |value: Option<f64>, unit: FigureUnit| {
        value.map_or_else(|| DASH.to_owned(), |value| unit.show(value))
    };
    let table = html! {
        thead { tr { th { "case" } th { "target" } th { "figure" } th.n { "published" } th.n { "measured" } th.n { "measured / published" } } }
        tbody { @for figure in all { tr {
            td { (figure.case) } td { (figure.target) } td { (figure.figure) }
            td.n { (show(Some(figure.published), figure.unit)) }
            td.n { (show(figure.measured, figure.unit)) }
            td.n { (figure.ratio.map_or_else(|| DASH.to_owned(), wording::ratio)) }
        } } }
    };
    scrolled("Published and measured figures", &table)
}
