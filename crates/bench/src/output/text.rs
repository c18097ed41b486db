//! The comparison on a terminal of 80 columns.

use model::figures::FigureUnit;
use records::text::table::{Align, TextTable, cut, cut_middle, wrap};

use super::column::ColumnFormat;
use super::wording::{self, UNKNOWN};
use super::{CaseAnswer, CaseRemark, no_usable_round, remarks};
use crate::compare::{BenchAssertionOutcome, BenchComparison, CaseComparison, TargetComparison};
use crate::scenario::Question;

const WIDTH: usize = 80;
const NAME_MAX: usize = 24;
/// The longest name of a figure or case beside published figures.
const FIGURE_MAX: usize = 18;

/// The figures beside the primary one, with their headings, the most telling first.
const BESIDE: [(&str, &str); 9] = [
    ("rate.achieved", "rate"),
    ("response.p50", "p50"),
    ("response.p99", "p99"),
    ("service.p50", "service p50"),
    ("target.cpu.percent", "CPU"),
    ("target.cpu.system_per_request", "system"),
    ("target.memory.pss_peak", "memory"),
    ("target.threads", "threads"),
    ("generator.cpu.percent", "generator"),
];

pub fn text(comparison: &BenchComparison) -> String {
    let mut lines = wrap(&format!("{}: {}", comparison.name, comparison.title), WIDTH, "  ");
    lines.extend(wrap(&wording::method(comparison), WIDTH, "  "));
    for case in &comparison.cases {
        lines.push(String::new());
        lines.extend(case_lines(case, &comparison.baseline));
    }
    lines.extend(published_lines(comparison));
    lines.extend(assertion_lines(comparison));
    lines.push(String::new());
    lines.extend(note_lines(comparison));
    lines.join("\n") + "\n"
}

fn case_lines(case: &CaseComparison, baseline: &str) -> Vec<String> {
    let mut lines = wrap(&format!("{}: {}", case.name, wording::question(case)), WIDTH, "  ");
    let indented = |line: String| format!("  {line}");
    let remarks = CaseRemark::all(case);
    let none = no_usable_round(case, &remarks);
    let first = if let Some(text) = &none {
        wrap(text, WIDTH - 2, "  ")
    } else {
        let answer = case.primary.then(|| CaseAnswer::of(case, baseline).headline);
        answer.into_iter().chain(verdict_table(case, baseline).lines(WIDTH - 2)).collect()
    };
    lines.extend(first.into_iter().map(indented));
    let figures = figure_table(case, none.is_some());
    if figures.has_figures() {
        lines.push(String::new());
        lines.extend(figures.lines(WIDTH - 2).into_iter().map(indented));
    }
    let shown = remarks::lines(case, &remarks).into_iter();
    lines.extend(shown.flat_map(|remark| wrap(&remark, WIDTH - 2, "  ")).map(indented));
    lines
}

/// The answer to the question of the case.
fn verdict_table(case: &CaseComparison, baseline: &str) -> TextTable {
    let primary = |target: &TargetComparison| target.figure(&case.figure).cloned();
    let mut table = names(case);
    figure_column(&mut table, case, &case.figure, primary_title(case));
    let ratio = |target: &TargetComparison| match primary(target).and_then(|figure| figure.ratio) {
        Some(ratio) => wording::ratio(ratio.mean),
        None if target.name == baseline => "1.000".to_owned(),
        None => UNKNOWN.to_owned(),
    };
    table.column(Align::Right, "ratio", case.targets.iter().map(ratio));
    let interval = |target| primary(target).as_ref().map_or_else(String::new, wording::interval);
    table.column(Align::Left, "95 % interval", case.targets.iter().map(interval));
    table.column(
        Align::Left,
        "verdict",
        case.targets.iter().map(|target| wording::verdict(target, baseline)),
    );
    table
}

fn primary_title(case: &CaseComparison) -> &'static str {
    if case.question == Question::Capacity { "requests" } else { "CPU" }
}

/// The other figures of each target; with the primary one if its rounds are all in doubt.
fn figure_table(case: &CaseComparison, has_primary: bool) -> TextTable {
    let mut table = names(case);
    if has_primary {
        figure_column(&mut table, case, &case.figure, primary_title(case));
    }
    for (name, title) in BESIDE.into_iter().filter(|(name, _)| *name != case.figure) {
        figure_column(&mut table, case, name, title);
    }
    table
}

fn names(case: &CaseComparison) -> TextTable {
    let mut table = TextTable::default();
    table.column(Align::Left, "target", case.targets.iter().map(|target| cut_middle(&target.name, NAME_MAX)));
    table
}

/// Adds the medians of a figure; nothing if no target has it.
fn figure_column(table: &mut TextTable, case: &CaseComparison, name: &str, title: &str) {
    let Some(format) = ColumnFormat::of_figure(case, name) else { return };
    let shown = case.targets.iter().map(|target| format.median(target.figure(name)));
    table.column(Align::Right, &format.heading(title), shown);
}

fn published_lines(comparison: &BenchComparison) -> Vec<String> {
    if comparison.published.is_empty() {
        return Vec::new();
    }
    let all = &comparison.published;
    let show = |value: Option<f64>, unit: FigureUnit| {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| unit.show(value))
    };
    let mut table = TextTable::default();
    table.column(Align::Left, "target", all.iter().map(|figure| cut_middle(&figure.target, NAME_MAX)));
    table.column(Align::Left, "figure", all.iter().map(|figure| cut(&figure.figure, FIGURE_MAX)));
    table.column(
        Align::Right,
        "published",
        all.iter().map(|figure| show(Some(figure.published), figure.unit)),
    );
    table.column(Align::Right, "measured", all.iter().map(|figure| show(figure.measured, figure.unit)));
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| UNKNOWN.to_owned(), wording::ratio);
    table.column(Align::Right, "ratio", all.iter().map(|figure| ratio(figure.ratio)));
    table.column(Align::Left, "case", all.iter().map(|figure| cut(&figure.case, FIGURE_MAX)));
    let lines = table.lines(WIDTH - 2).into_iter().map(|line| format!("  {line}"));
    [String::new(), "published figures, on other machines:".to_owned()].into_iter().chain(lines).collect()
}

fn assertion_lines(comparison: &BenchComparison) -> Vec<String> {
    let mut lines = Vec::new();
    for result in &comparison.assertions {
        let (word, reason) = match &result.outcome {
            BenchAssertionOutcome::Holds(reason) => ("holds", reason),
            BenchAssertionOutcome::Breached(reason) => ("FAILED", reason),
        };
        let text = format!(
            "{word}: {} of {} in {} (line {}): {reason}",
            result.condition, result.target, result.case, result.line
        );
        lines.extend(wrap(&text, WIDTH, "  "));
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

fn note_lines(comparison: &BenchComparison) -> Vec<String> {
    let machine = format!("machine: {}", wording::machine(comparison));
    let notes = comparison.notes.iter().map(|note| format!("note: {note}"));
    let brackets = comparison.cases.iter().flat_map(|case| &case.targets).any(|target| {
        let names = BESIDE.iter().map(|(name, _)| *name);
        names.filter_map(|name| target.figure(name)).any(|figure| figure.is_doubtful)
    });
    let brackets = brackets.then(|| "in brackets: every round of the figure is in doubt".to_owned());
    [machine].into_iter().chain(notes).chain(brackets).flat_map(|text| wrap(&text, WIDTH, "  ")).collect()
}
