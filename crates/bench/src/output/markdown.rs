//! The comparison as Markdown, for pull requests and documents.

use std::fmt::Write as _;

use experiment::Ratio;
use model::figures::FigureUnit;
use records::text::quantity;

use super::column::ColumnFormat;
use super::wording::{self, UNKNOWN};
use super::{CaseRemark, no_usable_round, remarks};
use crate::compare::{
    BenchAssertionOutcome, BenchComparison, CaseComparison, CellFigureComparison, PublishedComparison,
};
use crate::scenario::Question;

/// The secondary figures, with their headings.
const BESIDE: [(&str, &str); 12] = [
    ("rate.achieved", "rate"),
    ("response.p50", "response p50"),
    ("response.p99", "response p99"),
    ("service.p50", "service p50"),
    ("handshake_full.p50", "full handshake p50"),
    ("handshake_resumed.p50", "resumed handshake p50"),
    ("target.cpu.user_per_request", "CPU user"),
    ("target.cpu.system_per_request", "CPU system"),
    ("target.memory.pss_at_rest", "memory at rest"),
    ("target.memory.pss_peak", "memory peak"),
    ("target.threads", "threads"),
    ("generator.cpu.per_request", "generator CPU"),
];

pub fn markdown(comparison: &BenchComparison) -> String {
    // Writing into a string does not fail.
    let mut out = String::new();
    let _ = writeln!(out, "# {}: {}\n", escape(&comparison.name), escape(&comparison.title));
    let _ = writeln!(out, "{}.", escape(&wording::method(comparison)));
    for case in &comparison.cases {
        write_case(&mut out, case, &comparison.baseline);
    }
    write_published(&mut out, &comparison.published);
    write_assertions(&mut out, comparison);
    let _ = writeln!(out, "\n## Notes\n\n- Machine: {}.", escape(&wording::machine(comparison)));
    for note in &comparison.notes {
        let _ = writeln!(out, "- {}", escape(note));
    }
    out
}

fn write_case(out: &mut String, case: &CaseComparison, baseline: &str) {
    let _ = writeln!(out, "\n## {}\n\n{}.\n", escape(&case.name), escape(&wording::question(case)));
    let remarks = CaseRemark::all(case);
    let none = no_usable_round(case, &remarks);
    if let Some(text) = &none {
        let _ = writeln!(out, "**{}**", escape(text));
    } else {
        write_verdicts(out, case, baseline);
    }
    write_figures(out, case, none.is_some());
    for (at, remark) in remarks::lines(case, &remarks).iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{gap}- {}", escape(remark));
    }
}

/// The answer to the question of the case.
fn write_verdicts(out: &mut String, case: &CaseComparison, baseline: &str) {
    let Some(format) = ColumnFormat::of_figure(case, &case.figure) else { return };
    let primary = format.heading(primary_title(case));
    let _ = writeln!(out, "| target | {primary} | ratio | 95 % interval | verdict |");
    out.push_str("|---|---:|---:|---|---|\n");
    for target in &case.targets {
        let compared = target.figure(&case.figure);
        let ratio = compared.and_then(|figure| figure.ratio).map(|ratio| wording::ratio(ratio.mean));
        let cells = [
            target.name.clone(),
            format.median(compared),
            ratio.unwrap_or_else(|| UNKNOWN.to_owned()),
            compared.map_or_else(String::new, wording::interval),
            wording::verdict(target, baseline),
        ];
        row(out, cells.into_iter());
    }
}

fn primary_title(case: &CaseComparison) -> &'static str {
    if case.question == Question::Capacity { "requests" } else { "CPU a request" }
}

/// The other figures: a row for each figure, a column for each target; with the primary one if its rounds are all in
/// doubt. Nothing without figures.
fn write_figures(out: &mut String, case: &CaseComparison, has_primary: bool) {
    let primary = has_primary.then(|| (&*case.figure, primary_title(case)));
    let others = BESIDE.into_iter().filter(|(name, _)| *name != case.figure);
    let shown = primary.into_iter().chain(others);
    let shown = shown.filter_map(|(name, title)| Some((name, title, ColumnFormat::of_figure(case, name)?)));
    for (at, (name, title, format)) in shown.enumerate() {
        if at == 0 {
            out.push('\n');
            let targets = case.targets.iter().map(|target| target.name.clone());
            row(out, [String::new()].into_iter().chain(targets));
            let _ = writeln!(out, "|---|{}", "---:|".repeat(case.targets.len()));
        }
        let cells = case.targets.iter().map(|target| with_ratio(target.figure(name), format));
        row(out, [format.heading(title)].into_iter().chain(cells));
    }
}

/// The median with its ratio to the baseline.
fn with_ratio(figure: Option<&CellFigureComparison>, format: ColumnFormat) -> String {
    let ratio = figure.and_then(|figure| figure.ratio);
    let ratio = ratio.map(|Ratio { mean, low, high, .. }| {
        let [mean, low, high] = [mean, low, high].map(|ratio| quantity::ratio(ratio, 2));
        format!("; {mean} ({low} to {high})")
    });
    format.median(figure) + &ratio.unwrap_or_default()
}

fn write_published(out: &mut String, published: &[PublishedComparison]) {
    if published.is_empty() {
        return;
    }
    out.push_str("\n## Published figures, on other machines\n\n");
    out.push_str("| case | target | figure | published | measured | ratio |\n|---|---|---|---:|---:|---:|\n");
    let show = |value: Option<f64>, unit: FigureUnit| {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| unit.show(value))
    };
    for figure in published {
        let ratio = figure.ratio.map_or_else(|| UNKNOWN.to_owned(), wording::ratio);
        let values = [show(Some(figure.published), figure.unit), show(figure.measured, figure.unit), ratio];
        let names = [&figure.case, &figure.target, &figure.figure].map(Clone::clone);
        row(out, names.into_iter().chain(values));
    }
}

fn write_assertions(out: &mut String, comparison: &BenchComparison) {
    if comparison.assertions.is_empty() {
        return;
    }
    out.push_str(
        "\n## Assertions\n\n| line | target | case | condition | outcome |\n|---:|---|---|---|---|\n",
    );
    for result in &comparison.assertions {
        let outcome = match &result.outcome {
            BenchAssertionOutcome::Holds(reason) => format!("holds: {reason}"),
            BenchAssertionOutcome::Breached(reason) => format!("**failed**: {reason}"),
        };
        let names = [&result.target, &result.case, &result.condition].map(Clone::clone);
        row(out, [result.line.to_string()].into_iter().chain(names).chain([outcome]));
    }
}

fn row(out: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| escape(&cell)).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// A text that ends no cell and begins no tag.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
