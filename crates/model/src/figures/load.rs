//! The numbers of a load that follow from its counters and records.

use records::histogram::Histograms;
use records::kinds::LoadRecord;
use records::metrics::{Counters, LoadCounter, LoadLatency};
use records::values::LoadEvent;
use serde::Serialize;

use crate::runs::Run;

/// The outcomes that count as an answer.
pub const ANSWERED: [LoadCounter; 3] = [LoadCounter::Ok, LoadCounter::FailedStatus, LoadCounter::FailedBody];

/// Share of their time that the generator's threads may be busy before its figures are in doubt.
pub const BUSY_MAX: f64 = 0.9;
/// Share of the requests that the generator may take on late before its figures are in doubt.
pub const LATE_MAX: f64 = 0.01;
/// Share of the wanted rate that counts as having been achieved.
const ACHIEVED_MIN: f64 = 0.98;
/// By how much the last answer may be late in a short run, in seconds.
const LAST_LATE_MAX_S: f64 = 0.1;

/// Requests, as the load counts them.
#[derive(Clone, Debug, Serialize)]
pub struct RequestCounts {
    /// Requests that fell due.
    pub scheduled: u64,
    pub sent: u64,
    /// Requests with a complete answer, successful or not: timeouts, resets and refusals are not answers.
    pub answered: u64,
    /// Requests with a successful answer.
    pub ok: u64,
    pub failed: u64,
    /// Requests that were due but not sent at the end.
    pub never_sent: u64,
    /// The part of `never_sent` for which connections waited to retry after failed attempts.
    pub throttled: u64,
    /// Requests that were sent but not answered at the end.
    pub unfinished: u64,
    /// Requests of the warm-up. Only `scheduled` includes them.
    pub warmup: u64,
    /// Requests that the generator started more than 1 ms late although a connection was free.
    pub late: u64,
    /// Requests on a connection that had carried a request before.
    pub reused: u64,
    /// Requests that were sent again because a kept-alive connection had been closed.
    pub retried: u64,
}

impl RequestCounts {
    /// The share of the requests after the warm-up that the generator took on more than 1 ms late, 0 to 1.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.scheduled.saturating_sub(self.warmup).max(1) as f64
    }

    /// Finished requests without an answer, except for requests that were never sent.
    pub(crate) fn unanswered(&self) -> u64 {
        self.ok.saturating_add(self.failed).saturating_add(self.unfinished).saturating_sub(self.answered)
    }
}

/// How long the load measured, without warm-up and pauses, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MeasuredSeconds {
    /// Length of the schedule; 0 in a closed loop.
    pub due: f64,
    /// Time until the last request was sent.
    pub sending: f64,
    /// The time by which all rates are divided: the schedule. If the last answer came after its end by more than the
    /// server takes for 99 % of the answers, what exceeds the fastest answer is added. In a closed loop it ends with the
    /// last request.
    pub measured: f64,
}

impl MeasuredSeconds {
    pub(crate) fn of(record: Option<&LoadRecord>, latencies: &Histograms<LoadLatency>) -> Self {
        let seconds = |us: Option<u64>| us.unwrap_or(0) as f64 / 1e6;
        let [due, sending, whole] = [
            seconds(record.map(|record| record.due_us)),
            seconds(record.map(|record| record.sending_us)),
            seconds(record.map(|record| record.measured_us)),
        ];
        let in_seconds = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e9;
        // Where answers fall behind, the last one is later than nearly all others.
        let is_usual = whole - due <= in_seconds(latencies[LoadLatency::Service].quantile_ns(0.99));
        let measured = match due {
            0.0 => whole,
            due if is_usual => due,
            // Answers begin when the fastest one arrives, and continue for the length of the schedule.
            due => due.max(whole - in_seconds(latencies[LoadLatency::Response].min_ns())),
        };
        Self { due, sending, measured }
    }
}

/// Requests a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Requests that fell due in an open loop; `null` in a closed loop.
    pub wanted: Option<f64>,
    /// Requests with a complete answer, successful or not, over the time measured.
    pub achieved: f64,
    /// False if the load fell behind the schedule of an open loop.
    pub is_achieved: bool,
}

/// Connections whose first request was to go along with the handshake (0-RTT).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EarlyData {
    /// Connections that were meant to send early data.
    pub wanted: u64,
    /// Connections that sent early data because they had a ticket that allows it.
    pub offered: u64,
    /// Connections whose early data the server accepted.
    pub accepted: u64,
    /// Connections whose early data the server rejected; the request was sent again.
    pub rejected: u64,
}

impl RequestCounts {
    /// The requests of a load with these totals.
    pub(crate) fn of(totals: &Counters<LoadCounter>) -> Self {
        Self {
            scheduled: totals[LoadCounter::Scheduled],
            sent: totals[LoadCounter::Sent],
            answered: totals.sum(&ANSWERED),
            ok: totals[LoadCounter::Ok],
            failed: totals[LoadCounter::Failed],
            never_sent: totals[LoadCounter::NeverSent],
            throttled: totals[LoadCounter::Throttled],
            unfinished: totals[LoadCounter::Unfinished],
            warmup: totals[LoadCounter::Warmup],
            late: totals[LoadCounter::Late],
            reused: totals[LoadCounter::Reused],
            retried: totals[LoadCounter::Retried],
        }
    }

    /// Requests that failed, were never sent, or had no whole answer.
    pub(crate) fn errors(&self) -> u64 {
        [self.failed, self.never_sent, self.unfinished].into_iter().fold(0, u64::saturating_add)
    }
}

/// The early data of a load with these totals.
pub(crate) fn early_data(totals: &Counters<LoadCounter>) -> EarlyData {
    let (offered, accepted) = (totals[LoadCounter::EarlyOffered], totals[LoadCounter::EarlyAccepted]);
    let rejected = offered.saturating_sub(accepted);
    EarlyData { wanted: totals[LoadCounter::EarlyWanted], offered, accepted, rejected }
}

pub(crate) fn rates(requests: &RequestCounts, spans: MeasuredSeconds) -> Rates {
    let per_second = |amount: u64, seconds: f64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let achieved = per_second(requests.answered, spans.measured);
    let due = requests.scheduled.saturating_sub(requests.warmup);
    let wanted = (spans.due > 0.0).then(|| per_second(due, spans.due));
    // Few are not sent where a server ends connections.
    let without_answer = requests.unanswered().saturating_add(requests.never_sent);
    let is_answered = without_answer as f64 <= due as f64 * (1.0 - ACHIEVED_MIN);
    let is_in_time =
        spans.due >= spans.measured * ACHIEVED_MIN || spans.measured - spans.due < LAST_LATE_MAX_S;
    let is_achieved = wanted.is_none() || (is_answered && is_in_time);
    Rates { wanted, achieved, is_achieved }
}

/// The share of their time in which the generator's threads were busy, at most 1: they also shake hands before the time
/// that is measured, and close connections after it.
pub(crate) fn generator_busy(run: &Run, spans: MeasuredSeconds) -> f64 {
    let threads = run.load_record().map_or(0, |record| record.threads);
    let could_s = spans.measured * threads as f64;
    if could_s > 0.0 { (run.load_cpu_us() as f64 / 1e6 / could_s).min(1.0) } else { 0.0 }
}

/// Answers with a status of this class, of 2 to 5. From 600 on a status is a server's error (RFC 9110, section 15).
pub fn answers(record: &LoadRecord, class: u16) -> u64 {
    let is_of_class = |event| matches!(event, LoadEvent::Status(code) if (code / 100).min(5) == class);
    let counts = record.events.iter().filter(|entry| is_of_class(entry.event)).map(|entry| entry.count);
    counts.fold(0, u64::saturating_add)
}

/// Why a load's figures may describe the generator rather than the server, in words: from the shares of its threads' time
/// that were busy, and of the requests that it took on more than 1 ms late.
pub fn generator_limits(busy: f64, late: f64) -> Vec<String> {
    let busy = (busy > BUSY_MAX)
        .then(|| format!("its threads were busy {:.0} % of the time; give it more with -t", busy * 100.0));
    let late = (late > LATE_MAX)
        .then(|| format!("it took on {:.1} % of the requests more than 1 ms late", late * 100.0));
    busy.into_iter().chain(late).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates of 2,500 requests over 5 s: `answered` of them had an answer, the last one after `last_s`, and the
    /// fastest took 0.2 s.
    fn rates_of(answered: u64, last_s: f64, is_sent: bool) -> (f64, bool) {
        rates_of_slow(answered, last_s, is_sent, 0.2)
    }

    /// The same, where 99 % of the answers took the server up to `p99_s`.
    fn rates_of_slow(answered: u64, last_s: f64, is_sent: bool, p99_s: f64) -> (f64, bool) {
        let missing = 2_500 - answered;
        let (failed, never_sent) = if is_sent { (missing, 0) } else { (0, missing) };
        let requests = RequestCounts {
            scheduled: 2_600,
            sent: 2_500 - never_sent,
            answered,
            ok: answered,
            failed,
            never_sent,
            throttled: 0,
            unfinished: 0,
            warmup: 100,
            late: 0,
            reused: 0,
            retried: 0,
        };
        let mut latencies = Histograms::<LoadLatency>::default();
        latencies[LoadLatency::Response].record_ns(200_000_000);
        latencies[LoadLatency::Service].record_ns((p99_s * 1e9) as u64);
        let measured_us = (last_s.max(5.0) * 1e6) as u64;
        let record = LoadRecord { due_us: 5_000_000, measured_us, ..LoadRecord::default() };
        let rates = rates(&requests, MeasuredSeconds::of(Some(&record), &latencies));
        assert_eq!(rates.wanted, Some(500.0));
        (rates.achieved.round(), rates.is_achieved)
    }

    #[test]
    fn requests_of_the_warmup_are_not_in_the_share_of_late_ones() {
        let mut totals = Counters::default();
        totals[LoadCounter::Scheduled] = 3_000;
        totals[LoadCounter::Warmup] = 1_000;
        totals[LoadCounter::Late] = 500;
        assert!((RequestCounts::of(&totals).late_share() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_achieved_if_answers_keep_up_with_the_schedule() {
        assert_eq!(rates_of(2_500, 4.9, true), (500.0, true));
        assert_eq!(rates_of(2_500, 5.2, true), (500.0, true), "answers that all take 0.2 s");
        assert_eq!(rates_of_slow(2_500, 5.4, true, 0.45), (500.0, true), "one answer in twenty takes 0.45 s");
        assert_eq!(rates_of_slow(2_500, 5.4, true, 0.39), (481.0, false), "answers that fall behind");
        assert_eq!(rates_of(2_490, 5.0, false), (498.0, true), "a few retries took the places of others");
        assert_eq!(rates_of(2_500, 6.45, true), (400.0, false), "a server that does 400/s");
        assert_eq!(rates_of(470, 0.94, true), (94.0, false), "a server that freezes, all requests sent");
        assert_eq!(rates_of(470, 0.94, false), (94.0, false), "the same, nothing more sent");
        assert_eq!(rates_of(2_490, 5.0, true), (498.0, true), "some failures");
    }
}
