//! Two runs compared, figure by figure.

use std::fmt::Write as _;
use std::time::Duration;

use experiment::{Estimate, Judged, Method, Metric, Scale, blocks, compare};
use serde::Serialize;
use telemetry::model::{Run, Summary};
use telemetry::{LoadLatency, Setting};

/// Error rate over all figures together.
const ALPHA: f64 = 0.05;
/// Share of a run's records that may be lost before nothing is said.
const LOST_MAX: f64 = 0.01;
/// From which the draws are made: the same runs give the same words.
const SEED: u64 = 1;
/// Settings that differ between any two runs, or follow from what else there is (the bound on connections from the
/// descriptors), or that the figures do not depend on.
const OWN: [&str; 6] =
    ["load.running", "load.target", "load.plan", "proxy.listen", "proxy.upstream", "proxy.connections-max"];

/// A run that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its summary, with the journal's part.
    pub summary: &'a Summary,
}

/// How runs are compared.
#[derive(Clone, Debug)]
pub struct Comparing {
    /// What is compared; empty: what both runs have of the usual.
    pub metrics: Vec<Metric>,
    /// Length of a block.
    pub block: Duration,
    /// Time at the beginning of a run that does not count.
    pub discard: Duration,
}

/// Two runs have nothing to say about each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not comparable: {0}")]
pub struct NotComparable(String);

/// What the comparison of two runs came to.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    schema: u64,
    a: Compare,
    b: Compare,
    block_s: f64,
    discard_s: f64,
    /// Settings that differ: name, as it stood in the first, and in the second.
    differs: Vec<(String, String, String)>,
    metrics: Vec<Row>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Compare {
    source: String,
    run: String,
    duration_s: f64,
    blocks: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    metric: String,
    unit: &'static str,
    outcome: String,
    reason: String,
    estimate: Option<Figures>,
}

/// Effects are in percent of the first run's figure, of shares in percentage points.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    a: f64,
    b: f64,
    effect_percent: f64,
    low_percent: f64,
    high_percent: f64,
    confidence_percent: f64,
    p: f64,
}

/// Compares two runs.
///
/// # Errors
/// If the load differed, a setting changed during one of them, or they have no figure in common.
pub fn comparison(a: Compared<'_>, b: Compared<'_>, how: &Comparing) -> Result<Comparison, NotComparable> {
    for (name, side) in [("the first", a), ("the second", b)] {
        if let Some(changed) = changed_during(side.run) {
            return Err(NotComparable(format!("{changed} changed during {name} run")));
        }
    }
    let differs = differences(a.run, b.run);
    let loads: Vec<String> = differs
        .iter()
        .filter(|(name, ..)| name.starts_with("load."))
        .map(|(name, a, b)| format!("{name} {a} and {b}"))
        .collect();
    if !loads.is_empty() {
        return Err(NotComparable(format!("the load differed: {}", loads.join(", "))));
    }
    let metrics = if how.metrics.is_empty() { usual(a.run, b.run) } else { how.metrics.clone() };
    if metrics.is_empty() {
        return Err(NotComparable("the runs have no figure in common that has enough samples".to_owned()));
    }
    let [of_a, of_b] = [a, b].map(|side| blocks(side.run, &metrics, how.block, how.discard));
    let alpha = ALPHA / metrics.len() as f64;
    let method = Method { alpha, draws: Method::DRAWS, pairs_planned: 0, seed: SEED };
    let row = |(at, metric): (usize, &Metric)| {
        let in_the_way = in_the_way(metric, a, b);
        Row::new(metric, &compare(metric, at, &of_a, &of_b, &method, in_the_way.as_deref()))
    };
    Ok(Comparison {
        schema: 1,
        a: Compare::new(a, of_a.len()),
        b: Compare::new(b, of_b.len()),
        block_s: how.block.as_secs_f64(),
        discard_s: how.discard.as_secs_f64(),
        notes: notes(a.run, b.run, &differs),
        metrics: metrics.iter().enumerate().map(row).collect(),
        differs,
    })
}

/// The name of a setting that had another value at the end than at the beginning, or that an experiment switched.
fn changed_during(run: &Run) -> Option<String> {
    if let Some(experiment) = run.experiments().next() {
        return Some(experiment.state.setting.clone());
    }
    let before = &run.began()?.settings;
    let differs = |now: &&Setting| {
        let is_own = OWN.contains(&&*now.name);
        !is_own && before.iter().any(|then| then.name == now.name && then.value != now.value)
    };
    run.settings().iter().find(differs).map(|setting| setting.name.clone())
}

fn differences(a: &Run, b: &Run) -> Vec<(String, String, String)> {
    let value = |run: &Run, name: &str| {
        run.setting(name).map_or_else(|| "not there".to_owned(), |setting| setting.value.to_string())
    };
    let mut names: Vec<&str> =
        a.settings().iter().chain(b.settings()).map(|setting| &*setting.name).collect();
    names.sort_unstable();
    names.dedup();
    let both = names.into_iter().map(|name| (name.to_owned(), value(a, name), value(b, name)));
    // A certificate that is made for each run differs in its dates; its kind stands in the run's first record.
    let is_told = |name: &str| !OWN.contains(&name) && !name.starts_with("proxy.certificate");
    let mut all: Vec<_> = both.filter(|(name, a, b)| is_told(name) && a != b).collect();
    let kind = |run: &Run| run.began().map(|began| began.certificate.clone()).unwrap_or_default();
    if kind(a) != kind(b) {
        all.push(("certificate".to_owned(), kind(a), kind(b)));
    }
    all
}

/// The usual figures of which both runs have enough samples, at most eight.
fn usual(a: &Run, b: &Run) -> Vec<Metric> {
    let is_open = |run: &Run| run.load().is_some_and(|load| !load.whole()[LoadLatency::Response].is_empty());
    let names: &[&str] = if is_open(a) && is_open(b) {
        &[
            "response.p50",
            "response.p99",
            "exchange.p50",
            "exchange.p99",
            "handshake_full.p50",
            "handshake_resumed.p50",
            "cpu.per_exchange",
        ]
    } else {
        &[
            "requests.rate",
            "service.p50",
            "service.p99",
            "exchange.p50",
            "exchange.p99",
            "handshake_full.p50",
            "handshake_resumed.p50",
            "cpu.per_exchange",
        ]
    };
    let metrics = names.iter().filter_map(|name| name.parse::<Metric>().ok());
    metrics.filter(|metric| [a, b].iter().all(|run| metric.has_samples(run))).collect()
}

/// Why nothing can be said of a figure.
fn in_the_way(metric: &Metric, a: Compared<'_>, b: Compared<'_>) -> Option<String> {
    [("first", a), ("second", b)].iter().find_map(|(name, side)| {
        let journal = side.summary.journal.as_ref();
        let lost = journal.map_or(0.0, |journal| journal.lost as f64 / journal.made.max(1) as f64);
        if lost > LOST_MAX {
            return Some(format!("losses: {:.1} % of the {name} run's records", lost * 100.0));
        }
        let limit = side.summary.load.as_ref().and_then(|load| load.generator.limits.first());
        let limit = limit.filter(|_| metric.is_of_generator())?;
        Some(format!("generator-bound in the {name} run: {limit}"))
    })
}

fn notes(a: &Run, b: &Run, differs: &[(String, String, String)]) -> Vec<String> {
    let mut all = vec![
        "one run of each: what differed between the runs for other reasons than settings is in the difference too; tlsdash --ab tells them apart".to_owned(),
    ];
    if a.hostname() != b.hostname() {
        all.push(format!("the runs were on different hosts: {} and {}", a.hostname(), b.hostname()));
    }
    if differs.len() > 1 {
        all.push("several settings differ: which of them made a difference is not told".to_owned());
    }
    all
}

impl Compare {
    fn new(side: Compared<'_>, blocks: usize) -> Self {
        let source = side.summary.journal.as_ref().map(|journal| journal.source.clone());
        Self {
            source: source.unwrap_or_default(),
            run: side.summary.run.clone(),
            duration_s: side.summary.duration_s,
            blocks,
        }
    }
}

impl Row {
    fn new(metric: &Metric, judged: &Judged) -> Self {
        let figures = |estimate: Estimate| Figures {
            a: estimate.a,
            b: estimate.b,
            effect_percent: estimate.effect,
            low_percent: estimate.low,
            high_percent: estimate.high,
            confidence_percent: (1.0 - estimate.alpha) * 100.0,
            p: estimate.p,
        };
        let unit = if metric.scale() == Scale::Points { "" } else { metric.unit() };
        Self {
            metric: metric.name().to_owned(),
            unit,
            outcome: judged.outcome.to_string(),
            reason: judged.reason.clone(),
            estimate: judged.estimate.map(figures),
        }
    }

    fn cells(&self) -> [String; 5] {
        let name = format!("{} {}", self.metric, self.unit).trim_end().to_owned();
        let mut outcome = self.outcome.to_uppercase();
        if !self.reason.is_empty() {
            let _ = write!(outcome, ": {}", self.reason);
        }
        let Some(figures) = &self.estimate else {
            return [name, "-".to_owned(), "-".to_owned(), "-".to_owned(), outcome];
        };
        let Figures { a, b, effect_percent, low_percent, high_percent, confidence_percent, p } = figures;
        let difference = format!(
            "{effect_percent:+.2} ({low_percent:+.2} to {high_percent:+.2} at {confidence_percent:.1} %), p {p:.4}"
        );
        [name, format!("{a:.4}"), format!("{b:.4}"), difference, outcome]
    }
}

const HEADS: [&str; 5] = ["figure", "A", "B", "difference, %", "B against A"];

impl Comparison {
    /// A table for people.
    pub fn text(&self) -> String {
        let mut out = self.heads();
        let rows: Vec<[String; 5]> =
            std::iter::once(HEADS.map(str::to_owned)).chain(self.metrics.iter().map(Row::cells)).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: [usize; 4] = std::array::from_fn(width);
        for row in &rows {
            let _ = write!(out, "{:<w$}", row[0], w = widths[0]);
            let _ = write!(out, "  {:>a$}  {:>b$}", row[1], row[2], a = widths[1], b = widths[2]);
            let _ = writeln!(out, "  {:<w$}  {}", row[3], row[4], w = widths[3]);
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }

    fn heads(&self) -> String {
        let mut out = String::new();
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            let Compare { source, run, duration_s, blocks } = side;
            let _ = writeln!(
                out,
                "{name}: {source}, run {run}, {duration_s:.1} s, {blocks} blocks of {} s",
                self.block_s
            );
        }
        for (name, a, b) in &self.differs {
            let _ = writeln!(out, "differs: {name} {a} and {b}");
        }
        if self.differs.is_empty() {
            out.push_str("no setting differs\n");
        }
        out.push('\n');
        out
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# tlsdash: two runs compared\n\n");
        for line in self.heads().lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(out, "- {}", crate::markdown::escaped(line));
        }
        crate::markdown::table(
            &mut out,
            "Figures",
            &HEADS,
            self.metrics.iter().map(|row| row.cells().to_vec()),
        );
        out.push('\n');
        for note in &self.notes {
            let _ = writeln!(out, "- {}", crate::markdown::escaped(note));
        }
        out
    }

    /// The same as JSON (docs/reports.md).
    ///
    /// # Errors
    /// Never for what a journal can hold.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
