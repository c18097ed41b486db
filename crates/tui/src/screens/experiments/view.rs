//! Experiments: two values of a setting compared in pairs of blocks, and the result.
//!
//! ```text
//! +- A/B 1: proxy.workers, A 1, B 2 ------------------------------------------------+
//! | a/b, pair 3 of 12, B in force for 00:07 of 00:10                                 |
//! | figure              A        B    B against A                   by chance        |
//! | exchange.p99 * 1.930 ms 1.710 ms  -11.4 % (-14.0 to -8.6)       0.003   better   |
//! +----------------------------------------------------------------------------------+
//! ```

use model::figures::{FigureName, FigureUnit};
use model::runs::{ComparedFigure, Experiment};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::kinds::{Estimate, ExperimentOutcome, Stage};
use records::text::quantity;

use super::form_view as experiment_form;
use crate::format;
use crate::prompt::PromptPurpose;
use crate::state::State;
use crate::widgets::parts::{heading, put};

/// The cells of a figure in one line, and of one with the verdict below it.
const LINE_CELLS: usize = 114;
const TWO_LINES_CELLS: usize = 76;
/// The earlier experiments that are shown, one line each.
const EARLIER_MAX: usize = 8;

#[derive(Clone, Copy)]
struct FigureWidths {
    name: usize,
    figure: usize,
    effect: usize,
    /// 0 if the verdict needs a line of its own for lack of room.
    chance: usize,
    /// True if the difference needs one too.
    is_three_lines: bool,
}

impl FigureWidths {
    fn of(cells: usize) -> Self {
        if cells < LINE_CELLS {
            let is_three_lines = cells < TWO_LINES_CELLS;
            let name = if is_three_lines { cells.saturating_sub(18).clamp(8, 24) } else { 24 };
            Self { name, figure: 9, effect: 34, chance: 0, is_three_lines }
        } else {
            Self { name: 24, figure: 10, effect: 36, chance: 12, is_three_lines: false }
        }
    }

    fn is_narrow(self) -> bool {
        self.chance == 0
    }
}

/// Draws the latest experiment, and a line for each earlier one.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let theme = state.theme;
    let cells = usize::from(area.width);
    if let Some(PromptPurpose::Experiment(form)) = state.prompt.as_ref().map(|prompt| &prompt.purpose) {
        return put(frame, area, &experiment_form::lines(state, form, area.width));
    }
    let experiments = state.experiments();
    let (title, mut lines) = match experiments.last() {
        None => {
            let text = format::wrapped(nothing_yet(state), cells).into_iter();
            ("A/B".to_owned(), text.map(|line| Line::styled(line, theme.quiet())).collect())
        }
        Some(experiment) => (name(experiment), latest(state, experiment, cells)),
    };
    if let Some(why) = &state.tuning.complaint {
        let why = format::wrapped(why, cells);
        lines.extend(why.into_iter().map(|line| Line::styled(line, theme.warning())));
    }
    let earlier = experiments.iter().rev().skip(1).take(EARLIER_MAX);
    lines.extend(earlier.map(|experiment| {
        let verdict = experiment.verdict().map_or_else(|| "cut off".to_owned(), |v| v.outcome.to_string());
        Line::styled(format!("{}: {verdict}", name(experiment)), theme.quiet())
    }));
    lines.insert(0, heading(theme, &[&title], "", area.width));
    put(frame, area, &lines);
}

fn nothing_yet(state: &State) -> &'static str {
    if state.obstacle().is_some() {
        "no experiment yet"
    } else {
        "no experiment yet; e begins one: two values of a setting, by turns"
    }
}

fn name(experiment: &Experiment) -> String {
    let plan = &experiment.state;
    format!("A/B {}: {}, A {}, B {}", plan.number, plan.setting, plan.a, plan.b)
}

fn latest(state: &State, experiment: &Experiment, cells: usize) -> Vec<Line<'static>> {
    let theme = state.theme;
    let widths = FigureWidths::of(cells);
    let FigureWidths { name, figure, effect, chance, is_three_lines } = widths;
    let progress = format::wrapped(&progress(state, experiment), cells);
    let mut lines: Vec<_> = progress.into_iter().map(|line| Line::styled(line, theme.label())).collect();
    let (what, effect) = if is_three_lines { ("", 0) } else { ("  B against A, with its interval", effect) };
    let chance_title = if widths.is_narrow() { "" } else { "by chance" };
    let columns =
        format!("{:<name$}{:>figure$}{:>figure$}{what:<effect$}{chance_title:<chance$}", "figure", "A", "B");
    lines.push(Line::styled(columns, theme.quiet()));
    for compared in &experiment.metrics {
        lines.extend(figure_lines(state, compared, widths));
        let verdict = compared.verdict.as_ref().or(compared.calibration.as_ref());
        // The sentence has the reason of the primary figure.
        let is_told = experiment.is_over() && compared.is_primary;
        if let Some(verdict) = verdict.filter(|verdict| !verdict.reason.is_empty() && !is_told) {
            let reason = format::wrapped(&verdict.reason, cells.saturating_sub(2));
            lines.extend(reason.into_iter().map(|line| Line::styled(format!("  {line}"), theme.quiet())));
        }
    }
    lines
}

/// Says in a sentence what the primary figure shows.
fn sentence(experiment: &Experiment) -> String {
    let plan = &experiment.state;
    let Some((compared, verdict)) = experiment.primary().zip(experiment.verdict()) else {
        return String::new();
    };
    let (metric, setting) = (&compared.metric, &plan.setting);
    let better = match verdict.outcome {
        ExperimentOutcome::Better => {
            format!("{setting} {} (B) is better than {} (A) by {metric}", plan.b, plan.a)
        }
        ExperimentOutcome::Worse => {
            format!("{setting} {} (B) is worse than {} (A) by {metric}", plan.b, plan.a)
        }
        ExperimentOutcome::NoDifference => {
            let unseen =
                verdict.estimate.map(|estimate| estimate.resolution).filter(|percent| *percent > 0.0);
            let unseen = unseen.map_or_else(String::new, |percent| {
                format!("; one below {percent:.0} % would take more pairs, or longer blocks")
            });
            format!("{metric} shows no difference between A and B{unseen}")
        }
        _ => format!("not enough to judge A and B by {metric}: {}", verdict.reason),
    };
    let p = verdict.estimate.map_or_else(String::new, |estimate| format!(" (p={:.3})", estimate.p_value));
    format!("{better}{p}. ")
}

/// Returns the complete pairs of an experiment that is over. The record of a verdict says how many were planned.
fn pairs_made(state: &State, experiment: &Experiment) -> u64 {
    let plan = &experiment.state;
    let Some(last) = experiment.switches().next_back().filter(|switch| switch.stage == plan.stage) else {
        return plan.pair;
    };
    // A block ends with an interval, so a shorter one was ended early.
    let slack_us = state.figures().map_or(0, |figures| figures.interval_us) / 2;
    let is_whole = experiment.last_us + slack_us >= last.mono_us.saturating_add(plan.block_us);
    if last.pair == plan.pairs && is_whole { last.pair } else { last.pair.saturating_sub(1) }
}

fn progress(state: &State, experiment: &Experiment) -> String {
    let plan = &experiment.state;
    if experiment.is_over() {
        let (sentence, made) = (sentence(experiment), pairs_made(state, experiment));
        let pairs = if plan.stage == Stage::Calibration { "a/a pairs" } else { "pairs" };
        return format!("{sentence}over after {made} {pairs} of {}; * is what it was made for", plan.pairs);
    }
    let seconds = |us: u64| quantity::elapsed_text(us / 1_000_000);
    let in_block = experiment.block_elapsed_us(state.last_us()).map_or_else(String::new, |us| {
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
    let left_us = plan.pairs.saturating_sub(plan.pair).saturating_mul(2 * plan.block_us);
    let left = format!("; {} left after this pair", seconds(left_us));
    format!("{what}, pair {} of {}{in_block}{left}", plan.pair, plan.pairs)
}

/// Returns the result for a figure: in one line, or in two if there is little room.
fn figure_lines(state: &State, compared: &ComparedFigure, widths: FigureWidths) -> Vec<Line<'static>> {
    let theme = state.theme;
    let FigureWidths { name: name_cells, figure, effect: effect_cells, chance: chance_cells, is_three_lines } =
        widths;
    let star = if compared.is_primary { " *" } else { "" };
    let name = format::cut(&compared.metric, name_cells - 1 - star.len(), theme.glyphs) + star;
    let verdict = compared.verdict.as_ref().or(compared.calibration.as_ref());
    let estimate = verdict.and_then(|verdict| verdict.estimate).or(compared.running);
    let none = theme.glyphs.none();
    let unit = compared.metric.parse().map_or(FigureUnit::Count, |name: FigureName| name.unit());
    let number = |of: fn(&Estimate) -> f64| {
        estimate.as_ref().map_or_else(|| none.to_string(), |estimate| amount(of(estimate), unit))
    };
    let effect = estimate.as_ref().map_or_else(
        || format!("  {none}"),
        |e| {
            let [effect, low, high] = quantity::difference([e.effect, e.low, e.high], "%", 1);
            let text = format!("  {effect} ({low} to {high}, {:.0} %)", e.confidence_percent);
            let [times, over] = [theme.glyphs.times(), theme.glyphs.over()].map(String::from);
            text.replace('×', &times).replace('÷', &over)
        },
    );
    let chance = estimate.as_ref().map_or_else(|| none.to_string(), |e| format!("{:.3}", e.p_value));
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
fn outcome(state: &State, compared: &ComparedFigure) -> (String, Style) {
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

/// Returns a short text for the status line; `None` without a running experiment.
pub(crate) fn badge(state: &State) -> Option<String> {
    let experiment = *state.experiments().last()?;
    let plan = &experiment.state;
    let name = plan.stage.to_string().to_uppercase();
    (!experiment.is_over())
        .then(|| format!("{name} {}/{} {}", plan.pair, plan.pairs, plan.arm.to_string().to_uppercase()))
}

#[cfg(test)]
mod tests {
    use model::figures::FigureUnit;
    use records::kinds::{Body, ExperimentRecord, ExperimentStep, Stage};

    use crate::input::intent::Intent;
    use crate::testing::{TestDashboard, options};

    const BLOCK_S: u64 = 5;

    /// An experiment of six pairs, of which so many are made, that is ended so many seconds into the next block.
    fn ended(stage: Stage, pairs: u64, seconds: u64) -> String {
        let mut dashboard = TestDashboard::live(options(), 3);
        dashboard.want(Intent::Experiments);
        let step = |dashboard: &mut TestDashboard, step, pair| {
            let mut record = dashboard.run.mark(1);
            record.body = Body::Experiment(Box::new(ExperimentRecord {
                number: 1,
                step,
                stage,
                pair,
                pairs: 6,
                block_us: BLOCK_S * 1_000_000,
                setting: "load.rate".into(),
                metric: if step == ExperimentStep::Verdict { "exchange.p50".into() } else { String::new() },
                is_primary: true,
                ..ExperimentRecord::default()
            }));
            dashboard.read(vec![record]);
        };
        let blocks = 2 * pairs + u64::from(pairs < 6);
        for block in 0..blocks {
            step(&mut dashboard, ExperimentStep::Switch, 1 + block / 2);
            dashboard.pass(if block < 2 * pairs { BLOCK_S } else { seconds });
        }
        step(&mut dashboard, ExperimentStep::Verdict, 6);
        dashboard.screen(240, 48)
    }

    #[test]
    fn an_experiment_that_is_over_says_how_many_pairs_were_made() {
        for (stage, pairs, said) in [
            (Stage::Comparison, 6, "over after 6 pairs of 6"),
            (Stage::Comparison, 5, "over after 5 pairs of 6"),
            (Stage::Comparison, 2, "over after 2 pairs of 6"),
            (Stage::Comparison, 0, "over after 0 pairs of 6"),
            (Stage::Calibration, 2, "over after 2 a/a pairs of 6"),
        ] {
            let screen = ended(stage, pairs, 3);
            assert!(screen.contains(said), "{said}: {screen}");
        }
    }

    #[test]
    fn figures_of_a_and_b_have_their_unit() {
        let shown = |figure, unit| super::amount(figure, unit);
        assert_eq!(shown(113.1, FigureUnit::Micros), "0.113 ms");
        assert_eq!(shown(12_345.0, FigureUnit::Micros), "12.35 ms");
        assert_eq!(shown(0.8, FigureUnit::Ratio), "80.00%");
        assert_eq!(shown(999_999.0, FigureUnit::PerSecond), "999999/s");
    }

    #[test]
    fn the_line_without_experiments_is_wrapped() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.want(Intent::Experiments);
        for (columns, rows) in [(160, 48), (120, 40), (80, 24)] {
            let screen = stage.screen(columns, rows);
            assert!(screen.contains("begins one") && screen.contains("turns"), "{screen}");
        }
    }
}
