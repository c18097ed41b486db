//! An alert that fires, with the part of the time that explains it, as a line and among the findings.

use model::insight::{Evidence, Finding, FindingText, Severity};
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};

use crate::input::intent::{Intent, SeekTarget};
use crate::state::State;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::alerts::FiringAlert;
use crate::view_model::classes::LatencyRow;

/// A part explains a percentile of the whole if it is at least this share of it.
const EXPLAINS_MIN: f64 = 0.5;

/// Returns an alert as the finding that leads the list, with its parts and where to look.
pub(super) fn as_finding(state: &State, figures: &ViewModel, alert: &FiringAlert) -> Finding {
    let row = row_of(figures, alert);
    let evidence = row.into_iter().flat_map(|row| {
        let parts = parts(row.class).iter().filter_map(|class| figures.latency(*class));
        [row].into_iter().chain(parts).filter_map(|row| {
            let p99 = row.quantiles[2]?;
            let figure = format!("p99 of {}, {}", row.class.title(), figures.span.words());
            Some(Evidence {
                figure,
                value: format!("{} ms of {} samples", format::millis(p99.ns), format::count(row.n)),
            })
        })
    });
    let key =
        state.options.keymap.names(Intent::Seek(SeekTarget::Worst)).into_iter().next().unwrap_or_default();
    let advice = if row.is_some() {
        format!("{key} goes to the worst moment, with its clients, upstreams and changes of settings")
    } else {
        "the first clients of their list fail most; the log and the other findings say why".to_owned()
    };
    let title = explained(figures, alert).into_iter().next().unwrap_or_default();
    let text =
        FindingText { title, evidence: evidence.collect(), advice: vec![advice], ..FindingText::default() };
    let (severity, since_us) = (Severity::Critical, alert.fired_us);
    Finding { id: "alert", run: None, severity, since_us, closed_us: None, text }
}

/// Returns an alert with the value at the moment, and the part of the time that explains it. Where there is no room for
/// all of it, the limit is left to the plot.
pub(crate) fn explained(figures: &ViewModel, alert: &FiringAlert) -> Vec<String> {
    let Some(row) = row_of(figures, alert) else { return vec![alert.text.clone()] };
    let now = row.quantiles[2].map_or_else(String::new, |p99| format!(", now {} ms", format::millis(p99.ns)));
    let because = because(figures, row).map_or_else(String::new, |because| format!(": {because}"));
    let name = alert.condition.split(' ').next().unwrap_or_default();
    vec![
        format!("ALERT {}: firing for {}{now}{because}", alert.condition, alert.since),
        format!("ALERT {}{now}{because}", alert.condition),
        format!("ALERT {name}{now}{because}"),
        format!("{name}{now}{because}"),
    ]
}

/// Returns which part of a latency takes most of its p99.
fn because(figures: &ViewModel, row: &LatencyRow) -> Option<String> {
    let whole = row.quantiles[2]?.ns;
    if row.class == LatencyClass::Proxy(ProxyLatency::HandshakeFull) {
        let wall = figures.handshakes.walls[0].as_ref()?;
        let (name, ns) = wall.parts.iter().max_by_key(|(_, ns)| *ns)?;
        let share = format::percent(*ns as f64 / wall.sum_ns().max(1) as f64);
        return Some(format!("{name} takes {share} of it"));
    }
    let known = parts(row.class).iter().filter_map(|class| figures.latency(*class));
    let explains = |part: &&LatencyRow| {
        part.quantiles[2]
            .is_some_and(|part| part.ns as f64 >= whole as f64 * EXPLAINS_MIN && part.ns <= whole)
    };
    let part = known.filter(explains).max_by_key(|part| part.quantiles[2].map(|part| part.ns))?;
    Some(format!("{} takes {} ms of it", part.class.title(), format::millis(part.quantiles[2]?.ns)))
}

/// Returns the class on whose p99 an alert is.
fn row_of<'a>(figures: &'a ViewModel, alert: &FiringAlert) -> Option<&'a LatencyRow> {
    figures.latencies.iter().find(|row| alert.is_about_p99(row.class))
}

/// Returns the classes that are parts of a class.
fn parts(class: LatencyClass) -> &'static [LatencyClass] {
    match class {
        LatencyClass::Proxy(ProxyLatency::Exchange) => &[LatencyClass::Proxy(ProxyLatency::Connect)],
        LatencyClass::Http(HttpLatency::FirstByte | HttpLatency::Request) => {
            &[LatencyClass::Http(HttpLatency::Upstream), LatencyClass::Http(HttpLatency::Queue)]
        }
        LatencyClass::Load(LoadLatency::Response | LoadLatency::Service) => &[
            LatencyClass::Load(LoadLatency::Lag),
            LatencyClass::Proxy(ProxyLatency::Connect),
            LatencyClass::Proxy(ProxyLatency::Exchange),
        ],
        _ => &[],
    }
}
