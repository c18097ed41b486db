//! Experiments: two values of a setting compared in pairs of blocks, and the result.
//!
//! ```text
//! +- A/B 1: proxy.workers, A 1, B 2 ------------------------------------------------+
//! | proxy.workers 2 is better than 1: exchange.p99 is 11.4 % lower (8.6 % to ...     |
//! | interval     [====O==]     |                                                     |
//! | pairs      o  2o  o  o     |                                                     |
//! |          -20 %    lower    0   higher   +20 %                                    |
//! | figure              A        B    B against A                   by chance        |
//! | exchange.p99 * 1.930 ms 1.710 ms  -11.4 % (-14.0 to -8.6)       0.003   better   |
//! +----------------------------------------------------------------------------------+
//! ```

use model::runs::{ArmSwitch, ComparedFigure, Experiment, Verdict};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use records::kinds::{ExperimentRecord, Stage, UNFINISHED};
use records::text::quantity;

use super::figures::{FigureWidths, estimate, figure_lines, outcome};
use super::{bar, form_view as experiment_form};
use crate::screens::prompt::state::PromptPurpose;
use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::{heading, put};

/// The earlier experiments that are shown, one line each.
const EARLIER_MAX: usize = 8;

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
        let text = format!("A/B {}: {}", experiment.state.number, verdict(experiment));
        Line::styled(format::cut(&text, cells, theme.glyphs), theme.quiet())
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
    let (text, style) = match experiment.primary() {
        Some(primary) if experiment.is_over() => (verdict(experiment), outcome(state, primary).1),
        _ => (progress(state, experiment), theme.figure()),
    };
    let text = format::wrapped(&text, cells).into_iter();
    let mut lines: Vec<_> = text.map(|line| Line::styled(line, style)).collect();
    lines.extend(experiment.primary().into_iter().flat_map(|primary| bar(state, experiment, primary, cells)));
    let (what, effect) = if is_three_lines { ("", 0) } else { ("  B against A, with its interval", effect) };
    let chance_title = if widths.is_narrow() { "" } else { "by chance" };
    let columns =
        format!("{:<name$}{:>figure$}{:>figure$}{what:<effect$}{chance_title:<chance$}", "figure", "A", "B");
    lines.push(Line::styled(columns, theme.quiet()));
    for compared in &experiment.metrics {
        lines.extend(figure_lines(state, experiment, compared, widths));
        // The sentence has the reason of the primary figure, and its bar is above.
        if compared.is_primary {
            continue;
        }
        let reason = latest_verdict(compared).map_or("", |verdict| &verdict.reason);
        let reason = format::wrapped(reason, cells.saturating_sub(2)).into_iter();
        let reason = reason.filter(|line| !line.is_empty());
        lines.extend(reason.map(|line| Line::styled(format!("  {line}"), theme.quiet())));
        lines.extend(bar(state, experiment, compared, cells));
    }
    lines
}

fn latest_verdict(compared: &ComparedFigure) -> Option<&Verdict> {
    compared.verdict.as_ref().or(compared.calibration.as_ref())
}

fn bar(
    state: &State,
    experiment: &Experiment,
    compared: &ComparedFigure,
    cells: usize,
) -> Vec<Line<'static>> {
    let unit = experiment.judged(compared).unit();
    let style = if experiment.is_over() { outcome(state, compared).1 } else { state.theme.label() };
    bar::lines(state.theme, compared, estimate(experiment, compared), (unit, style, cells))
}

/// Says the verdict of an experiment, or that there is none.
fn verdict(experiment: &Experiment) -> String {
    let sentence = experiment.primary().and_then(|primary| experiment.sentence(primary));
    sentence.unwrap_or_else(|| {
        let ExperimentRecord { pair, pairs, .. } = &experiment.state;
        format!("{} (pair {pair} of {pairs})", experiment.state.judged().without_verdict(UNFINISHED))
    })
}

/// Says how far a running experiment is.
fn progress(state: &State, experiment: &Experiment) -> String {
    let ExperimentRecord { stage, pair, pairs, block_us, .. } = experiment.state;
    if state.figures().is_some_and(|figures| figures.ended) {
        return verdict(experiment);
    }
    let far = experiment.progress();
    let then = match stage {
        Stage::Calibration => "then the comparison",
        Stage::Comparison => "no verdict before the end",
    };
    let seconds = |us: u64| quantity::elapsed_text(us / 1_000_000);
    let Some((switch, elapsed_us)) =
        experiment.switches().next_back().zip(experiment.block_elapsed_us(state.last_us()))
    else {
        return format!("{far}; {then}");
    };
    let is_of_pair = |at: &&ArmSwitch| (at.stage, at.pair) == (switch.stage, switch.pair);
    let blocks =
        2 * pairs.saturating_sub(pair) + u64::from(experiment.switches().filter(is_of_pair).count() < 2);
    let left_us = blocks.saturating_mul(block_us).saturating_add(block_us.saturating_sub(elapsed_us));
    let arm = switch.arm.to_string().to_uppercase();
    format!(
        "{far}, {arm} for {} of {}; {} left; {then}",
        seconds(elapsed_us),
        seconds(block_us),
        seconds(left_us)
    )
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
    use insta::assert_snapshot;
    use records::kinds::{Arm, Body, Estimate, ExperimentOutcome, ExperimentRecord, ExperimentStep, Stage};
    use records::setting::Value;

    use crate::app::testing::{TestDashboard, options};
    use crate::input::intent::{Intent, PaneAction};
    use crate::options::Options;
    use crate::theme::Glyphs;

    const BLOCK_S: u64 = 3;
    const ESTIMATE: Estimate = Estimate {
        pairs_used: 6,
        a: 1_240.0,
        b: 1_176.0,
        effect: -5.2,
        low: -7.4,
        high: -3.1,
        confidence_percent: 95.0,
        p_value: 0.031,
        resolution: 2.1,
    };

    fn record(dashboard: &mut TestDashboard, step: ExperimentStep, (pair, arm): (u64, Arm)) {
        let is_of_figure = step != ExperimentStep::Switch;
        let is_over = step == ExperimentStep::Verdict;
        let record = ExperimentRecord {
            number: 1,
            step,
            stage: Stage::Comparison,
            arm,
            pair,
            pairs: 6,
            block_us: BLOCK_S * 1_000_000,
            setting: "load.rate".into(),
            a: "5000".into(),
            b: "6000".into(),
            metric: if is_of_figure { "exchange.p50".into() } else { String::new() },
            is_primary: is_of_figure,
            pair_effect: (step == ExperimentStep::Pair).then(|| -8.0 + 1.5 * pair as f64),
            estimate: (is_over || pair >= 4).then_some(ESTIMATE),
            outcome: if is_over { ExperimentOutcome::Better } else { ExperimentOutcome::Pending },
            ..ExperimentRecord::default()
        };
        let record = dashboard.run.event(Body::Experiment(Box::new(record)));
        dashboard.read(vec![record]);
    }

    /// An experiment of six pairs, of which so many are made.
    fn made(options: Options, pairs: u64) -> TestDashboard {
        let mut dashboard = TestDashboard::live(options, 20);
        dashboard.want(Intent::Experiments);
        record(&mut dashboard, ExperimentStep::Begin, (0, Arm::A));
        for pair in 1..=pairs {
            for (arm, rate) in [(Arm::B, 6_000.0), (Arm::A, 5_000.0)] {
                let change = dashboard.run.set("load.rate", Value::Number(rate)).unwrap();
                dashboard.read(vec![change]);
                record(&mut dashboard, ExperimentStep::Switch, (pair, arm));
                dashboard.pass(BLOCK_S);
            }
            record(&mut dashboard, ExperimentStep::Pair, (pair, Arm::A));
        }
        dashboard
    }

    #[test]
    fn a_verdict_is_a_sentence_above_its_bar() {
        let mut dashboard = made(options(), 6);
        record(&mut dashboard, ExperimentStep::Verdict, (6, Arm::A));
        let restored = dashboard.run.set("load.rate", Value::Number(5_500.0)).unwrap();
        dashboard.read(vec![restored]);
        dashboard.pass(2);
        assert_snapshot!(dashboard.screen(160, 48));
        assert_snapshot!(dashboard.screen(80, 24));
        let ascii = Options { glyphs: Glyphs::Ascii, ..options() };
        let mut dashboard = made(ascii, 6);
        record(&mut dashboard, ExperimentStep::Verdict, (6, Arm::A));
        assert_snapshot!(dashboard.screen(80, 24));
    }

    #[test]
    fn a_running_experiment_says_how_long_it_takes_and_that_it_has_no_verdict() {
        let mut dashboard = made(options(), 4);
        record(&mut dashboard, ExperimentStep::Switch, (5, Arm::A));
        dashboard.pass(1);
        let screen = dashboard.screen(240, 48);
        let said = "pair 5 of 6, A for 00:01 of 00:03; 00:11 left; no verdict before the end";
        assert!(screen.contains(said) && !screen.contains("better"), "{screen}");
    }

    #[test]
    fn an_experiment_that_the_run_cut_off_has_no_verdict() {
        let mut dashboard = made(options(), 2);
        let stop = dashboard.run.stop();
        dashboard.read(vec![stop]);
        let screen = dashboard.screen(240, 48);
        for said in ["no verdict on load.rate 6000 against 5000: the experiment did not", "(pair 2 of 6)"] {
            assert!(screen.contains(said), "{screen}");
        }
    }

    #[test]
    fn the_ribbon_tells_no_value_of_a_column_with_blocks_of_both() {
        let mut dashboard = made(options(), 6);
        let ribbon = |dashboard: &mut TestDashboard| {
            let screen = dashboard.screen(160, 48);
            screen.lines().find(|line| line.contains("    A/B ")).unwrap_or_default().to_owned()
        };
        assert!(ribbon(&mut dashboard).contains("B▓▓A░░B▓▓A░░"));
        for _ in 0..3 {
            dashboard.want(Intent::ZoomOut);
        }
        let shown = ribbon(&mut dashboard);
        assert!(shown.contains("==") && !shown.contains('▓'), "{shown}");
    }

    #[test]
    fn switches_are_no_lines_of_the_log_and_no_marks() {
        let mut dashboard = made(options(), 3);
        record(&mut dashboard, ExperimentStep::Verdict, (6, Arm::A));
        dashboard.want(Intent::Experiments);
        dashboard.want(Intent::Pane(PaneAction::MaximiseLog));
        let log = dashboard.screen(160, 48);
        assert!(!log.contains("load.rate changed"), "{log}");
        assert_eq!(log.matches("experiment 1").count(), 2, "its beginning and its verdict: {log}");
        assert!(dashboard.state.markers.is_empty(), "{:?}", dashboard.state.markers);
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
