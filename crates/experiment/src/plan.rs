//! The plan of an experiment: what to compare, and for how long.

use std::str::FromStr;
use std::time::Duration;

use model::alerts::Alerts;
use model::figures::nearest;
use records::kinds::Arm;
use records::setting::{Applies, Setting, SettingInfo, Value, find_setting};
use records::text::quantity;

use crate::comparable_figure::{ComparableFigure, NotAComparableFigure};
use crate::statistics::{detectable, pairs_min};

/// The most pairs of a stage: more than a night of default blocks.
const PAIRS_MAX: u32 = 2_000;
const METRICS_MAX: usize = 8;
const BLOCK_MAX: Duration = Duration::from_secs(3_600);
/// Error rate over all figures together.
const ALPHA: f64 = 0.05;

/// Lengths by name: pairs, pairs of the A/A stage, block and discarded time in seconds.
const PRESETS: [(&str, u32, u32, u64, u64); 3] =
    [("quick", 6, 0, 5, 1), ("normal", 12, 6, 10, 2), ("careful", 24, 12, 20, 4)];

/// The words of a plan after the change.
const WORDS: [&str; 10] =
    ["quick", "normal", "careful", "metric=", "pairs=", "aa=", "block=", "discard=", "flush", "keep"];
/// By how many percent pairs may vary: on a quiet machine, and on one that others use.
const SPREADS_PERCENT: [f64; 2] = [4.0, 20.0];

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
    #[error("{word:?}: expected {}{}", WORDS.join(", "), meant.map_or_else(String::new, |word| format!("; did you mean {word}?")))]
    UnknownWord {
        word: String,
        /// The word that is like it.
        meant: Option<&'static str>,
    },
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
    #[error("there is no setting {name} that can change while this runs; {}", meant.as_ref().map_or_else(|| format!("there are {known}"), |name| format!("did you mean {name}?")))]
    UnknownSetting { name: String, known: String, meant: Option<String> },
    /// The figure says what the setting is, and nothing of its effect.
    #[error("metric={metric}: {setting} itself sets it; judge by another figure, such as cpu.per_handshake")]
    Defined { setting: String, metric: String },
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
            _ => return Err(unknown_word(word)),
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

    /// How long it takes, and the difference that it shows four times in five.
    pub fn outlook(&self) -> String {
        let time = |length: Duration| quantity::shown(length.as_secs_f64(), "s");
        let calibration = match self.calibration_pairs {
            0 => "no A/A pairs".to_owned(),
            pairs => format!("{pairs} A/A pairs before"),
        };
        let [quiet, busy] = SPREADS_PERCENT;
        let shown = |spread: f64| {
            let shown = detectable(spread / f64::from(self.pairs).sqrt(), self.pairs, self.alpha());
            shown.unwrap_or(f64::INFINITY)
        };
        format!(
            "{} in all: {} pairs of blocks of {}, {calibration}; shows a difference of {:.1} % if pairs vary by {quiet} %, of \
             {:.1} % if by {busy} %",
            time(self.length()),
            self.pairs,
            time(self.block),
            shown(quiet),
            shown(busy)
        )
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
        let unknown = || {
            let known: Vec<&str> = live().map(|setting| &*setting.name).collect();
            let last = |name: &'_ str| name.rsplit('.').next().unwrap_or_default().to_owned();
            let parts: Vec<String> = known.iter().map(|name| last(name)).collect();
            let meant = nearest(&last(&self.setting), parts.iter().map(String::as_str)).map(str::to_owned);
            ExperimentPlanError::UnknownSetting { name: self.setting.clone(), known: known.join(", "), meant }
        };
        let setting = find_setting(live(), &self.setting).ok_or_else(unknown)?;
        let info = SettingInfo::find(infos, &setting.name);
        let value = |text: &str| setting.parse(info, text).map_err(ExperimentPlanError::Refused);
        let (a, b) =
            (value(&self.a)?, value(&self.b).map_err(|error| self.wrong_word(setting).unwrap_or(error))?);
        if a == b {
            return Err(ExperimentPlanError::Same(format!("{} {} and {}", setting.name, self.a, self.b)));
        }
        if let Some(metric) = self.metrics.iter().find(|metric| defines(&setting.name, [&a, &b], metric)) {
            let (setting, metric) = (setting.name.clone(), metric.to_string());
            return Err(ExperimentPlanError::Defined { setting, metric });
        }
        let flush = self.flush.unwrap_or_else(|| concerns_resumption(&setting.name));
        Ok(SettingChange { setting: setting.name.clone(), before: setting.value.clone(), a, b, flush })
    }

    /// The word after the second value that was meant as a word of the plan: one that is like such a word, or any if the
    /// value cannot hold commas.
    fn wrong_word(&self, setting: &Setting) -> Option<ExperimentPlanError> {
        let is_list = matches!(setting.value, Value::Text(_));
        let mut words = self.b.split(',').skip(1).map(str::trim);
        words.find(|word| !is_list || meant(word).is_some()).map(unknown_word)
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

/// True if the figure says what these values of a setting are, and nothing of their effect.
fn defines(setting: &str, values: [&Value; 2], metric: &ComparableFigure) -> bool {
    let name = metric.figure().short_name();
    let is_of_resumption =
        name == "resumed.ratio" || name == "handshakes.offers.ratio" || name.starts_with("handshakes.full.");
    let turns_off = values.iter().any(|value| value.to_string() == "off");
    is_of_resumption && (setting == "load.resume" || setting == "proxy.resumption" && turns_off)
}

fn unknown_word(word: &str) -> ExperimentPlanError {
    ExperimentPlanError::UnknownWord { word: word.to_owned(), meant: meant(word) }
}

/// The word of a plan that is like this one.
fn meant(word: &str) -> Option<&'static str> {
    let name = word.split_inclusive('=').next().unwrap_or_default();
    nearest(name, WORDS)
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
