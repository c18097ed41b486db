//! The tables of a report, for the page and for Markdown.

use model::runs::{Level, RecordedRequest};
use model::summary::{ClientSummary, ExperimentSummary};
use records::metrics::{ClientCounter, LoadCounter, ProxyCounter, labels};

use super::events::EventKind;
use crate::assert::AssertionOutcome;
use crate::compare::probability;
use crate::numbers::{DASH, fixed, grouped, iso, ms, percent};
use crate::report::Report;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

/// Failures that are listed.
const ERRORS_MAX: usize = 30;

/// Why connections end badly after their handshake.
const CONNECTION_FAILURES: [(&str, ProxyCounter); 5] = [
    ("upstream not reached", ProxyCounter::UpstreamConnectsFailed),
    ("upstream broke", ProxyCounter::UpstreamBroken),
    ("client broke", ProxyCounter::ClientBroken),
    ("idle timeout", ProxyCounter::IdleTimeouts),
    ("send timeout", ProxyCounter::SendTimeouts),
];

/// How often something failed.
#[derive(Debug)]
pub(crate) struct ErrorCount {
    /// The subject of the failure.
    pub(crate) of: &'static str,
    pub(crate) cause: String,
    pub(crate) count: u64,
    /// The first example, or a detail from records of single connections; may be empty.
    pub(crate) example: String,
}

impl Report<'_> {
    /// Whether the conditions that were given hold.
    pub(crate) fn conditions_table(&self) -> ReportTable {
        let rows = self.conditions.iter().map(|result| match &result.verdict {
            AssertionOutcome::Holds => vec!["pass".to_owned(), result.assertion.to_string(), String::new()],
            AssertionOutcome::Breached(reason) => {
                vec!["FAIL".to_owned(), result.assertion.to_string(), reason.clone()]
            }
        });
        ReportTable::new("Conditions", [Words("result"), Words("condition"), Words("why")], rows)
    }

    /// Marks, changes of settings and verdicts of experiments.
    pub(crate) fn changes_table(&self) -> ReportTable {
        let is_told = |kind: EventKind, text: &str| match kind {
            EventKind::Mark(_) | EventKind::Change => true,
            EventKind::Other => text.contains("experiment ") && text.contains(": "),
        };
        let events = self.events().into_iter().filter(|event| is_told(event.kind, &event.line.text));
        let rows =
            events.map(|event| vec![event.label.clone(), fixed(event.after_s, 1), event.line.text.clone()]);
        ReportTable::new("What changed", [Number("label"), Number("after, s"), Words("what")], rows)
    }

    pub(crate) fn event_rows(&self) -> ReportTable {
        let rows = self.events().into_iter().map(|event| {
            let warning = if event.line.level == Level::Warning { "warning: " } else { "" };
            let text = format!("{warning}{}", event.line.text);
            vec![event.label, fixed(event.after_s, 1), iso(event.line.realtime_us), text]
        });
        let columns = [Number("label"), Number("after, s"), Words("at"), Words("what")];
        ReportTable::new("What happened", columns, rows)
    }

    pub(crate) fn handshake_rows(&self) -> ReportTable {
        let all = self.handshakes();
        let rows = all.into_iter().map(|(kind, name, count)| vec![kind.to_owned(), name, grouped(count)]);
        ReportTable::new("Handshakes", [Words("by"), Words("which"), Number("count")], rows)
    }

    /// Figures that the log of another terminator does not have.
    pub(crate) fn absent_rows(&self) -> ReportTable {
        let absent = self.summary.log.iter().flat_map(|log| &log.absent);
        let rows = absent.map(|text| {
            let (figure, reason) = text.split_once(": ").unwrap_or((text, ""));
            vec![figure.to_owned(), reason.to_owned()]
        });
        let columns = [Words("figure"), Words("why, and what would give it")];
        ReportTable::new("What the log does not say", columns, rows)
    }

    pub(crate) fn request_table(&self) -> ReportTable {
        let counts = self.summary.load.as_ref().map(|load| {
            let requests = &load.requests;
            [
                ("scheduled", requests.scheduled),
                ("sent", requests.sent),
                ("ok", requests.ok),
                ("failed", requests.failed),
                ("never sent", requests.never_sent),
                ("of these, throttled", requests.throttled),
                ("unfinished", requests.unfinished),
                ("started late", requests.late),
                ("of the warm-up", requests.warmup),
                ("sent again", requests.retried),
                ("over a kept-alive connection", requests.reused),
            ]
        });
        let rows = counts.into_iter().flatten().map(|(name, count)| vec![name.to_owned(), grouped(count)]);
        ReportTable::new("Requests", [Words("requests"), Number("count")], rows)
    }

    /// Failures, the most frequent first: requests by cause with their first example, handshakes and connections by
    /// cause with a detail from records of single ones.
    pub(crate) fn errors(&self) -> Vec<ErrorCount> {
        let events = self.summary.load.iter().flat_map(|load| &load.events);
        let of_load = events.filter(|event| !event.event.is_benign()).map(|event| ErrorCount {
            of: "request",
            cause: event.event.to_string(),
            count: event.count,
            example: event.example.clone(),
        });
        let of_proxy = self.run.proxy().into_iter().flat_map(|series| {
            let handshakes = labels::handshake_failures().map(|cause| ("handshake", cause));
            let all = handshakes.chain(CONNECTION_FAILURES.map(|cause| ("connection", cause)));
            all.map(|(of, (cause, counter))| ErrorCount {
                of,
                cause: cause.to_owned(),
                count: series.totals()[counter],
                example: self.detail_of(cause),
            })
        });
        let failures = self.http().map(|http| &http.failures).into_iter().flatten();
        let of_http = failures.map(|(cause, count)| ErrorCount {
            of: "HTTP request",
            cause: (*cause).to_owned(),
            count: *count,
            example: self.request_of(cause),
        });
        let mut all: Vec<ErrorCount> =
            of_load.chain(of_http).chain(of_proxy).filter(|error| error.count > 0).collect();
        all.sort_by_key(|error| std::cmp::Reverse(error.count));
        all
    }

    pub(crate) fn error_table(&self) -> ReportTable {
        let row =
            |error: ErrorCount| vec![error.of.to_owned(), error.cause, grouped(error.count), error.example];
        let columns = [Words("of"), Words("cause"), Number("count"), Words("example")];
        ReportTable::new("Failures", columns, self.errors().into_iter().take(ERRORS_MAX).map(row))
    }

    /// The most frequent detail in records of single connections for a cause of failed handshakes; empty in an
    /// anonymous report.
    fn detail_of(&self, cause: &str) -> String {
        let reasons = self.run.failures().by_frequency();
        let found = reasons.into_iter().find(|(kind, ..)| *kind == cause).filter(|_| !self.is_anonymous());
        found.map(|(_, detail, count)| format!("{detail} ({})", grouped(count))).unwrap_or_default()
    }

    /// The latest request that failed by a cause; empty in an anonymous report.
    fn request_of(&self, cause: &str) -> String {
        let is_of = |request: &&RecordedRequest| {
            request.request.failure.is_some_and(|failure| failure.to_string() == cause)
        };
        let found = self.run.requests().errors().rev().find(is_of).filter(|_| !self.is_anonymous());
        found.map(|found| found.request.sentence()).unwrap_or_default()
    }

    /// Statuses, and what TLS agreed on.
    pub(crate) fn status_table(&self) -> ReportTable {
        let events = self.summary.load.iter().flat_map(|load| &load.events);
        let rows = events
            .filter(|event| event.event.is_benign())
            .map(|event| vec![event.event.to_string(), grouped(event.count), event.example.clone()]);
        let columns = [Words("status or handshake"), Number("count"), Words("first example")];
        ReportTable::new("Statuses and what TLS agreed on", columns, rows)
    }

    pub(crate) fn client_rows(&self) -> ReportTable {
        let row = |client: &ClientSummary| {
            let count = |counter| client.counters[counter];
            let told = |counter| self.run.client_count(counter, count(counter));
            let told_count = |counter| told(counter).map_or_else(|| DASH.to_owned(), grouped);
            let told_mb =
                |counter| told(counter).map_or_else(|| DASH.to_owned(), |n| fixed(n as f64 / 1e6, 3));
            let handshakes =
                client.counters.sum(&[ClientCounter::HandshakesFull, ClientCounter::HandshakesResumed]);
            vec![
                client.client.clone(),
                told_count(ClientCounter::Connections),
                told_count(ClientCounter::Exchanges),
                grouped(count(ClientCounter::Errors)),
                client.exchange_p99_us.map_or_else(|| DASH.to_owned(), |us| ms(us / 1e3)),
                told_count(ClientCounter::HandshakesFull),
                told_count(ClientCounter::HandshakesResumed),
                percent(count(ClientCounter::HandshakesResumed) as f64, handshakes as f64),
                client.rtt_us.map_or_else(|| DASH.to_owned(), |us| ms(us as f64 / 1e3)),
                told_count(ClientCounter::Retransmits),
                told_mb(ClientCounter::BytesIn),
                told_mb(ClientCounter::BytesOut),
            ]
        };
        let columns = [
            Words("client"),
            Number("connections"),
            Number("exchanges"),
            Number("errors"),
            Number("p99, ms"),
            Number("full"),
            Number("resumed"),
            Number("resumed share"),
            Number("RTT, ms"),
            Number("resent"),
            Number("MB in"),
            Number("MB out"),
        ];
        ReportTable::new("Clients", columns, self.clients().iter().map(row))
    }

    /// CPU time by whose threads used it.
    pub(crate) fn cpu_rows(&self) -> ReportTable {
        let whole_s = self.run.recorded_us() as f64 / 1e6;
        let used = self.summary.cpu_s.iter().filter(|(_, seconds)| **seconds > 0.0 && whole_s > 0.0);
        let row = |(name, seconds): (&&str, &f64)| {
            vec![(*name).to_owned(), fixed(*seconds, 2), fixed(seconds / whole_s * 100.0, 1)]
        };
        let columns = [Words("threads of"), Number("CPU, s"), Number("of one core, %")];
        ReportTable::new("CPU", columns, used.map(row))
    }

    pub(crate) fn experiment_rows(&self) -> ReportTable {
        let rows = self.summary.experiments.iter().flat_map(ExperimentSummary::sentences);
        let rows = rows.map(|(sentence, estimate)| {
            let p = estimate.map_or_else(String::new, |estimate| probability(estimate.p_value));
            vec![sentence, p]
        });
        let columns = [Words("verdict"), Number("p")];
        ReportTable::new("Experiments", columns, rows)
    }

    pub(crate) fn environment_rows(&self) -> ReportTable {
        let rows = self.environment().into_iter().map(|(name, value)| vec![name.to_owned(), value]);
        ReportTable::new("Environment", [Words("what"), Words("value")], rows)
    }

    /// The settings at the end, with the first values of those that were changed.
    pub(crate) fn setting_rows(&self) -> ReportTable {
        let began_us = self.mono_us_at(0.0);
        let rows = self.settings().into_iter().map(|(name, value, applies)| {
            let before = self.setting_at(began_us, &name).filter(|before| *before != value);
            vec![name, value, before.filter(|_| !self.is_anonymous()).unwrap_or_default(), applies]
        });
        let columns = [
            Words("setting"),
            Words("value at the end"),
            Words("at first, if changed"),
            Words("a change acts"),
        ];
        ReportTable::new("Settings", columns, rows)
    }

    /// Failed requests, and the number of requests that could fail.
    pub(crate) fn failed_requests(&self) -> Option<(u64, u64)> {
        let totals = self.run.load()?.totals();
        Some((totals[LoadCounter::Failed], totals.sum(&[LoadCounter::Ok, LoadCounter::Failed])))
    }
}
