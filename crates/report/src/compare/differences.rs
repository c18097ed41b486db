//! Settings and hosts that differ between two runs, and why a figure may not be comparable.

use experiment::ComparableFigure;
use model::alerts::Alerts;
use model::runs::Run;
use records::setting::{Setting, is_certificate};
use serde::Serialize;

use crate::report::Report;

/// With a larger share of records lost, figures are not compared.
const LOST_MAX: f64 = 0.01;
/// Settings that differ between any two runs, that follow from others (`connections-max` follows from the limit on
/// descriptors), or that no figure depends on.
const OWN: [&str; 4] = ["load.running", "proxy.listen", "proxy.upstream", "proxy.connections-max"];
/// Where the load went: two targets may well be compared.
const TARGET: &str = "load.target";
/// What the load began with.
const PLAN: &str = "load.plan";
/// The words of a plan that no other setting has.
const PLAN_WORDS: [&str; 3] = ["arrivals", "early-data", "lifetime"];
/// The parts of the environment that make figures differ.
const ENVIRONMENT: [&str; 6] =
    ["tlsdash", "processor", "frequency set by", "memory", "kernel", "clock source"];

/// True for a setting that does not make runs differ.
fn is_own(name: &str) -> bool {
    OWN.contains(&name) || Alerts::is_setting(name)
}

/// A setting's name, its value in the first run, and in the second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Difference(pub(crate) String, pub(crate) String, pub(crate) String);

/// Why no figure of the runs is comparable, the load first.
pub(super) fn unlike(a: &Run, b: &Run, differs: &[Difference]) -> Vec<String> {
    let loads: Vec<String> = differs
        .iter()
        .filter(|Difference(name, ..)| name.starts_with("load.") && name != TARGET)
        .map(|Difference(name, a, b)| format!("{name} {a} and {b}"))
        .collect();
    let mut all: Vec<String> =
        if loads.is_empty() { Vec::new() } else { vec![format!("the load differed: {}", loads.join(", "))] };
    for (name, run) in [("first", a), ("second", b)] {
        // Two stretches of one run need no first record: it began with the same settings for both.
        if run.began().is_none() && a.id() != b.id() {
            all.push(format!(
                "the settings of the {name} run are not known, as its first record was not read"
            ));
        }
        all.extend(changed_during(run).map(|setting| format!("{setting} changed during the {name} run")));
    }
    all
}

/// The name of a setting that changed during the run, or that an experiment switched.
fn changed_during(run: &Run) -> Option<String> {
    if let Some(experiment) = run.experiments().next() {
        return Some(experiment.state.setting.clone());
    }
    let before = &run.began()?.settings;
    let differs = |now: &&Setting| {
        !is_own(&now.name) && before.iter().any(|then| then.name == now.name && then.value != now.value)
    };
    run.settings().iter().find(differs).map(|setting| setting.name.clone())
}

pub(super) fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let value = |run: &Run, name: &str| match run.setting(name) {
        Some(setting) if name == PLAN => own_words(&setting.value.to_string()),
        Some(setting) => setting.value.to_string(),
        None => "not there".to_owned(),
    };
    let mut names: Vec<&str> =
        a.settings().iter().chain(b.settings()).map(|setting| &*setting.name).collect();
    names.sort_unstable();
    names.dedup();
    let both = names.into_iter().map(|name| Difference(name.to_owned(), value(a, name), value(b, name)));
    // A certificate made for each run differs in its dates; its kind is in the run's first record.
    let is_listed = |name: &str| !is_own(name) && !is_certificate(name);
    let mut all: Vec<_> = both.filter(|Difference(name, a, b)| is_listed(name) && a != b).collect();
    let kind = |run: &Run| run.began().map(|began| began.certificate.clone()).unwrap_or_default();
    if kind(a) != kind(b) {
        all.push(Difference("certificate".to_owned(), kind(a), kind(b)));
    }
    all
}

/// What only the plan says.
fn own_words(plan: &str) -> String {
    let is_own = |word: &&str| PLAN_WORDS.iter().any(|own| word.split('=').next() == Some(*own));
    let words: Vec<&str> = plan.split(',').filter(is_own).collect();
    if words.is_empty() { "the defaults".to_owned() } else { words.join(",") }
}

/// Why a figure is not comparable.
pub(super) fn obstacle(metric: &ComparableFigure, a: &Report<'_>, b: &Report<'_>) -> Option<String> {
    [("first", a), ("second", b)].iter().find_map(|(name, side)| {
        let journal = side.summary.journal.as_ref();
        let lost = journal.map_or(0.0, |journal| journal.lost as f64 / journal.made.max(1) as f64);
        if lost > LOST_MAX {
            return Some(format!("losses: {:.1} % of the {name} run's records", lost * 100.0));
        }
        let lines = side.summary.log.as_ref().and_then(|log| log.lines);
        let lost =
            lines.and_then(|lines| Some(lines.lost? as f64 / lines.read.saturating_add(lines.lost?) as f64));
        if let Some(lost) = lost.filter(|lost| *lost > LOST_MAX) {
            return Some(format!("losses: {:.1} % of the lines of the {name} run's log", lost * 100.0));
        }
        let limit = side.summary.load.as_ref().and_then(|load| load.generator.limits.first());
        let limit = limit.filter(|_| metric.is_of_generator())?;
        Some(format!("generator-bound in the {name} run: {limit}"))
    })
}

/// Caveats of the comparison.
pub(super) fn notes(a: &Report<'_>, b: &Report<'_>, differs: &[Difference]) -> Vec<String> {
    let mut all = vec![
        "one run of each cannot tell a setting from the hour: whatever else differed between the runs is in the difference, and the intervals are of what varied within them; which setting is better takes alternation (--ab)".to_owned(),
    ];
    if a.run.hostname() != b.run.hostname() {
        all.push(format!("the runs were on different hosts: {} and {}", a.run.hostname(), b.run.hostname()));
    }
    let elsewhere = side_by_side(&a.environment(), &b.environment())
        .into_iter()
        .filter(|(name, a, b)| a != b && ENVIRONMENT.contains(name));
    all.extend(elsewhere.map(|(name, a, b)| format!("the runs differ in {name}: {a} and {b}")));
    for (name, run) in [("A", a.run), ("B", b.run)] {
        let Some(began) = run.counted_log().filter(|began| began.log_resolution_us > 0) else { continue };
        all.push(format!(
            "{name} was counted from a log of {} with times to {} ms: what took less counts as that much, so such a figure is a bound, and a smaller difference than that is none",
            began.log,
            began.log_resolution_us as f64 / 1e3
        ));
    }
    if differs.len() > 1 {
        all.push("several settings differ: which of them made a difference is not told".to_owned());
    }
    all
}

/// The values of both runs by name; a dash where one run has none.
pub(crate) fn side_by_side<N: PartialEq + Clone>(
    a: &[(N, String)],
    b: &[(N, String)],
) -> Vec<(N, String, String)> {
    let value = |of: &[(N, String)], name: &N| {
        of.iter().find(|(known, _)| known == name).map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let only_b = b.iter().filter(|(name, _)| a.iter().all(|(known, _)| known != name));
    a.iter().chain(only_b).map(|(name, _)| (name.clone(), value(a, name), value(b, name))).collect()
}
