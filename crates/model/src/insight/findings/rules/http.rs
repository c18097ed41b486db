//! Findings about requests of HTTP mode that queue in vain, fail, or are sent twice.

use std::collections::BTreeMap;

use super::rule::{FindingContext, HysteresisLimit, MINUTE_US, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use records::kinds::RequestRecord;
use records::metrics::HttpCounter;
use records::text::quantity::counted;

pub(super) const QUEUE: Rule = Rule { id: "http-queue", judge: queue, text: queue_text };
pub(super) const SERVER_ERRORS: Rule =
    Rule { id: "http-5xx", judge: server_errors, text: server_errors_text };
pub(super) const RETRIED: Rule = Rule { id: "http-retried", judge: retried, text: retried_text };
pub(super) const UPSTREAM_SLOW: Rule = Rule { id: "http-upstream-timeout", judge: slow, text: slow_text };

const N_MIN: f64 = 5.0;
const FAILED: &[(Severity, HysteresisLimit)] =
    &[(Severity::Warning, HysteresisLimit::at(0.01)), (Severity::Critical, HysteresisLimit::at(0.1))];
const SENT_AGAIN: &[(Severity, HysteresisLimit)] = &[(Severity::Info, HysteresisLimit::at(0.02))];

/// Requests counted by some counters in the last minute, and all requests.
fn of_all(context: &FindingContext<'_>, counters: &[HttpCounter]) -> (u64, u64) {
    let http = &context.minute().http;
    (http.sum(counters), http[HttpCounter::Requests])
}

const QUEUED: &[HttpCounter] = &[HttpCounter::FailedQueueFull, HttpCounter::FailedQueueTimeout];

fn queue(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(of_all(context, QUEUED), N_MIN, FAILED)
}

fn queue_text(context: &FindingContext<'_>) -> FindingText {
    let http = &context.minute().http;
    let (n, whole) = of_all(context, QUEUED);
    let title = format!("{} of requests get no upstream connection in time (503)", percent(share(n, whole)));
    FindingText::new(title)
        .figure("requests refused, last minute", out_of(n, whole))
        .figure("waited too long", http[HttpCounter::FailedQueueTimeout])
        .figure("too many waited", http[HttpCounter::FailedQueueFull])
        .advise("the upstream is too slow for this load: add upstreams, or allow more connections (--upstream-connections-max), more waiting requests (--queue-max) or a longer wait (--queue-timeout)")
        .about("proxy.queue-timeout")
        .whom(upstreams(context, |request| is_counted(request, QUEUED)))
}

fn server_errors(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(of_all(context, &[HttpCounter::Status5xx]), N_MIN, FAILED)
}

fn server_errors_text(context: &FindingContext<'_>) -> FindingText {
    let (n, whole) = of_all(context, &[HttpCounter::Status5xx]);
    FindingText::new(format!(
        "{} of requests are answered with a status of 500 or above",
        percent(share(n, whole))
    ))
    .figure("such answers, last minute", out_of(n, whole))
    .advise("look at the upstreams below; r, pressed twice, lists the failed requests in the dashboard")
    .whom(upstreams(context, |request| request.status >= 500))
}

fn retried(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(of_all(context, &[HttpCounter::Retried]), N_MIN, SENT_AGAIN)
}

fn retried_text(context: &FindingContext<'_>) -> FindingText {
    let (n, whole) = of_all(context, &[HttpCounter::Retried]);
    let title = format!(
        "{} of requests are sent twice: the upstream closes kept connections",
        percent(share(n, whole))
    );
    FindingText::new(title)
        .figure("requests sent once more, last minute", out_of(n, whole))
        .advise("let the upstream keep idle connections longer than the proxy does, or lower --upstream-idle-timeout below its time")
}

const TIMED_OUT: &[HttpCounter] = &[HttpCounter::FailedUpstreamTimeout, HttpCounter::FailedConnectTimeout];

fn slow(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(of_all(context, TIMED_OUT), N_MIN, FAILED)
}

fn slow_text(context: &FindingContext<'_>) -> FindingText {
    let http = &context.minute().http;
    let (n, whole) = of_all(context, TIMED_OUT);
    FindingText::new(format!(
        "{} of requests get no answer from an upstream in time (504)",
        percent(share(n, whole))
    ))
    .figure("requests that timed out, last minute", out_of(n, whole))
    .figure("no response in time", http[HttpCounter::FailedUpstreamTimeout])
    .figure("no connection in time", http[HttpCounter::FailedConnectTimeout])
    .advise("look at the upstreams below; if they need longer: --response-timeout, --connect-timeout")
    .whom(upstreams(context, |request| is_counted(request, TIMED_OUT)))
}

/// True if a request failed in a way that one of these counters counts.
fn is_counted(request: &RequestRecord, counters: &[HttpCounter]) -> bool {
    request.failure.is_some_and(|failure| counters.contains(&failure.counter()))
}

/// How often each upstream was asked for such requests in the last minute, of those with a record.
fn upstreams(context: &FindingContext<'_>, is_wanted: impl Fn(&RequestRecord) -> bool) -> Vec<String> {
    let from_us = context.run.last_us().saturating_sub(MINUTE_US);
    let mut by_upstream: BTreeMap<&str, u64> = BTreeMap::new();
    for recorded in context.run.requests().errors().filter(|recorded| recorded.mono_us > from_us) {
        if is_wanted(&recorded.request) {
            *by_upstream.entry(&recorded.request.upstream).or_default() += 1;
        }
    }
    let mut all: Vec<_> = by_upstream.into_iter().collect();
    all.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let name =
        |upstream: &str| if upstream.is_empty() { "no upstream".to_owned() } else { upstream.to_owned() };
    all.iter()
        .map(|(upstream, n)| format!("{}: {} with a record", name(upstream), counted(*n, "request")))
        .collect()
}
