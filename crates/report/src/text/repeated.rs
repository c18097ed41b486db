//! Several runs of one plan, or of one plan with several sizes: the median of each figure, and how far they spread.

use std::fmt::Write as _;

use experiment::median;
use model::figures::FigureUnit;

use crate::figures::FigureValue;

/// The figures shown of repeated runs, where any run has a value.
const SHOWN: &[&str] = &[
    "rate.achieved",
    "requests.ok",
    "errors",
    "connections",
    "handshakes.full",
    "handshakes.resumed",
    "response.p50",
    "response.p99",
    "response.max",
    "service.mean",
    "service.p50",
    "service.p99",
    "service.max",
    "lag.p99",
    "connect.p50",
    "handshake_full.p50",
    "handshake_resumed.p50",
    "first_byte.p50",
    "cpu.load",
    "observed.cpu_s",
];

/// A table of the median, the smallest and the largest of each figure. `groups` are the runs that belong together, each
/// with a name, such as the size of the bodies. Latencies are in milliseconds.
pub fn repeated(groups: &[(String, Vec<Vec<FigureValue>>)]) -> String {
    let mut text = format!(
        "{:<16} {:<24} {:>14} {:>14} {:>14} {:>8} {:>5}\n",
        "run", "figure", "median", "min", "max", "spread", "runs"
    );
    for (group, runs) in groups {
        for name in SHOWN {
            let of_run = |figures: &Vec<FigureValue>| {
                figures.iter().find(|(known, _)| known.short_name() == *name).cloned()
            };
            let Some((figure, _)) = runs.iter().find_map(of_run) else { continue };
            let mut values: Vec<f64> = runs.iter().filter_map(|figures| of_run(figures)?.1).collect();
            if values.is_empty() || values.iter().all(|value| *value <= 0.0) {
                continue;
            }
            values.sort_unstable_by(f64::total_cmp);
            let (scale, unit) = if figure.unit() == FigureUnit::Micros { (1e-3, ", ms") } else { (1.0, "") };
            let (min, max) = (values[0] * scale, values[values.len() - 1] * scale);
            let median = median(values.iter().copied()) * scale;
            let spread = if median > 0.0 { (max - min) / median * 100.0 } else { 0.0 };
            let _ = writeln!(
                text,
                "{group:<16} {:<24} {median:>14.3} {min:>14.3} {max:>14.3} {spread:>7.1}% {:>5}",
                format!("{name}{unit}"),
                values.len()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::figures::FigureName;

    #[test]
    fn the_median_and_the_spread_of_each_figure_are_shown() {
        let run = |rate: f64, p50: f64| {
            let figure = |name: &str| name.parse::<FigureName>().unwrap().figures().next().unwrap();
            vec![(figure("rate.achieved"), Some(rate)), (figure("service.p50"), Some(p50))]
        };
        let runs = vec![run(90.0, 1_000.0), run(110.0, 1_200.0), run(100.0, 1_100.0)];
        let text = repeated(&[("all".to_owned(), runs)]);
        let row = |name: &str| {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("rate.achieved")[2..], ["100.000", "90.000", "110.000", "20.0%", "3"]);
        assert_eq!(row("service.p50")[2..], ["ms", "1.100", "1.000", "1.200", "18.2%", "3"]);
        assert!(!text.contains("lag"), "{text}");
    }
}
