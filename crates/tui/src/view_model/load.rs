//! The load as a whole.

use model::runs::Run;
use records::metrics::{Counters, LoadCounter, Metric as _, labels};
use records::setting::Value;

use super::span::{Count, LoadSpanData};
use crate::panes::handshakes::model::{NamedCount, seen};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopState {
    /// The load sends no requests.
    Stopped,
    /// Requests fall due on a schedule.
    Open,
    /// A request follows the answer to the last one.
    Closed,
}

/// What the load is asked for, and what it does.
#[derive(Clone, Debug)]
pub(crate) struct LoadFigures {
    pub(crate) kind: LoopState,
    /// Requests a second that are asked for; 0 in a closed loop.
    pub(crate) offered_per_second: f64,
    /// Requests sent a second; `None` while no time has passed.
    pub(crate) sent_per_second: Option<f64>,
    /// Connections that are asked for.
    pub(crate) connections: u64,
    /// Share of new connections that are meant to resume, in percent.
    pub(crate) resume_percent: f64,
    /// Requests on a connection: `on`, `off` or a number; empty if the setting was not read.
    pub(crate) keep_alive: String,
    /// Requests sent since the beginning.
    pub(crate) sent: u64,
    /// Requests answered well since the beginning.
    pub(crate) ok: u64,
    pub(crate) failed: Count,
    /// Failed requests by cause, over the span.
    pub(crate) causes: Vec<NamedCount<'static>>,
    /// Requests that were due and never sent.
    pub(crate) never_sent: Count,
    /// Requests that were sent and got no complete answer.
    pub(crate) unfinished: u64,
}

impl LoadFigures {
    /// Returns `None` before the first record of the load. Requested rate and connections are those of its last record.
    pub(crate) fn of(run: &Run, totals: &Counters<LoadCounter>, taken: &LoadSpanData<'_>) -> Option<Self> {
        let record = run.load_record()?;
        let causes = labels::request_failures().map(|(_, counter)| (counter.names().title, counter));
        Some(Self {
            kind: kind(record.running && run.stopped().is_none(), record.rate),
            offered_per_second: record.rate,
            sent_per_second: taken.rate(LoadCounter::Sent),
            connections: record.connections,
            resume_percent: record.resume_percent,
            keep_alive: run.setting("load.keep-alive").map_or_else(String::new, |setting| {
                match &setting.value {
                    Value::Number(number) => crate::theme::format::plain(*number),
                    other => other.to_string(),
                }
            }),
            sent: totals[LoadCounter::Sent],
            ok: totals[LoadCounter::Ok],
            failed: Count::of(totals, taken, &[LoadCounter::Failed]),
            causes: seen(causes, &taken.counters),
            never_sent: Count::of(totals, taken, &[LoadCounter::NeverSent]),
            unfinished: totals[LoadCounter::Unfinished],
        })
    }

    /// Applies the requested values of the settings at a moment, as text.
    pub(crate) fn apply_settings(&mut self, value: impl Fn(&str) -> Option<String>) {
        let number = |name: &str| value(name).and_then(|text| text.parse::<f64>().ok());
        self.offered_per_second = number("load.rate").unwrap_or(self.offered_per_second);
        self.resume_percent = number("load.resume").unwrap_or(self.resume_percent);
        self.connections = number("load.connections").map_or(self.connections, |n| n as u64);
        self.keep_alive = value("load.keep-alive").unwrap_or_else(|| self.keep_alive.clone());
        let is_running = value("load.running").map_or(self.kind != LoopState::Stopped, |text| text == "on");
        self.kind = kind(is_running, self.offered_per_second);
    }
}

fn kind(is_running: bool, rate: f64) -> LoopState {
    match (is_running, rate > 0.0) {
        (false, _) => LoopState::Stopped,
        (true, true) => LoopState::Open,
        (true, false) => LoopState::Closed,
    }
}
