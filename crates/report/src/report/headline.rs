//! The figures that answer "was it good, how fast": each with a sentence.

use model::figures::{Figure, FigureUnit, Rates, unserved};
use records::metrics::{CpuGroup, HttpCounter, HttpLatency, LatencyClass, ProxyCounter};
use records::values::LogFigure;
use serde::Serialize;

use super::latency::by_weight;
use crate::assert::AssertionOutcome;
use crate::numbers::{fixed, grouped, percent, short};
use crate::report::Report;

#[derive(Debug, Serialize)]
pub(crate) struct Tile {
    /// The title, in a word or two.
    pub(crate) title: String,
    /// The figure with its unit.
    pub(crate) value: String,
    pub(crate) sentence: String,
    /// The conditions on it that were given: what holds, and what does not.
    pub(crate) conditions: Vec<TileCondition>,
}

/// A condition on a tile's figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TileCondition {
    pub(crate) condition: String,
    pub(crate) holds: bool,
}

/// Failures that an upstream's silence makes.
const WAITED_IN_VAIN: [HttpCounter; 3] =
    [HttpCounter::FailedConnectTimeout, HttpCounter::FailedQueueTimeout, HttpCounter::FailedUpstreamTimeout];

/// How many of the users waited how long (Apdex): of all requests the share answered within the threshold, and half of
/// those answered within four times as long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Apdex {
    /// From 0 to 1.
    pub(crate) score: f64,
    pub(crate) threshold_ms: f64,
    /// Share of requests within the threshold.
    pub(crate) satisfied: f64,
    /// Share within four times the threshold.
    pub(crate) tolerating: f64,
}

struct ProxyFailures {
    /// Requests or handshakes.
    what: &'static str,
    figures: &'static [&'static str],
    failed: u64,
    whole: u64,
}

impl ProxyFailures {
    fn sentence(&self) -> String {
        failure_sentence(self.what, self.failed, self.whole)
    }
}

impl Report<'_> {
    pub(crate) fn headline(&self) -> Vec<Tile> {
        let tiles = [
            self.latency_tile(0.5, "Half", "p50"),
            self.latency_tile(0.99, "99 %", "p99"),
            self.rate_tile(),
            self.failure_tile(),
            self.resumption_tile(),
            self.cpu_tile(),
            self.tls_tile(),
            self.apdex_tile(),
        ];
        tiles.into_iter().flatten().collect()
    }

    fn tile(&self, figures: &[&str], title: String, value: String, sentence: String) -> Tile {
        let is_of = |figure: Figure| figures.contains(&&*figure.name());
        let on_it = self.conditions.iter().filter(|result| result.assertion.figures().any(is_of));
        let conditions = on_it.map(|result| TileCondition {
            condition: result.assertion.to_string(),
            holds: result.verdict == AssertionOutcome::Holds,
        });
        Tile { title, value, sentence, conditions: conditions.collect() }
    }

    /// A percentile of the class that matters most.
    fn latency_tile(&self, q: f64, how_many: &str, label: &str) -> Option<Tile> {
        let (first, _) = by_weight(self.latencies());
        let latency = first.first()?;
        let estimate = latency.quantile(q)?;
        let names = latency.class.names();
        let thin = if estimate.is_thin { "; fewer than ten lay above it, so it is a guess" } else { "" };
        let note = if names.note.is_empty() { String::new() } else { format!(" ({})", names.note) };
        let interval = estimate.interval_ms.map_or_else(String::new, |interval| {
            format!("95 % confidence interval {} ms. ", latency.interval(interval))
        });
        let sentence = format!(
            "{interval}{how_many} of {} samples took at most {} ms, from \u{201c}{}\u{201d} to \u{201c}{}\u{201d}{note}{thin}.",
            grouped(latency.histogram.count()),
            latency.rounded(estimate.ms).trim_start_matches("≤ "),
            names.start,
            names.end
        );
        let name = format!("{}.{}.{label}", latency.class.side(), latency.class.key());
        let title = format!("{} {label}", latency.class.title());
        Some(self.tile(&[&name], title, format!("{} ms", latency.rounded(estimate.ms)), sentence))
    }

    /// The achieved and the offered rate.
    fn rate_tile(&self) -> Option<Tile> {
        if let Some(load) = &self.summary.load {
            let (value, sentence) = self.load_rate(load.rate_per_s);
            let names = ["load.rate.achieved", "load.requests.rate"];
            return Some(self.tile(&names, "Achieved rate".to_owned(), value, sentence));
        }
        if let Some(http) = self.http() {
            let seconds = self.summary.duration_s;
            let rate = http.requests.total as f64 / seconds.max(f64::MIN_POSITIVE);
            let (requests, seconds) = (grouped(http.requests.total), fixed(seconds, 1));
            let sentence = format!("{requests} requests were over in {seconds} s.");
            let (names, title) = (["proxy.http.requests.rate"], "Requests".to_owned());
            return Some(self.tile(&names, title, format!("{} /s", short(rate)), sentence));
        }
        let proxy = self.summary.proxy.as_ref()?;
        if self.run.absent(LogFigure::Exchange).is_some() {
            let (accepted, seconds) = (proxy.connections.accepted, self.summary.duration_s);
            let rate = accepted as f64 / seconds.max(f64::MIN_POSITIVE);
            let sentence = format!("{} connections were over in {} s.", grouped(accepted), fixed(seconds, 1));
            let names = ["proxy.connections.rate"];
            return Some(self.tile(
                &names,
                "Connections".to_owned(),
                format!("{} /s", short(rate)),
                sentence,
            ));
        }
        let exchanges = self.run.proxy()?.totals()[ProxyCounter::Exchanges];
        let rate = exchanges as f64 / self.summary.duration_s.max(f64::MIN_POSITIVE);
        let sentence = match proxy.connections.accepted {
            0 if exchanges == 0 => "No client connected.".to_owned(),
            accepted => format!(
                "{} connections carried {} exchanges in {} s.",
                grouped(accepted),
                grouped(exchanges),
                fixed(self.summary.duration_s, 1)
            ),
        };
        Some(self.tile(
            &["proxy.exchanges.rate"],
            "Exchanges".to_owned(),
            format!("{} /s", short(rate)),
            sentence,
        ))
    }

    /// The rate of a load with its sentence.
    fn load_rate(&self, rates: Rates) -> (String, String) {
        let achieved = short(rates.achieved);
        let Some(wanted) = rates.wanted else {
            let sentence = format!(
                "{achieved} requests a second were answered, each connection sending its next one when the last was answered (closed loop)."
            );
            return (format!("{achieved} /s"), sentence);
        };
        let verdict = match (rates.is_achieved, self.summary.ended) {
            (false, _) => ": the offered rate was not achieved",
            (true, true) => ": the load kept its schedule",
            (true, false) => "; what was in flight when the records end is missing",
        };
        let (share, wanted) = (percent(rates.achieved, wanted), short(wanted));
        let sentence = format!("{achieved} of {wanted} requests a second were answered ({share}){verdict}.");
        (format!("{achieved} of {wanted} /s"), sentence)
    }

    fn failure_tile(&self) -> Option<Tile> {
        if let Some((failed, whole)) = self.failed_requests() {
            let mut sentence = failure_sentence("requests", failed, whole);
            let names = ["load.requests.failed", "load.failed.ratio", "load.errors"];
            let mut value = grouped(failed);
            // Others than the load may have failed.
            if let Some(at_proxy) = self.failures_at_proxy().filter(|at_proxy| at_proxy.failed > failed) {
                value = format!("{value}; at the proxy {}", grouped(at_proxy.failed));
                sentence = format!(
                    "Of the load: {} At the proxy: {}",
                    lower_first(&sentence),
                    lower_first(&at_proxy.sentence())
                );
            }
            return Some(self.tile(&names, "Failed requests".to_owned(), value, sentence));
        }
        let at_proxy = self.failures_at_proxy()?;
        let sentence = match at_proxy.whole {
            0 if self.http().is_none() => "There were no handshakes.".to_owned(),
            _ => at_proxy.sentence(),
        };
        let title = format!("Failed {}", at_proxy.what);
        Some(self.tile(at_proxy.figures, title, grouped(at_proxy.failed), sentence))
    }

    /// Failures at the proxy, including the load's: requests, or handshakes in TCP mode.
    fn failures_at_proxy(&self) -> Option<ProxyFailures> {
        if let Some(http) = self.http() {
            return Some(ProxyFailures {
                what: "requests",
                figures: &["proxy.http.failed", "proxy.http.failed.ratio"],
                failed: http.requests.failed,
                whole: http.requests.total,
            });
        }
        let handshakes = &self.summary.proxy.as_ref()?.handshakes;
        Some(ProxyFailures {
            what: "handshakes",
            figures: &["proxy.handshakes.failed"],
            failed: handshakes.failed,
            whole: handshakes.full + handshakes.resumed + handshakes.failed,
        })
    }

    fn resumption_tile(&self) -> Option<Tile> {
        let of_proxy = self.summary.proxy.as_ref().map(|proxy| &proxy.handshakes);
        let handshakes = of_proxy.or_else(|| Some(&self.summary.load.as_ref()?.handshakes))?;
        let done = handshakes.full + handshakes.resumed;
        if done == 0 {
            return None;
        }
        let sentence = format!(
            "{} of {} handshakes resumed an earlier session; {} were full ones, which cost more CPU.",
            grouped(handshakes.resumed),
            grouped(done),
            grouped(handshakes.full)
        );
        let value = percent(handshakes.resumed as f64, done as f64);
        Some(self.tile(&["proxy.resumed.ratio"], "Resumed handshakes".to_owned(), value, sentence))
    }

    /// CPU time of the proxy's threads for each exchange.
    fn cpu_tile(&self) -> Option<Tile> {
        let (figure, exchanges) = match self.http() {
            Some(http) => ("proxy.http.cpu.per_request", http.requests.total),
            None => ("proxy.cpu.per_exchange", self.run.proxy()?.totals()[ProxyCounter::Exchanges]),
        };
        let cpu_us = self.run.host()?.cpu[CpuGroup::Proxy];
        if exchanges == 0 || cpu_us == 0 {
            return None;
        }
        let each_us = cpu_us as f64 / exchanges as f64;
        let sentence = format!(
            "The proxy's threads used {} s of CPU for {} requests, handshakes included.",
            fixed(cpu_us as f64 / 1e6, 2),
            grouped(exchanges)
        );
        let value = format!("{} µs", short(each_us));
        Some(self.tile(&[figure], "CPU per request".to_owned(), value, sentence))
    }

    /// CPU time, bytes and round trips of TLS: the sentences of the summary, the most telling figure first.
    fn tls_tile(&self) -> Option<Tile> {
        let cost = &self.summary.tls_cost;
        let first = [
            cost.cpu_ratio.map(|ratio| format!("{} of CPU", FigureUnit::Ratio.show(ratio))),
            cost.bytes_ratio.map(|ratio| format!("{} of bytes", FigureUnit::Ratio.show(ratio))),
            cost.round_trips.map(|trips| format!("{} RTT", FigureUnit::Count.show(trips))),
            cost.load_full_p50_us.or(cost.load_resumed_p50_us).map(|us| FigureUnit::Micros.show(us)),
        ];
        let value = first.into_iter().flatten().next()?;
        let names = ["proxy.compute_full.mean", "proxy.compute_resumed.mean", "proxy.bytes.tls.ratio"];
        Some(self.tile(&names, "TLS costs".to_owned(), value, cost.sentences().join(" ")))
    }

    fn apdex_tile(&self) -> Option<Tile> {
        let apdex = self.apdex()?;
        let threshold = short(apdex.threshold_ms);
        let sentence = format!(
            "{} of requests were answered within T = {threshold} ms, {} more within 4 T; those count half.",
            percent(apdex.satisfied, 1.0),
            percent(apdex.tolerating, 1.0)
        );
        let title = format!("Apdex, T = {threshold} ms");
        Some(self.tile(&[], title, fixed(apdex.score, 3), sentence))
    }

    /// The Apdex score of the load's responses, or of what the proxy answered. Requests that failed or were not answered
    /// count against it.
    pub(crate) fn apdex(&self) -> Option<Apdex> {
        let (first, _) = by_weight(self.latencies());
        let latency = first.first()?;
        let within_ns = u64::try_from(self.apdex_threshold.as_nanos()).unwrap_or(u64::MAX);
        let samples = latency.histogram.count() as f64;
        let within = |ns: u64| Some(latency.histogram.share_within(0, ns)? * samples);
        let (satisfied, tolerated) = (within(within_ns)?, within(within_ns.saturating_mul(4))?);
        let requests = self.summary.load.as_ref().map(|load| &load.requests);
        let unserved = unserved(self.run) as f64;
        // Answers to failed requests are among the samples of HTTP mode, but for those that were never passed on or
        // answered: those that waited in vain are the slow ones.
        let (all, failed) = match (latency.class, requests, self.http()) {
            (LatencyClass::Load(_), Some(requests), _) => {
                ((requests.ok + requests.failed + requests.unfinished + requests.never_sent) as f64, 0.0)
            }
            (LatencyClass::Http(_), _, Some(http)) => {
                let in_vain = self.run.http()?.totals().sum(&WAITED_IN_VAIN) as f64;
                let all = http.requests.total as f64;
                // A log may lack the upstream's time of a request that was served.
                let is_first_byte = latency.class == LatencyClass::Http(HttpLatency::FirstByte);
                let without = if is_first_byte { all - samples } else { http.requests.unanswered as f64 };
                let answered = unserved - without;
                (all, (answered - in_vain.min(samples - tolerated)).max(0.0))
            }
            (_, _, _) => (samples + unserved, 0.0),
        };
        let share = |part: f64| part.max(0.0) / all.max(samples);
        let (satisfied, tolerated) = (share(satisfied - failed), share(tolerated - failed));
        let tolerating = tolerated - satisfied;
        let threshold_ms = within_ns as f64 / 1e6;
        Some(Apdex { score: satisfied + tolerating / 2.0, threshold_ms, satisfied, tolerating })
    }
}

/// The sentence as it continues another one.
fn lower_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// How many of the requests or handshakes failed, in a sentence.
fn failure_sentence(what: &str, failed: u64, whole: u64) -> String {
    let all = grouped(whole);
    match failed {
        0 => format!("None of {all} {what} failed."),
        _ => {
            format!("{} of {all} {what} failed ({}).", grouped(failed), percent(failed as f64, whole as f64))
        }
    }
}
