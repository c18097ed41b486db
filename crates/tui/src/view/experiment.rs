//! Experiments: two values of a setting compared in pairs of blocks, and what they came to.
//!
//! ```text
//! +- A/B 1: proxy.workers, A 1, B 2 ------------------------------------------------+
//! | a/b, pair 3 of 12, B in force for 00:07 of 00:10                                 |
//! | figure              A        B    B against A                   by chance        |
//! | exchange.p99 *   1.93     1.71    -11.4 % (-14.0 to -8.6)       0.003   better   |
//! +----------------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::text::{Line, Span};
use telemetry::EstimateRecord;
use telemetry::experiment::{Outcome, Stage};
use telemetry::model::{Compared, Experiment};

use super::overlay;
use crate::format;
use crate::state::State;

const LINE_CELLS: usize = 114;
const NAME_CELLS: usize = 24;
const FIGURE_CELLS: usize = 10;
const EFFECT_CELLS: usize = 36;
const CHANCE_CELLS: usize = 12;
/// Earlier experiments that are told in a line each.
const EARLIER_MAX: usize = 8;

/// Draws the latest experiment, and the ones before it in a line each.
pub(super) fn render(state: &State, frame: &mut Frame<'_>) {
    let theme = state.theme;
    let experiments = state.experiments();
    let (heading, mut lines) = match experiments.last() {
        None => ("A/B".to_owned(), vec![Line::styled("no experiment yet", theme.quiet())]),
        Some(experiment) => (title(experiment), latest(state, experiment)),
    };
    if let Some(why) = &state.tuning.complaint {
        lines.push(Line::styled(why.clone(), theme.warning()));
    }
    let earlier = experiments.iter().rev().skip(1).take(EARLIER_MAX);
    lines.extend(earlier.map(|experiment| {
        let verdict = experiment.verdict().map_or_else(|| "cut off".to_owned(), |v| v.outcome.to_string());
        Line::styled(format!("{}: {verdict}", title(experiment)), theme.quiet())
    }));
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, lines.len())) else { return };
    overlay::render(state, frame, area, &heading, &lines);
}

fn title(experiment: &Experiment) -> String {
    let plan = &experiment.state;
    format!("A/B {}: {}, A {}, B {}", plan.number, plan.setting, plan.a, plan.b)
}

fn latest(state: &State, experiment: &Experiment) -> Vec<Line<'static>> {
    let theme = state.theme;
    let mut lines = vec![Line::styled(progress(state, experiment), theme.label())];
    let name = format!("{:<NAME_CELLS$}", "figure");
    let effect = format!("{:<EFFECT_CELLS$}", "  B against A, with its interval");
    let columns =
        format!("{name}{:>FIGURE_CELLS$}{:>FIGURE_CELLS$}{effect}{:<CHANCE_CELLS$}", "A", "B", "by chance");
    lines.push(Line::styled(columns, theme.quiet()));
    for compared in &experiment.metrics {
        lines.push(figure(state, compared));
        let verdict = compared.verdict.as_ref().or(compared.calibration.as_ref());
        if let Some(verdict) = verdict.filter(|verdict| !verdict.reason.is_empty()) {
            lines.push(Line::styled(format!("  {}", verdict.reason), theme.quiet()));
        }
    }
    lines
}

/// Where the experiment stands.
fn progress(state: &State, experiment: &Experiment) -> String {
    let plan = &experiment.state;
    if experiment.verdict().is_some() {
        return format!("over after {} pairs of {}; * is what it was made for", plan.pair, plan.pairs);
    }
    let seconds = |us: u64| format::clock(us / 1_000_000);
    let in_block = experiment.in_block_us(state.last_us()).map_or_else(String::new, |us| {
        format!(
            ", {} in force for {} of {}",
            plan.arm.to_string().to_uppercase(),
            seconds(us),
            seconds(plan.block_us)
        )
    });
    let what = match plan.stage {
        Stage::Calibration => "a/a, both with the first value: what differs does so by chance",
        Stage::Comparison => "a/b",
    };
    format!("{what}, pair {} of {}{in_block}", plan.pair, plan.pairs)
}

fn figure(state: &State, compared: &Compared) -> Line<'static> {
    let theme = state.theme;
    let star = if compared.is_primary { " *" } else { "" };
    let name = format::cut(&format!("{}{star}", compared.metric), NAME_CELLS - 1, theme.glyphs);
    let verdict = compared.verdict.as_ref().or(compared.calibration.as_ref());
    let estimate = verdict.and_then(|verdict| verdict.estimate).or(compared.running);
    let none = theme.glyphs.none();
    let number = |of: fn(&EstimateRecord) -> f64| {
        estimate.as_ref().map_or_else(|| none.to_string(), |estimate| format::plain(of(estimate)))
    };
    let effect = estimate.as_ref().map_or_else(
        || format!("  {none}"),
        |e| format!("  {:+.1} % ({:+.1} to {:+.1}, {:.0} %)", e.effect, e.low, e.high, e.confidence_percent),
    );
    let chance = estimate.as_ref().map_or_else(|| none.to_string(), |e| format!("{:.3}", e.p_value));
    let (word, style) = match (&compared.verdict, &compared.calibration) {
        (Some(verdict), _) => {
            let style = match verdict.outcome {
                Outcome::Better => theme.good(),
                Outcome::Worse => theme.warning(),
                _ => theme.notice(),
            };
            (verdict.outcome.to_string().to_uppercase(), style)
        }
        (None, Some(calibration)) => (format!("a/a: {}", calibration.outcome), theme.quiet()),
        (None, None) => ("not over".to_owned(), theme.quiet()),
    };
    Line::from(vec![
        Span::styled(format!("{name:<NAME_CELLS$}"), theme.label()),
        Span::styled(
            format!("{:>FIGURE_CELLS$}{:>FIGURE_CELLS$}", number(|e| e.a), number(|e| e.b)),
            theme.figure(),
        ),
        Span::styled(format!("{effect:<EFFECT_CELLS$}"), theme.figure()),
        Span::styled(format!("{chance:<CHANCE_CELLS$}"), theme.label()),
        Span::styled(word, style),
    ])
}

/// In a few letters, for the top of the screen; nothing where none is under way.
pub(super) fn badge(state: &State) -> Option<String> {
    let experiment = *state.experiments().last()?;
    let plan = &experiment.state;
    let name = plan.stage.to_string().to_uppercase();
    experiment
        .verdict()
        .is_none()
        .then(|| format!("{name} {}/{} {}", plan.pair, plan.pairs, plan.arm.to_string().to_uppercase()))
}
