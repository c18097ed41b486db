//! The comparison as Markdown, for pull requests and documents.

use std::fmt::Write as _;

use model::figures::FigureUnit;

use super::column::ColumnFormat;
use super::wording::{self, UNKNOWN};
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
    write_verdicts(out, case, baseline);
    out.push('\n');
    write_figures(out, case);
    for (at, (target, remark)) in all_remarks(case).enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{gap}- {}: {}", escape(target), escape(&remark));
    }
}

fn all_remarks(case: &CaseComparison) -> impl Iterator<Item = (&str, String)> {
    let of_target = |target| wording::remarks(case, target).into_iter().map(|remark| (&*target.name, remark));
    case.targets.iter().flat_map(of_target)
}

/// The answer to the question of the case.
fn write_verdicts(out: &mut String, case: &CaseComparison, baseline: &str) {
    let format = row_format(case, &case.figure);
    let primary = if case.question == Question::Capacity { "requests" } else { "CPU a request" };
    let primary = format.map_or_else(|| primary.to_owned(), |format| format.heading(primary));
    let _ = writeln!(out, "| target | {primary} | ratio | 95 % interval | verdict |");
    out.push_str("|---|---:|---:|---|---|\n");
    for target in &case.targets {
        let compared = target.figure(&case.figure);
        let ratio = compared.and_then(|figure| figure.ratio).map(|ratio| format!("{:.3}", ratio.mean));
        let cells = [
            target.name.clone(),
            median(compared, format),
            ratio.unwrap_or_else(|| UNKNOWN.to_owned()),
            compared.map_or_else(String::new, wording::interval),
            wording::verdict(target, baseline),
        ];
        row(out, cells.into_iter());
    }
}

/// The other figures: a row for each figure, a column for each target.
fn write_figures(out: &mut String, case: &CaseComparison) {
    row(out, [String::new()].into_iter().chain(case.targets.iter().map(|target| target.name.clone())));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(case.targets.len()));
    for (name, title) in BESIDE.into_iter().filter(|(name, _)| *name != case.figure) {
        let Some(format) = row_format(case, name) else { continue };
        let cells = case.targets.iter().map(|target| with_ratio(target.figure(name), format));
        row(out, [format.heading(title)].into_iter().chain(cells));
    }
}

/// How the medians of a figure are written; `None` if no target has it.
fn row_format(case: &CaseComparison, name: &str) -> Option<ColumnFormat> {
    let found: Vec<&CellFigureComparison> =
        case.targets.iter().filter_map(|target| target.figure(name)).collect();
    let unit = found.first()?.unit;
    Some(ColumnFormat::of(found.iter().map(|figure| figure.median), unit))
}

/// The median, in brackets if every round of it is in doubt.
fn median(figure: Option<&CellFigureComparison>, format: Option<ColumnFormat>) -> String {
    match (figure, format) {
        (Some(figure), Some(format)) if figure.is_doubtful => format!("({})", format.show(figure.median)),
        (Some(figure), Some(format)) => format.show(figure.median),
        _ => UNKNOWN.to_owned(),
    }
}

/// The median with its ratio to the baseline.
fn with_ratio(figure: Option<&CellFigureComparison>, format: ColumnFormat) -> String {
    let ratio = figure.and_then(|figure| figure.ratio);
    let ratio = ratio.map(|ratio| format!("; {:.2} ({:.2} to {:.2})", ratio.mean, ratio.low, ratio.high));
    median(figure, Some(format)) + &ratio.unwrap_or_default()
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
        let ratio = figure.ratio.map_or_else(|| UNKNOWN.to_owned(), |ratio| format!("{ratio:.3}"));
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
