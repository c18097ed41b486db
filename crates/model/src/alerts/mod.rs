//! Alerts: conditions on a run's figures over the last moments, evaluated once per interval by the process that
//! serves.
//!
//! An alert is `FIGURE OP VALUE [for TIME] [over WINDOW]`. Over a window, every figure of the catalogue has the value
//! that it would have for a run of the last WINDOW alone (see `window.rs`). An alert fires once its condition has held
//! at every interval for TIME, and resolves at the first interval at which the condition does not hold. An interval
//! without a value (a gap, too few samples, a load that does not measure) neither fires nor resolves, and neither does
//! an interval whose figure is a bound of a log that cannot decide the condition.

mod grammar;
mod shortage;
#[cfg(test)]
mod tests;
mod watched;
mod window;

use crate::figures::{FigureSubjects, RoundedSeconds};
use records::kinds::{AlertRecord, HttpGauges, Level, NoticeRecord};
use records::metrics::{Counters, ProxyCounter};
use records::setting::{Applies, Setting, SettingError, Value};

pub use grammar::{Alert, AlertError};
pub use shortage::UndersampledAlert;
use watched::{Obstacle, Transition, WatchedAlert};
pub use window::AlertInterval;
use window::IntervalGauges;

pub const ALERTS_MAX: usize = 32;
/// Alerts that are not set yet, for a person who adds one while the run lasts.
pub const ALERTS_SPARE: usize = 2;

/// The value of an alert that is not set.
const OFF: &str = "off";
/// The prefix of an alert's number in the name of its setting.
const PREFIX: &str = "alert.";

/// The alerts of a run. Each is a setting, `alert.1` and so on, which can be changed and switched off.
#[derive(Debug, Default)]
pub struct Alerts {
    slots: Vec<Option<WatchedAlert>>,
    subjects: FigureSubjects,
    proxy: Counters<ProxyCounter>,
    /// The gauges of HTTP mode; `None` in TCP mode.
    http: Option<HttpGauges>,
}

/// A change of an alert in an interval, for the run's records.
#[derive(Clone, Debug, PartialEq)]
pub enum AlertUpdate {
    /// An alert fired, or no longer does.
    Transition(AlertRecord),
    /// An alert cannot be evaluated.
    Notice(NoticeRecord),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertsError {
    #[error("{0} alerts; a run has at most {ALERTS_MAX}")]
    TooMany(usize),
    #[error("{0}: {1}")]
    Alert(String, AlertError),
}

impl Alerts {
    /// The alerts of a run with figures of these subjects, and `spare` more alerts that are not set.
    ///
    /// # Errors
    /// When there are too many, or the run lacks the subject of an alert.
    pub fn new(alerts: &[Alert], spare: usize, subjects: FigureSubjects) -> Result<Self, AlertsError> {
        if alerts.len() > ALERTS_MAX {
            return Err(AlertsError::TooMany(alerts.len()));
        }
        let watched = alerts.iter().map(|alert| {
            let watched = WatchedAlert::new(alert.clone(), &subjects);
            watched.map(Some).map_err(|error| AlertsError::Alert(alert.to_string(), error))
        });
        let mut slots = watched.collect::<Result<Vec<_>, _>>()?;
        slots.resize_with((alerts.len() + spare).min(ALERTS_MAX), || None);
        Ok(Self { slots, subjects, proxy: Counters::default(), http: None })
    }

    /// Takes over that the proxy has more upstreams, in the order of their index.
    pub fn name_upstreams(&mut self, names: &[String]) {
        self.subjects.set_upstreams(names);
    }

    /// True if the run has no alert and can get none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// True for the name of an alert's setting.
    pub fn is_setting(name: &str) -> bool {
        name.starts_with(PREFIX)
    }

    /// The number of the alert whose setting has this name, from 1.
    pub fn number(name: &str) -> Option<usize> {
        name.strip_prefix(PREFIX)?.parse().ok().filter(|number| *number > 0)
    }

    /// True for the value of an alert that is not set.
    pub fn is_off(value: &Value) -> bool {
        matches!(value.to_string().trim(), "" | OFF)
    }

    /// One setting for each alert.
    pub fn settings(&self) -> Vec<Setting> {
        (0..self.slots.len()).map(|at| self.setting(at)).collect()
    }

    fn setting(&self, at: usize) -> Setting {
        let value =
            self.slots[at].as_ref().map_or_else(|| OFF.to_owned(), |watched| watched.alert().to_string());
        Setting {
            name: format!("{PREFIX}{}", at + 1),
            value: Value::Text(value),
            unit: String::new(),
            applies: Applies::Live,
            range: None,
        }
    }

    /// Changes an alert, or switches it off. Returns the setting before and after, and a record if the alert was
    /// firing.
    ///
    /// # Errors
    /// If there is no such alert, or the text is not an alert.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<AlertChange, SettingError> {
        let at = Self::number(name).map(|number| number - 1).filter(|at| *at < self.slots.len());
        let at = at.ok_or_else(|| SettingError::Unknown(name.to_owned()))?;
        let before = self.setting(at);
        let text = value.to_string();
        let watched = self.parse(&text).map_err(|error| SettingError::Refused {
            name: name.to_owned(),
            value: records::text::clean::text(&text),
            reason: error.to_string(),
        })?;
        if watched.as_ref().map(WatchedAlert::alert) == self.slots[at].as_ref().map(WatchedAlert::alert) {
            return Ok(AlertChange { after: before.clone(), before, withdrawn: None });
        }
        let old = std::mem::replace(&mut self.slots[at], watched);
        let withdrawn = old
            .and_then(WatchedAlert::withdraw)
            .map(|record| AlertRecord { number: at as u64 + 1, ..record });
        Ok(AlertChange { before, after: self.setting(at), withdrawn })
    }

    fn parse(&self, text: &str) -> Result<Option<WatchedAlert>, AlertError> {
        match text.trim() {
            "" | OFF => Ok(None),
            text => WatchedAlert::new(text.parse()?, &self.subjects).map(Some),
        }
    }

    /// Processes an interval that has ended. Returns the alerts that fire or resolve at its end.
    pub fn observe(&mut self, interval: &AlertInterval<'_>) -> Vec<AlertUpdate> {
        if let Some(delta) = interval.proxy {
            self.proxy.add(&delta.counters);
            if let Some(http) = &delta.http {
                self.http.get_or_insert_default().add(http.gauges);
            }
        }
        let http = self.http;
        let open = self.proxy[ProxyCounter::Accepted].saturating_sub(self.proxy[ProxyCounter::Closed]);
        let watched = (1..).zip(&mut self.slots).filter_map(|(number, slot)| Some((number, slot.as_mut()?)));
        watched
            .filter_map(|(number, watched)| {
                Some(match watched.observe(interval, IntervalGauges { open, http })? {
                    Transition::Record(record) => AlertUpdate::Transition(AlertRecord { number, ..record }),
                    Transition::Unknown(obstacle) => {
                        AlertUpdate::Notice(not_evaluated(watched.alert(), obstacle))
                    }
                })
            })
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlertChange {
    pub before: Setting,
    pub after: Setting,
    /// The record of the alert that was firing.
    pub withdrawn: Option<AlertRecord>,
}

fn not_evaluated(alert: &Alert, obstacle: Obstacle) -> NoticeRecord {
    let why = match obstacle {
        Obstacle::TooFew(n, needed) => format!(
            "{n} samples over {} of the {needed} that it takes; a longer window (over TIME) has more",
            RoundedSeconds(alert.window().as_micros() as u64)
        ),
        Obstacle::Bound(value) => format!(
            "it is {}, at the log's resolution; a higher limit can be judged",
            alert.condition().figure().unit().show_known(value)
        ),
    };
    NoticeRecord::new(Level::Notice, "alert", &format!("alert {alert} is not evaluated: {why}"))
}
