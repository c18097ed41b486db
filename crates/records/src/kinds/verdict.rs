//! The verdict of an experiment as a sentence: the same in log, journal, dashboard and report.

use super::{Estimate, ExperimentOutcome, Stage};
use crate::text::quantity;

/// The values that an experiment compared, and the figure by which it judged them.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub setting: &'a str,
    pub a: &'a str,
    pub b: &'a str,
    pub metric: &'a str,
}

/// Why an experiment that the end of the run cut off has no verdict.
pub const UNFINISHED: &str = "the experiment did not come to its end";

impl Judged<'_> {
    /// Says that there is no verdict, and why.
    pub fn without_verdict(self, reason: &str) -> String {
        let Self { setting, a, b, .. } = self;
        format!("no verdict on {setting} {b} against {a}: {reason}")
    }

    /// Says the verdict of a stage. The reason is that of an inconclusive one.
    pub fn sentence(
        self,
        stage: Stage,
        outcome: ExperimentOutcome,
        reason: &str,
        estimate: Option<&Estimate>,
    ) -> String {
        let Self { setting, a, b, .. } = self;
        let difference =
            estimate.map_or_else(String::new, |estimate| format!(": {}", self.difference(estimate)));
        match (outcome, stage) {
            (ExperimentOutcome::Pending, _) => {
                format!("no verdict yet on {setting} {b} against {a}{difference}")
            }
            (ExperimentOutcome::Better, _) => format!("{setting} {b} is better than {a}{difference}"),
            (ExperimentOutcome::Worse, _) => format!("{setting} {b} is worse than {a}{difference}"),
            (ExperimentOutcome::NoDifference, _) => {
                let (between, difference) = match stage {
                    Stage::Calibration => (format!("{setting} {a} and itself"), difference),
                    Stage::Comparison => (
                        format!("{setting} {b} and {a}"),
                        difference.replacen(": ", &format!(": with {b}, "), 1),
                    ),
                };
                let resolution =
                    estimate.map(|estimate| estimate.resolution).filter(|percent| *percent > 0.0);
                let unseen = resolution.map_or_else(String::new, |resolution| {
                    format!("; {} could have been shown", self.amount(resolution))
                });
                format!("no difference was shown between {between}{difference}{unseen}")
            }
            (ExperimentOutcome::Inconclusive, Stage::Calibration) => {
                format!("inconclusive for {setting} {a} against itself: {reason}")
            }
            (ExperimentOutcome::Inconclusive, Stage::Comparison) => {
                format!("inconclusive for {setting} {b} against {a}: {reason}")
            }
        }
    }

    /// Says by how much the figure differs, with its interval and the pairs that it rests on.
    pub fn difference(self, estimate: &Estimate) -> String {
        let Estimate { effect, low, high, pairs_used, .. } = *estimate;
        let [effect_text, low_text, high_text] = self.differences([effect, low, high]);
        let confidence = estimate.confidence();
        let pairs = quantity::counted(pairs_used, "pair");
        let metric = self.metric;
        format!("{metric} is {effect_text} ({low_text} to {high_text}, {confidence}), by {pairs}")
    }

    /// The difference in words, and the ends of its interval: without signs if all of it lies on one side of zero.
    fn differences(self, values: [f64; 3]) -> [String; 3] {
        let [effect, low, high] = values;
        let told = quantity::difference(values, self.unit(), 1);
        if told[0].contains(['×', '÷']) {
            let [effect, low, high] = told;
            let share = effect.strip_prefix("÷ ").map(|divisor| format!("1/{divisor}"));
            return [format!("{} as high", share.unwrap_or(effect)), low, high];
        }
        let word = if effect < 0.0 { "lower" } else { "higher" };
        let amount = format!("{} {word}", self.amount(effect.abs()));
        if low > 0.0 || high < 0.0 {
            let [low, high] = [low.abs(), high.abs()];
            return [amount, self.amount(low.min(high)), self.amount(low.max(high))];
        }
        let signed = |value: f64| format!("{value:+.1} {}", self.unit());
        [amount, signed(low), signed(high)]
    }

    fn amount(self, value: f64) -> String {
        format!("{value:.1} {}", self.unit())
    }

    /// The unit of its differences; the catalogue of figures checks which names are shares.
    pub fn unit(self) -> &'static str {
        let is_share = [".ratio", ".savings"].iter().any(|ending| self.metric.ends_with(ending));
        if is_share { "points" } else { "%" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKETS: Judged<'_> = Judged { setting: "proxy.tickets", a: "4", b: "2", metric: "exchange.p99" };

    fn estimate([effect, low, high]: [f64; 3]) -> Estimate {
        Estimate {
            pairs_used: 12,
            effect,
            low,
            high,
            confidence_percent: 95.0,
            resolution: 2.04,
            ..Estimate::default()
        }
    }

    fn told(outcome: ExperimentOutcome, values: [f64; 3]) -> String {
        TICKETS.sentence(Stage::Comparison, outcome, "", Some(&estimate(values)))
    }

    #[test]
    fn a_verdict_says_which_value_is_better_and_by_how_much() {
        assert_eq!(
            told(ExperimentOutcome::Better, [-5.2, -7.4, -3.1]),
            "proxy.tickets 2 is better than 4: exchange.p99 is 5.2 % lower (3.1 % to 7.4 %, 95 %), by 12 pairs"
        );
        assert_eq!(
            told(ExperimentOutcome::Worse, [1_100.0, 1_000.0, 1_250.0]),
            "proxy.tickets 2 is worse than 4: exchange.p99 is 12.0 × as high (11.0 × to 13.5 ×, 95 %), by 12 pairs"
        );
        assert_eq!(
            told(ExperimentOutcome::Better, [-99.65, -99.8, -60.0]),
            "proxy.tickets 2 is better than 4: exchange.p99 is 1/286 as high (÷ 500 to 0.40 ×, 95 %), by 12 pairs"
        );
        let shares = Judged { metric: "resumed.ratio", ..TICKETS };
        assert_eq!(
            shares.difference(&Estimate {
                confidence_percent: 99.375,
                pairs_used: 1,
                ..estimate([2.0, 1.0, 3.0])
            }),
            "resumed.ratio is 2.0 points higher (1.0 points to 3.0 points, 99.4 %), by 1 pair"
        );
    }

    #[test]
    fn a_verdict_without_a_difference_says_what_could_have_been_shown() {
        assert_eq!(
            told(ExperimentOutcome::NoDifference, [-0.8, -2.9, 1.2]),
            "no difference was shown between proxy.tickets 2 and 4: with 2, exchange.p99 is 0.8 % lower (-2.9 % to \
             +1.2 %, 95 %), by 12 pairs; 2.0 % could have been shown"
        );
        let inconclusive =
            |stage| TICKETS.sentence(stage, ExperimentOutcome::Inconclusive, "too few pairs", None);
        assert_eq!(
            inconclusive(Stage::Comparison),
            "inconclusive for proxy.tickets 2 against 4: too few pairs"
        );
        assert_eq!(
            inconclusive(Stage::Calibration),
            "inconclusive for proxy.tickets 4 against itself: too few pairs"
        );
        let unfinished = "no verdict on proxy.tickets 2 against 4: the experiment did not come to its end";
        assert_eq!(TICKETS.without_verdict(UNFINISHED), unfinished);
    }
}
