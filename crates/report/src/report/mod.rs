//! The contents of a report, in any format.

mod alerts;
mod anonymous;
mod certificates;
pub(crate) mod columns;
mod contents;
pub(crate) mod events;
mod findings;
pub(crate) mod headline;
mod http;
pub(crate) mod latency;
mod quality;
pub(crate) mod tls;
mod upstreams;

use std::fmt;
use std::time::Duration;

use model::runs::{Model, Run};
use model::summary::{ClientSummary, Summary};
use records::ids::RunId;
use records::metrics::{
    HttpCounter, HttpLatency, LoadLatency, Metric, ProxyCounter, ProxyLatency, TlsLatency, labels,
};
use records::setting::{Setting, SettingInfo, Value};
use records::slice::TimeRange;

use self::anonymous::LEFT_OUT;
use self::latency::ClassLatency;
use crate::assert::AssertionResult;
use crate::numbers::{fixed, iso};

#[derive(Debug)]
pub struct Report<'a> {
    pub(crate) run: &'a Run,
    pub(crate) summary: Summary,
    /// Where it was read.
    pub(crate) source: String,
    /// The command that makes this report again.
    pub(crate) command: String,
    /// The runs that were merged, if there are several.
    pub(crate) parts: Vec<RunPart>,
    asked: TimeRange,
    /// The conditions that it was held against.
    pub(crate) conditions: Vec<AssertionResult>,
    pub(crate) apdex_threshold: Duration,
    /// What the values of settings mean.
    setting_infos: &'a [SettingInfo],
    is_anonymous: bool,
}

/// The threshold of the Apdex score where none is given, as `JMeter` and most monitoring services have it.
pub const APDEX_THRESHOLD: Duration = Duration::from_millis(500);

/// One of several merged runs.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// A name that no other part has, such as its host.
    pub name: String,
    pub run: RunId,
    /// The user or unit that it is of; may be empty.
    pub account: String,
    /// When it began after the first of them, in seconds.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// What happened to its wall clock meanwhile, such as `set by +3.000 s`.
    pub clock_steps: Option<String>,
}

impl fmt::Display for RunPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, run, account, from_s, to_s, clock_steps } = self;
        let of = if account.is_empty() { "" } else { " of " };
        write!(f, "{name}: run {run}{of}{account}, from {from_s:.3} s to {to_s:.3} s")?;
        if let Some(steps) = clock_steps {
            write!(f, "; its wall clock was {steps} meanwhile")?;
        }
        Ok(())
    }
}

impl<'a> Report<'a> {
    /// A report on a run that was read from `source`, made by `command`.
    pub fn new(model: &Model, run: &'a Run, source: &str, command: String) -> Self {
        let summary = model.summary(run, Some(source));
        Self {
            run,
            summary,
            source: source.to_owned(),
            command,
            parts: Vec::new(),
            asked: TimeRange::ALL,
            conditions: Vec::new(),
            apdex_threshold: APDEX_THRESHOLD,
            setting_infos: &[],
            is_anonymous: false,
        }
    }

    /// Makes it a report on several merged runs.
    pub fn with_parts(self, parts: Vec<RunPart>) -> Self {
        Self { parts, ..self }
    }

    /// Adds the requested time range.
    pub fn with_range(self, asked: TimeRange) -> Self {
        Self { asked, ..self }
    }

    /// Adds conditions and their results.
    pub fn with_conditions(self, conditions: Vec<AssertionResult>) -> Self {
        Self { conditions, ..self }
    }

    /// Sets the threshold of the Apdex score.
    pub fn with_apdex_threshold(self, apdex_threshold: Duration) -> Self {
        Self { apdex_threshold, ..self }
    }

    /// Tells what the values of settings mean, such as which bound is none.
    pub fn with_setting_infos(self, setting_infos: &'a [SettingInfo]) -> Self {
        Self { setting_infos, ..self }
    }

    /// Removes names of persons and machines: clients are numbered, and hosts, addresses, and the texts of settings and
    /// messages are omitted.
    pub fn anonymised(mut self) -> Self {
        self.is_anonymous = true;
        let shown: Vec<String> = self.shown_settings().map(|setting| setting.name.clone()).collect();
        self.summary = anonymous::summary(self.summary, |name| shown.iter().any(|shown| shown == name));
        for (number, part) in (1..).zip(&mut self.parts) {
            (part.name, part.account) = (format!("host {number}"), String::new());
        }
        LEFT_OUT.clone_into(&mut self.source);
        LEFT_OUT.clone_into(&mut self.command);
        self
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// A heading with the target.
    pub(crate) fn title(&self) -> String {
        format!("tlsdash: {}", self.target())
    }

    /// Where the run listened and what it forwarded to, or what its load was aimed at.
    pub(crate) fn target(&self) -> String {
        if !self.parts.is_empty() {
            return format!("{} runs merged", self.parts.len());
        }
        let began = self.run.began().filter(|_| !self.is_anonymous);
        match began.map(|began| (&*began.listen, &*began.upstream)) {
            None | Some(("", "")) => format!("run {}", self.run.id().short()),
            Some(("", target)) if self.run.load().is_some() => format!("load on {target}"),
            Some(("", target)) => target.to_owned(),
            Some((listen, upstream)) => format!("{listen} > {upstream}"),
        }
    }

    /// Which run it is, and whose.
    pub(crate) fn which(&self) -> String {
        let run = self.run.id().short();
        match (&*self.account(), self.parts.is_empty()) {
            (_, false) => String::new(),
            ("", true) => format!("run {run}, "),
            (account, true) => format!("run {run} of {account}, "),
        }
    }

    /// When it was, and how long.
    pub(crate) fn when(&self) -> String {
        let end_us = self.began_us().saturating_add(self.run.duration_us());
        let length = fixed(self.summary.duration_s, 1);
        format!("{} to {} (UTC), {length} s", iso(self.began_us()), iso(end_us))
    }

    /// The user or unit that wrote the run, by the fields that journald adds; empty if unknown.
    pub(crate) fn account(&self) -> String {
        if self.is_anonymous { String::new() } else { self.run.writer().account() }
    }

    /// The environment of the run, as far as it is recorded.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let run = self.run;
        let mut all = vec![("run", run.id().to_string()), ("user or unit", self.account())];
        if let Some(began) = run.began() {
            all.push(("tlsdash", began.version.clone()));
            if !self.is_anonymous {
                all.push(("host", run.hostname().to_owned()));
                all.push(("listening on", began.listen.clone()));
                all.push(("aimed at", began.upstream.clone()));
            }
            all.push(("certificate", began.certificate.clone()));
            let workers = if began.workers > 0 { began.workers.to_string() } else { String::new() };
            all.push(("workers at the beginning", workers));
            let cores = if began.cores > 0 { format!(", {} cores", began.cores) } else { String::new() };
            all.push(("processor", format!("{}{cores}", began.cpu_model)));
            all.push(("frequency set by", began.governor.clone()));
            let memory = began.host_memory_bytes as f64 / 1e9;
            all.push(("memory", if memory > 0.0 { format!("{memory:.1} GB") } else { String::new() }));
            all.push(("kernel", began.kernel.clone()));
            all.push(("clock source", began.clock_source.clone()));
        }
        all.push(("began", iso(self.began_us())));
        all.push(("ended", iso(self.began_us().saturating_add(run.duration_us()))));
        all.push(("began, seconds since 1970 (UTC)", format!("{:.3}", run.began_realtime_us() as f64 / 1e6)));
        if self.asked != TimeRange::ALL {
            let end_us = self.began_us().saturating_add(run.duration_us());
            all.push(("time range asked for", from_to(self.asked.from_us, self.asked.until_us)));
            all.push(("time range used, of whole intervals", from_to(self.began_us(), end_us)));
        }
        all.push(("lasted", format!("{:.1} s", run.duration_us() as f64 / 1e6)));
        all.push(("read from", self.source.clone()));
        all.retain(|(_, value)| !value.is_empty());
        all
    }

    /// Name, value and reach of every setting at the end.
    pub(crate) fn settings(&self) -> Vec<(String, String, String)> {
        self.shown_settings()
            .map(|setting| {
                (setting.name.clone(), self.in_words(setting, &setting.value), setting.applies.to_string())
            })
            .collect()
    }

    /// A value of a setting for people.
    pub(crate) fn in_words(&self, setting: &Setting, value: &Value) -> String {
        setting.in_words(value, SettingInfo::find(self.setting_infos, &setting.name))
    }

    /// The value of a setting at a moment of the run, for people.
    pub(crate) fn setting_at(&self, us: u64, name: &str) -> Option<String> {
        let (setting, text) = (self.run.setting(name)?, self.run.setting_at(us, name)?);
        let value = setting.parse(None, &text);
        Some(value.map_or(text, |value| self.in_words(setting, &value)))
    }

    /// The settings that may be seen.
    pub(crate) fn shown_settings(&self) -> impl Iterator<Item = &'a Setting> {
        let (is_anonymous, is_of_several) = (self.is_anonymous, !self.parts.is_empty());
        self.run
            .settings()
            .iter()
            .filter(move |setting| !is_anonymous || anonymous::shows(setting, is_of_several))
    }

    /// `CLOCK_REALTIME` of its beginning, in microseconds.
    pub(crate) fn began_us(&self) -> u64 {
        self.run.began_realtime_us()
    }

    /// The moment of the monotonic clock so many seconds after the beginning, in microseconds.
    pub(crate) fn mono_us_at(&self, after_s: f64) -> u64 {
        let began_us = self.run.last_us().saturating_sub(self.run.duration_us());
        began_us.saturating_add((after_s * 1e6).round() as u64)
    }

    pub(crate) fn seconds_at(&self, mono_us: u64) -> f64 {
        let began_us = self.run.last_us().saturating_sub(self.run.duration_us());
        mono_us.saturating_sub(began_us) as f64 / 1e6
    }

    pub(crate) fn latencies(&self) -> Vec<ClassLatency<'a>> {
        let run = self.run;
        let latency =
            move |class, histogram| ClassLatency { class, histogram, resolution: run.resolution(class) };
        let proxy = self.run.proxy().into_iter().flat_map(|series| {
            ProxyLatency::ALL.iter().map(move |&class| latency(class.into(), &series.whole()[class]))
        });
        let load = self.run.load().into_iter().flat_map(|series| {
            LoadLatency::ALL.iter().map(move |&class| latency(class.into(), &series.whole()[class]))
        });
        let tls = self.run.tls().into_iter().flat_map(|series| {
            TlsLatency::ALL.iter().map(move |&class| latency(class.into(), &series.whole()[class]))
        });
        let http = self.run.http().into_iter().flat_map(|series| {
            let requests = [HttpCounter::Requests11, HttpCounter::Requests2].map(|of| series.totals()[of]);
            // With a single protocol, its times equal those of all requests.
            let has_parts = requests.iter().all(|n| *n > 0);
            HttpLatency::ALL
                .iter()
                .filter(move |class| has_parts || !class.is_of_one_protocol())
                .map(move |&class| latency(class.into(), &series.whole()[class]))
        });
        proxy.chain(tls).chain(http).chain(load).filter(|latency| !latency.histogram.is_empty()).collect()
    }

    /// Handshakes by version, group and cipher, and failures by cause; counts of 0 are left out.
    pub(crate) fn handshakes(&self) -> Vec<(&'static str, String, u64)> {
        let Some(series) = self.run.proxy() else { return Vec::new() };
        let versions = labels::versions().into_iter().flat_map(|(name, counters)| {
            let kinds = ["full", "resumed"].into_iter().zip(counters);
            kinds.map(move |(kind, counter)| ("version", format!("{name}, {kind}"), counter))
        });
        let retried =
            ("version", "full with a HelloRetryRequest".to_owned(), ProxyCounter::HandshakesRetried);
        let upstream = ("failed", "upstream not reached".to_owned(), ProxyCounter::UpstreamConnectsFailed);
        let rows = versions
            .chain([retried])
            .chain(of_kind("group", labels::groups()))
            .chain(of_kind("cipher", labels::ciphers()))
            .chain(of_kind("failed", labels::handshake_failures()))
            .chain([upstream]);
        let counted = rows.map(|(kind, name, counter)| (kind, name, series.totals()[counter]));
        counted.filter(|(.., count)| *count > 0).collect()
    }

    pub(crate) fn clients(&self) -> &[ClientSummary] {
        &self.summary.clients
    }
}

/// Counters of one kind, with their labels.
fn of_kind(
    kind: &'static str,
    list: impl Iterator<Item = (&'static str, ProxyCounter)>,
) -> impl Iterator<Item = (&'static str, String, ProxyCounter)> {
    list.map(move |(name, counter)| (kind, name.to_owned(), counter))
}

/// Two moments of the wall clock, in microseconds since 1970; an open end is named.
fn from_to(from_us: u64, until_us: u64) -> String {
    let from = if from_us == TimeRange::ALL.from_us { "the beginning".to_owned() } else { iso(from_us) };
    let until = if until_us == TimeRange::ALL.until_us { "the end".to_owned() } else { iso(until_us) };
    format!("{from} to {until}")
}
