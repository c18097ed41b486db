//! The alerts that fire at a moment.

use model::alerts::{Alert, Alerts, UndersampledAlert};
use model::figures::{AlertFigure as _, Figure, FigureName, Statistic};
use model::runs::{AlertEpisode, Run};
use records::metrics::LatencyClass;

use super::health::Warning;
use crate::theme::format;

#[derive(Clone, Debug)]
pub(crate) struct FiringAlert {
    /// `None` if the figure is of a later version.
    figure: Option<Figure>,
    /// The alert, its value when it fired, and since when.
    pub(crate) text: String,
    pub(crate) condition: String,
    /// Its setting, such as `alert.1`.
    setting: String,
    /// When it fired, on the run's monotonic clock.
    pub(crate) fired_us: u64,
    /// How long it has fired.
    pub(crate) since: String,
}

impl FiringAlert {
    /// Returns whether it is about a statistic of a class of latencies.
    pub(crate) fn is_about(&self, class: LatencyClass, statistic: Statistic) -> bool {
        self.figure == Some(Figure::Latency(class, statistic))
    }

    pub(crate) fn is_about_p99(&self, class: LatencyClass) -> bool {
        self.is_about(class, Statistic::Percentile(0.99))
    }

    /// Returns whether it is about one of the figures with these names, without their side.
    pub(crate) fn is_about_any(&self, names: &[&str]) -> bool {
        self.figure.as_ref().is_some_and(|figure| names.contains(&&*figure.short_name()))
    }

    pub(crate) fn warning(&self) -> Warning {
        Warning(self.text.clone())
    }
}

/// A limit that an alert sets to a percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LatencyLimit {
    pub(crate) class: LatencyClass,
    pub(crate) ns: f64,
}

/// Returns the limits of all alerts that are set at a moment.
pub(crate) fn limits(run: &Run, us: u64) -> Vec<LatencyLimit> {
    let names = run.settings().iter().map(|setting| &*setting.name).filter(|name| Alerts::is_setting(name));
    let alerts = names.filter_map(|name| run.setting_at(us, name)?.parse::<Alert>().ok());
    let limits = alerts.filter_map(|alert| {
        let figure = alert.condition().figure().figures().next()?;
        let Figure::Latency(class, Statistic::Percentile(_) | Statistic::Max) = figure else { return None };
        Some(LatencyLimit { class, ns: alert.condition().limit_of(&figure).ok()? * 1e3 })
    });
    limits.collect()
}

impl FiringAlert {
    /// Says of an alert that lacks samples now that it cannot be judged, and how long it has fired.
    fn with_shortage(mut self, shortages: &[UndersampledAlert]) -> Self {
        if let Some(shortage) = shortages.iter().find(|shortage| self.is_of(shortage)) {
            let UndersampledAlert { samples, needed, .. } = shortage;
            let (samples, needed) = (format::count(*samples), format::count(*needed));
            self.text = format!(
                "ALERT {}: cannot be judged, {samples} of {needed} samples; firing for {}",
                self.condition, self.since
            );
            // The value of so few says nothing.
            self.figure = None;
        }
        self
    }

    fn is_of(&self, shortage: &UndersampledAlert) -> bool {
        self.setting == shortage.setting
    }
}

/// Returns the alerts that lack samples and do not fire.
pub(crate) fn idle<'s>(
    firing: &'s [FiringAlert],
    shortages: &'s [UndersampledAlert],
) -> impl Iterator<Item = &'s UndersampledAlert> {
    shortages.iter().filter(|shortage| !firing.iter().any(|alert| alert.is_of(shortage)))
}

/// Says why an alert cannot fire.
pub(crate) fn shortage(shortage: &UndersampledAlert) -> Warning {
    Warning(format!("{} {shortage}", shortage.setting))
}

/// The alerts that fire at a moment, the latest first. A run that has ended has none.
pub(crate) fn at(run: &Run, us: u64, shortages: &[UndersampledAlert]) -> Vec<FiringAlert> {
    if run.stopped().is_some() && us >= run.last_us() {
        return Vec::new();
    }
    let firing = run.alerts().rev().filter(|episode| episode.is_firing_at(us));
    firing.map(|episode| alert(episode, us).with_shortage(shortages)).collect()
}

fn alert(episode: &AlertEpisode, us: u64) -> FiringAlert {
    let record = &episode.fired;
    let since = records::text::quantity::elapsed_text(us.saturating_sub(episode.fired_us) / 1_000_000);
    let value = record.shown(record.value);
    let name: Option<FigureName> = record.figure.parse().ok();
    FiringAlert {
        figure: name.and_then(|name| name.figures().next()),
        text: format!("ALERT {}: firing for {since}, {value} at first", record.condition),
        condition: record.condition.clone(),
        setting: format!("alert.{}", record.number),
        fired_us: episode.fired_us,
        since,
    }
}
