//! The plan of an experiment: what to compare, and for how long.

use std::str::FromStr;
use std::time::Duration;

use model::alerts::Alerts;
use records::kinds::Arm;
use records::setting::{Applies, Setting, SettingInfo, Value, find_setting};
use records::text::quantity;

use crate::comparable_figure::{ComparableFigure, NotAComparableFigure};
use crate::statistics::pairs_min;

/// The most pairs of a stage: more than a night of default blocks.
const PAIRS_MAX: u32 = 2_000;
const METRICS_MAX: usize = 8;
const BLOCK_MAX: Duration = Duration::from_secs(3_600);
/// Error rate over all figures together.
const ALPHA: f64 = 0.05;

/// Lengths by name: pairs, pairs of the A/A stage, block and discarded time in seconds.
const PRESETS: [(&str, u32, u32, u64, u64); 3] =
    [("quick", 6, 0, 5, 1), ("normal", 12, 6, 10, 2), ("careful", 24, 12, 20, 4)];

/// What to compare, and for how long; parsed from words such as `proxy.workers=1..2,pairs=12,metric=exchange.p99`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentPlan {
    /// Dotted name of the setting, or its last part if no other setting has it.
    pub setting: String,
    /// The first value, the baseline, as it was written.
    pub a: String,
    /// The second value.
    pub b: String,
    /// The figures to compare, the primary one first. If empty, the caller chooses.
    pub metrics: Vec<ComparableFigure>,
    pub pairs: u32,
    /// Pairs of the a/a stage before, in which both arms have the first value; 0 for none.
    pub calibration_pairs: u32,
    pub block: Duration,
    /// Time after each switch that is discarded.
    pub discard: Duration,
    /// Forget sessions and tickets at each switch; `None` decides by whether the setting concerns resumption.
    pub flush: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExperimentPlanError {
    /// The text does not say what to compare.
    #[error("{0:?}: expected SETTING=A..B first, such as proxy.workers=1..2")]
    NoChange(String),
    #[error("{0:?}: expected quick, normal, careful, metric=, pairs=, aa=, block=, discard=, flush or keep")]
    UnknownWord(String),
    /// A word has another value than it may.
    #[error("{word}={value}: expected {expected}")]
    Value { word: &'static str, value: String, expected: String },
    /// The name is not a figure, or the figure cannot be compared.
    #[error(transparent)]
    Metric(#[from] NotAComparableFigure),
    /// So few pairs cannot show any difference.
    #[error("{word}={pairs}: {min} pairs are the fewest that can show anything of {metrics} figures")]
    TooFewPairs {
        /// The word, `pairs` or `aa`.
        word: &'static str,
        pairs: u32,
        min: u32,
        metrics: usize,
    },
    /// The discarded time leaves less than two intervals of a block.
    #[error("block={block:?} leaves less than two intervals of {interval:?} after discard={discard:?}")]
    NothingLeft { block: Duration, discard: Duration, interval: Duration },
    #[error("there is no setting {name} that can change while this runs; there are {known}")]
    UnknownSetting { name: String, known: String },
    #[error("{0}")]
    Refused(String),
    #[error("{0}: both values are the same")]
    Same(String),
}

/// Splits a plan into the change and the words after it. A value may hold commas, as a list of ciphers does: it ends at
/// the first part that is a word of a plan or has a `=`.
fn parts(text: &str) -> (&str, Vec<&str>) {
    let is_word =
        |part: &str| part.contains('=') || matches!(part, "flush" | "keep") || preset(part).is_some();
    let mut end = text.find(',').unwrap_or(text.len());
    while let Some(rest) = text.get(end + 1..) {
        let next = rest.split(',').next().unwrap_or_default();
        if is_word(next.trim()) {
            return (&text[..end], rest.split(',').map(str::trim).collect());
        }
        end += 1 + next.len();
    }
    (&text[..end], Vec::new())
}

impl FromStr for ExperimentPlan {
    type Err = ExperimentPlanError;

    fn from_str(text: &str) -> Result<Self, ExperimentPlanError> {
        let text = records::text::clean::text(text);
        let (change, words) = parts(&text);
        let no_change = || ExperimentPlanError::NoChange(change.to_owned());
        let (setting, values) = change.split_once('=').ok_or_else(no_change)?;
        let (a, b) = values.split_once("..").ok_or_else(no_change)?;
        let parts = [setting, a, b].map(|part| part.trim().to_owned());
        if parts.iter().any(String::is_empty) {
            return Err(no_change());
        }
        let [setting, a, b] = parts;
        let mut plan = Self {
            setting,
            a,
            b,
            metrics: Vec::new(),
            pairs: 12,
            calibration_pairs: 6,
            block: Duration::from_secs(10),
            discard: Duration::from_secs(2),
            flush: None,
        };
        words.iter().try_for_each(|word| plan.take(word))?;
        plan.check()?;
        Ok(plan)
    }
}

impl ExperimentPlan {
    fn take(&mut self, word: &str) -> Result<(), ExperimentPlanError> {
        let unknown = || ExperimentPlanError::UnknownWord(word.to_owned());
        if let Some((_, pairs, aa, block, discard)) = preset(word) {
            (self.pairs, self.calibration_pairs) = (pairs, aa);
            (self.block, self.discard) = (Duration::from_secs(block), Duration::from_secs(discard));
            return Ok(());
        }
        match (word, word.split_once('=')) {
            ("flush", _) => self.flush = Some(true),
            ("keep", _) => self.flush = Some(false),
            (_, Some(("metric", names))) => {
                let metrics: Result<Vec<ComparableFigure>, _> = names.split('+').map(str::parse).collect();
                self.metrics = metrics?;
            }
            (_, Some(("pairs", value))) => self.pairs = count("pairs", value)?,
            (_, Some(("aa", value))) => self.calibration_pairs = count("aa", value)?,
            (_, Some(("block", value))) => self.block = time("block", value)?,
            (_, Some(("discard", value))) => self.discard = time("discard", value)?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ExperimentPlanError> {
        if self.metrics.len() > METRICS_MAX {
            let value = self.metrics.iter().map(ComparableFigure::name).collect::<Vec<_>>().join("+");
            let expected = format!("at most {METRICS_MAX} figures");
            return Err(ExperimentPlanError::Value { word: "metric", value, expected });
        }
        let metrics = self.metrics.len().max(1);
        let min = pairs_min(self.alpha());
        for (word, pairs) in [("pairs", self.pairs), ("aa", self.calibration_pairs)] {
            if pairs < min && !(word == "aa" && pairs == 0) {
                return Err(ExperimentPlanError::TooFewPairs { word, pairs, min, metrics });
            }
        }
        Ok(())
    }

    /// The error rate of each figure's verdict: Bonferroni's share of 5 %.
    pub fn alpha(&self) -> f64 {
        ALPHA / self.metrics.len().max(1) as f64
    }

    /// Length of the whole experiment.
    pub fn length(&self) -> Duration {
        self.block * 2 * (self.pairs + self.calibration_pairs)
    }

    /// Checks the plan against the settings, as they are described, and the run's interval.
    ///
    /// # Errors
    /// If the setting is unknown or cannot have these values while the program runs, or a block is too short.
    pub fn resolve(
        &self,
        settings: &[Setting],
        infos: &[SettingInfo],
        interval: Duration,
    ) -> Result<SettingChange, ExperimentPlanError> {
        if self.block < self.discard + 2 * interval {
            let Self { block, discard, .. } = *self;
            return Err(ExperimentPlanError::NothingLeft { block, discard, interval });
        }
        // An alert watches a run; nothing runs differently with another limit.
        let is_compared =
            |setting: &&Setting| setting.applies != Applies::Restart && !Alerts::is_setting(&setting.name);
        let live = || settings.iter().filter(is_compared);
        let unknown = || ExperimentPlanError::UnknownSetting {
            name: self.setting.clone(),
            known: live().map(|setting| &*setting.name).collect::<Vec<_>>().join(", "),
        };
        let setting = find_setting(live(), &self.setting).ok_or_else(unknown)?;
        let info = SettingInfo::find(infos, &setting.name);
        let value = |text: &str| setting.parse(info, text).map_err(ExperimentPlanError::Refused);
        let (a, b) = (value(&self.a)?, value(&self.b)?);
        if a == b {
            return Err(ExperimentPlanError::Same(format!("{} {} and {}", setting.name, self.a, self.b)));
        }
        let flush = self.flush.unwrap_or_else(|| concerns_resumption(&setting.name));
        Ok(SettingChange { setting: setting.name.clone(), before: setting.value.clone(), a, b, flush })
    }
}

/// The two values of a setting that an experiment switches between.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// Dotted name of the setting.
    pub setting: String,
    /// Its value before the experiment, which is restored at the end.
    pub before: Value,
    pub a: Value,
    pub b: Value,
    /// Forget sessions and tickets at each switch.
    pub flush: bool,
}

impl SettingChange {
    pub fn value(&self, arm: Arm) -> &Value {
        match arm {
            Arm::A => &self.a,
            Arm::B => &self.b,
        }
    }
}

/// Sessions that began under one value of such a setting would resume under the other.
fn concerns_resumption(name: &str) -> bool {
    let words = ["resum", "ticket", "session", "tls-", "cipher", "group", "client-auth"];
    words.iter().any(|word| name.contains(word))
}

fn preset(name: &str) -> Option<(&'static str, u32, u32, u64, u64)> {
    PRESETS.into_iter().find(|(known, ..)| *known == name)
}

fn count(word: &'static str, value: &str) -> Result<u32, ExperimentPlanError> {
    let number = value.parse().ok().filter(|number| *number <= PAIRS_MAX);
    let expected = || format!("a number of pairs up to {PAIRS_MAX}");
    number.ok_or_else(|| ExperimentPlanError::Value { word, value: value.to_owned(), expected: expected() })
}

fn time(word: &'static str, value: &str) -> Result<Duration, ExperimentPlanError> {
    let time = quantity::time(value).filter(|time| *time <= BLOCK_MAX);
    let expected = || "a time such as 10s, up to 1h".to_owned();
    time.ok_or_else(|| ExperimentPlanError::Value { word, value: value.to_owned(), expected: expected() })
}

#[cfg(test)]
mod tests;
