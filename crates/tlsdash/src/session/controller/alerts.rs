//! The controller's handling of alerts: it passes each interval to them, and records and shows the results.

use journal::Timestamps;
use model::alerts::{AlertInterval, AlertUpdate, Alerts};
use records::kinds::{AlertRecord, AlertState, HostRecord, Level};
use records::setting::{Setting, SettingError, Value};

use super::RunController;
use crate::cli::ProxyOptions;

impl RunController {
    /// Passes the last interval to the alerts. `is_whole` is false if the process did not run during all of it.
    pub(super) fn observe_alerts(&mut self, now: Timestamps, is_whole: bool, host: &HostRecord) {
        let news = self.setup.alerts.observe(&AlertInterval {
            end_us: now.monotonic_us,
            is_whole,
            proxy: self.workload.counts_traffic().then_some(&self.proxy_delta),
            load: self.workload.load_state().map(|state| (&self.load_delta, state)),
            host,
        });
        for news in news {
            match news {
                AlertUpdate::Transition(record) => self.report_alert(record, now),
                AlertUpdate::Notice(notice) => self.report(notice),
            }
        }
    }

    /// Changes an alert, and records the change. Returns false if there is none.
    pub(super) fn change_alert(&mut self, name: &str, value: &Value, by: &str) -> Result<bool, SettingError> {
        let change = self.setup.alerts.set(name, value)?;
        if let Some(record) = change.withdrawn {
            self.report_alert(record, Timestamps::now());
        }
        Ok(self.record_change(change.before, change.after, by))
    }

    fn report_alert(&mut self, record: AlertRecord, now: Timestamps) {
        let level = if record.state == AlertState::Fired { Level::Warning } else { Level::Notice };
        self.show(level, &record.sentence.0);
        self.publisher.alert(record, now);
    }
}

/// The settings of alerts; `None` if there are too many.
pub(super) fn alert_changes(options: &ProxyOptions, settings: &[Setting]) -> Option<Vec<(String, Value)>> {
    let names: Vec<_> =
        settings.iter().map(|setting| &setting.name).filter(|name| Alerts::is_setting(name)).collect();
    let alerts = &options.run.alert;
    let off = || "off".to_owned();
    let value = |number: usize| alerts.get(number).map_or_else(off, |alert| alert.text().to_owned());
    let changes =
        names.iter().enumerate().map(|(number, name)| ((*name).clone(), Value::Text(value(number))));
    (alerts.len() <= names.len()).then(|| changes.collect())
}
