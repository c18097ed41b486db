//! The figures of a run at an earlier moment.

use telemetry::model::Run;
use telemetry::{LoadCounter, ProxyCounter};

use super::clients::{ClientLatency, rates_until};
use super::handshakes::Handshakes;
use super::{ClientRow, Figures, Span, Windows, classes, cpu_until};

/// Settings whose values are told first.
const MAIN: [&str; 4] = ["load.rate", "load.resume", "load.connections", "proxy.workers"];

/// A setting as it stood then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Then {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    /// How it stands now, if otherwise.
    pub(crate) now: Option<String>,
}

/// Settings as they stood until a moment: those that were changed since first, then those that matter most.
pub(crate) fn settings_at(run: &Run, us: u64) -> Vec<Then> {
    let then = |setting: &telemetry::Setting| {
        let (value, now) = (run.setting_at(us.saturating_sub(1), &setting.name)?, setting.value.to_string());
        let now = (now != value).then_some(now);
        Some(Then { name: setting.name.clone(), value, unit: setting.unit.clone(), now })
    };
    let mut all: Vec<Then> = run.settings().iter().filter_map(then).collect();
    all.retain(|then| then.now.is_some() || MAIN.contains(&&*then.name));
    all.sort_by_key(|then| (then.now.is_none(), MAIN.iter().position(|name| *name == then.name)));
    all
}

impl Figures {
    /// These figures as they were at a moment up to which the windows have been slid. What is only known of the present
    /// stays: health and warnings are of reading, not of the run.
    pub(crate) fn at(&self, run: &Run, us: u64, span: Span, windows: &Windows) -> Self {
        let (proxy, load) = (windows.proxy(run, span), windows.load(run, span));
        let proxy_totals = run.proxy().map(|track| track.totals_at(us));
        let load_totals = run.load().map(|track| track.totals_at(us));
        let mut then = self.clone();
        then.ended = false;
        then.span = span;
        then.duration_us = us.saturating_sub(run.began_us());
        then.latencies = classes::all(run, proxy.as_ref(), load.as_ref());
        then.against = None;
        then.cpu = cpu_until(run, us);
        then.host = run.host_at(us).cloned();
        then.log.retain(|line| line.mono_us <= us);
        if let (Some(taken), Some(totals)) = (&load, &load_totals) {
            then.handshakes = Handshakes::of_load(totals, taken);
        }
        if let (Some(taken), Some(totals)) = (&proxy, &proxy_totals) {
            let (certificate, reasons) = (self.handshakes.certificate.clone(), Vec::new());
            then.handshakes = Handshakes { certificate, reasons, ..Handshakes::of_proxy(totals, taken) };
        }
        if let (Some(figures), Some(taken), Some(totals)) = (&mut then.proxy, &proxy, &proxy_totals) {
            figures.take_rates(taken);
            figures.take_totals(totals);
            figures.open = totals[ProxyCounter::Accepted].saturating_sub(totals[ProxyCounter::Closed]);
        }
        if let (Some(figures), Some(taken), Some(totals)) = (&mut then.load, &load, &load_totals) {
            figures.sent_per_second = taken.rate(LoadCounter::Sent);
            figures.take_totals(totals);
            figures.take_settings(|name| run.setting_at(us.saturating_sub(1), name));
        }
        then
    }
}

/// A client's row with its rates and latencies as they were at a moment, over so many microseconds; without them where its records do
/// not reach back that far.
pub(crate) fn client_at(run: &Run, row: &ClientRow, us: u64, span_us: u64) -> ClientRow {
    let mut then = *row;
    let client = run.client(row.id);
    then.set_rates(client.and_then(|client| rates_until(client, us, span_us)));
    then.latency = client.and_then(|client| ClientLatency::until(client, us, Span::Last(span_us)));
    then
}
