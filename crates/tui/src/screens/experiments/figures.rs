//! The lines of an experiment's figures: A, B and their difference, with the verdict.

use model::figures::{FigureName, FigureUnit};
use model::runs::{ComparedFigure, Experiment};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::kinds::{Estimate, ExperimentOutcome, Stage};
use records::text::quantity;

use crate::state::State;
use crate::theme::format;

/// The cells of a figure in one line, and of one with the verdict below it.
const LINE_CELLS: usize = 114;
const TWO_LINES_CELLS: usize = 78;

#[derive(Clone, Copy)]
pub(super) struct FigureWidths {
    pub(super) name: usize,
    pub(super) figure: usize,
    pub(super) effect: usize,
    /// 0 if the verdict needs a line of its own for lack of room.
    pub(super) chance: usize,
    /// True if the difference needs one too.
    pub(super) is_three_lines: bool,
}

impl FigureWidths {
    pub(super) fn of(cells: usize) -> Self {
        if cells < LINE_CELLS {
            let is_three_lines = cells < TWO_LINES_CELLS;
            let name = if is_three_lines { cells.saturating_sub(18).clamp(8, 24) } else { 24 };
            Self { name, figure: 9, effect: 36, chance: 0, is_three_lines }
        } else {
            Self { name: 24, figure: 10, effect: 36, chance: 12, is_three_lines: false }
        }
    }

    pub(super) fn is_narrow(self) -> bool {
        self.chance == 0
    }
}

/// Returns how a figure compares by the pairs of the present stage.
pub(super) fn estimate<'a>(experiment: &Experiment, compared: &'a ComparedFigure) -> Option<&'a Estimate> {
    let verdict = match experiment.state.stage {
        Stage::Calibration => &compared.calibration,
        Stage::Comparison => &compared.verdict,
    };
    verdict.as_ref().map_or(compared.running.as_ref(), |verdict| verdict.estimate.as_ref())
}

/// Returns the result for a figure: in one line, or in two if there is little room.
pub(super) fn figure_lines(
    state: &State,
    experiment: &Experiment,
    compared: &ComparedFigure,
    widths: FigureWidths,
) -> Vec<Line<'static>> {
    let theme = state.theme;
    let FigureWidths { name: name_cells, figure, effect: effect_cells, chance: chance_cells, is_three_lines } =
        widths;
    let star = if compared.is_primary { " *" } else { "" };
    let name = format::cut(&compared.metric, name_cells - 1 - star.len(), theme.glyphs) + star;
    let estimate = estimate(experiment, compared);
    let none = theme.glyphs.none();
    let unit = compared.metric.parse().map_or(FigureUnit::Count, |name: FigureName| name.unit());
    let number = |of: fn(&Estimate) -> f64| {
        estimate.map_or_else(|| none.to_string(), |estimate| amount(of(estimate), unit))
    };
    let effect = estimate.map_or_else(
        || format!("  {none}"),
        |e| {
            let [effect, low, high] =
                quantity::difference([e.effect, e.low, e.high], experiment.judged(compared).unit(), 1);
            let text = format!("  {effect} ({low} to {high}, {})", e.confidence());
            let [times, over] = [theme.glyphs.times(), theme.glyphs.over()].map(String::from);
            text.replace('×', &times).replace('÷', &over)
        },
    );
    let chance = estimate.map_or_else(|| none.to_string(), |e| format!("{:.3}", e.p_value));
    let (word, style) = outcome(state, compared);
    let mut line = vec![
        Span::styled(format!("{name:<name_cells$}"), theme.label()),
        Span::styled(format!("{:>figure$}{:>figure$}", number(|e| e.a), number(|e| e.b)), theme.figure()),
        Span::styled(format!("{effect:<effect_cells$}"), theme.figure()),
    ];
    if widths.is_narrow() {
        let chance = if estimate.is_some() { format!(", by chance {chance}") } else { String::new() };
        let below = vec![Span::styled(format!("  {word}"), style), Span::styled(chance, theme.label())];
        let effect = is_three_lines.then(|| line.pop()).flatten();
        let lines = [Some(Line::from(line)), effect.map(Line::from), Some(Line::from(below))];
        return lines.into_iter().flatten().collect();
    }
    line.push(Span::styled(format!("{chance:<chance_cells$}"), theme.label()));
    line.push(Span::styled(word, style));
    vec![Line::from(line)]
}

/// Returns the verdict, or that there is none yet.
pub(super) fn outcome(state: &State, compared: &ComparedFigure) -> (String, Style) {
    let theme = state.theme;
    match (&compared.verdict, &compared.calibration) {
        (Some(verdict), _) => {
            let style = match verdict.outcome {
                ExperimentOutcome::Better => theme.good(),
                ExperimentOutcome::Worse => theme.warning(),
                _ => theme.notice(),
            };
            (verdict.outcome.to_string().to_uppercase(), style)
        }
        (None, Some(calibration)) => (format!("a/a: {}", calibration.outcome), theme.quiet()),
        (None, None) => ("not over".to_owned(), theme.quiet()),
    }
}

/// Formats a figure below a million in eight cells, in its unit; latencies in milliseconds as everywhere on the screen.
fn amount(figure: f64, unit: FigureUnit) -> String {
    let (number, unit) = match unit {
        FigureUnit::Micros => (figure / 1e3, " ms"),
        FigureUnit::Ratio => (figure * 100.0, "%"),
        FigureUnit::Percent => (figure, "%"),
        FigureUnit::PerSecond => (figure, "/s"),
        FigureUnit::Seconds => (figure, " s"),
        FigureUnit::Bytes => (figure, " B"),
        FigureUnit::Count => (figure, ""),
    };
    let decimals = match number.abs() {
        ..10.0 => 3,
        ..100.0 => 2,
        ..1_000.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_and_b_have_their_unit() {
        let shown = |figure, unit| amount(figure, unit);
        assert_eq!(shown(113.1, FigureUnit::Micros), "0.113 ms");
        assert_eq!(shown(12_345.0, FigureUnit::Micros), "12.35 ms");
        assert_eq!(shown(0.8, FigureUnit::Ratio), "80.00%");
        assert_eq!(shown(999_999.0, FigureUnit::PerSecond), "999999/s");
    }
}
