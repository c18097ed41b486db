//! Alerts that cannot fire, since their windows have too few samples.

use std::fmt;
use std::time::Duration;

use super::Alert;
use super::grammar::WINDOW_MAX;
use crate::figures::{Figure, RoundedSeconds};
use crate::runs::Run;

/// Windows that are proposed, in seconds.
const WINDOWS_S: [u64; 11] = [10, 20, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 3_600];

/// An alert on a percentile whose last window had some samples, but too few.
#[derive(Clone, Debug, PartialEq)]
pub struct UndersampledAlert {
    /// The name of its setting.
    pub setting: String,
    pub alert: Alert,
    /// The samples in the last window.
    pub samples: u64,
    /// The samples that its percentile takes.
    pub needed: u64,
}

impl UndersampledAlert {
    /// The alerts among a run's settings that have too few samples at present. A run that has ended, or is younger
    /// than the window, has none.
    pub fn of(run: &Run) -> Vec<Self> {
        let is_over = run.stopped().is_some();
        let alerts =
            run.settings().iter().filter(|setting| !is_over && super::Alerts::is_setting(&setting.name));
        alerts
            .filter_map(|setting| {
                let alert: Alert = setting.value.to_string().parse().ok()?;
                let window_us = alert.window().as_micros() as u64;
                let from_us = run.last_us().checked_sub(window_us).filter(|us| *us >= run.began_us())?;
                let samples = |figure: Figure| {
                    let needed = figure.samples_needed()?;
                    figure.samples_since(run, from_us).map(|samples| (samples, needed))
                };
                let (samples, needed) = alert.condition().figure().figures().find_map(samples)?;
                let is_short = (1..needed).contains(&samples);
                is_short.then(|| Self { setting: setting.name.clone(), alert, samples, needed })
            })
            .collect()
    }

    /// A window that has enough samples at the rate of the last one; `None` if no alert can have one as long.
    pub fn window(&self) -> Option<Duration> {
        // A tenth more, since the rate varies.
        let enough_s = self.alert.window().as_secs_f64() * 1.1 * self.needed as f64 / self.samples as f64;
        let found = WINDOWS_S.into_iter().find(|window_s| *window_s as f64 >= enough_s);
        found.map(Duration::from_secs).filter(|window| *window <= WINDOW_MAX)
    }

    /// A window with enough samples: `needs over 2m`.
    pub fn remedy(&self) -> String {
        match self.window() {
            Some(window) => format!("needs over {}", humantime::format_duration(window)),
            None => "too few samples at this rate".to_owned(),
        }
    }
}

impl fmt::Display for UndersampledAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting: _, alert, samples, needed } = self;
        let window = RoundedSeconds(alert.window().as_micros() as u64);
        write!(f, "cannot fire, {}: {samples} of {needed} samples in {window}", self.remedy())
    }
}
