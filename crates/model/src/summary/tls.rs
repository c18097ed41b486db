//! TLS in a summary: reasons of full handshakes, parts of their time, and usage.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{ByteCounts, Percentiles};
use crate::runs::{MetricSeries, Run};
use records::delta::OTHER_VALUE;
use records::metrics::{Counters, Dimension, FullReason, ProxyLatency, TlsCounter, TlsLatency, UsageCounter};
use records::values::{AgeCounts, LogFigure};

/// The proxy's counts of TLS besides handshakes.
#[derive(Clone, Debug, Serialize)]
pub struct TlsSummary {
    /// Completed handshakes in which the client offered to resume.
    pub offers: u64,
    /// Completed handshakes in which the client offered no TLS 1.3.
    pub tls12_only: u64,
    /// Completed handshakes in which the client supports X25519MLKEM768.
    pub mlkem_offered: u64,
    /// Completed handshakes in which the client offered early data.
    pub early_data_offered: u64,
    /// Completed handshakes in which the client offered ECH, or pretended to.
    pub ech_offered: u64,
    /// Full handshakes without an offer to resume of a known address, by its other open connections.
    pub no_ticket_beside: BTreeMap<&'static str, u64>,
    /// How old the tickets and sessions were that clients offered.
    pub ticket_ages: TicketAges,
    /// The time of handshakes by part; the means of the parts add up to the mean of the whole.
    pub wall_time_us: WallTimes,
    /// CPU-bound time of key exchanges, in microseconds.
    pub key_exchange_us: Percentiles,
    /// CPU-bound time of signatures, in microseconds.
    pub signature_us: Percentiles,
    /// Handshakes and traffic by dimension, the value with the most handshakes first and `other` last.
    pub usage: BTreeMap<&'static str, Vec<UsageSummary>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TicketAges {
    /// Resumed sessions.
    pub accepted: Vec<AgeCount>,
    pub expired: Vec<AgeCount>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct AgeCount {
    /// The upper end of the class.
    pub seconds: u64,
    /// Tickets and sessions.
    pub count: u64,
}

/// Where the time of handshakes went.
#[derive(Clone, Debug, Serialize)]
pub struct WallTimes {
    pub full: WallTime,
    pub resumed: WallTime,
}

/// The parts of handshakes of one type.
#[derive(Clone, Debug, Serialize)]
pub struct WallTime {
    /// Round trips.
    pub network: Percentiles,
    /// Waiting for the client, without the round trips.
    pub client: Percentiles,
    /// Loop delay: data had come and waited for the worker.
    pub loop_delay: Percentiles,
    /// Inside the TLS library.
    pub compute: Percentiles,
    /// The server's, of packets, which do not show what of it is loop delay and what is compute.
    pub server: Percentiles,
}

#[derive(Clone, Debug, Serialize)]
pub struct UsageSummary {
    /// The value, such as `TLSv1.3` or a server name; `other` sums all beyond the bound.
    pub value: String,
    pub full: u64,
    pub resumed: u64,
    /// Failed handshakes; only for server names and fingerprints.
    pub failed: u64,
    /// Bytes of ended connections.
    pub bytes: ByteCounts,
    /// Time inside the TLS library during handshakes, in microseconds.
    pub compute_us: f64,
    /// Completed handshakes in which the client offered nothing else that the proxy allows.
    pub only_choice: u64,
    /// Full handshakes by reason, as far as values have them.
    pub full_by_reason: ReasonCounts,
    /// Share of the dimension's handshakes in percent; `null` without any.
    pub handshakes_percent: Option<f64>,
    /// Share of the dimension's time inside the TLS library in percent; `null` without any.
    pub compute_percent: Option<f64>,
}

/// The reasons that are counted for clients and values of usage.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReasonCounts {
    /// No offer to resume.
    pub no_ticket: u64,
    /// The ticket or session had expired.
    pub expired: u64,
    /// The ticket's key was not known.
    pub unknown_key: u64,
    /// The ticket was for another name, version, cipher, or rule for client certificates.
    pub mismatch: u64,
}

impl TlsSummary {
    /// `None` for a run without records of TLS.
    pub(super) fn of(run: &Run) -> Option<Self> {
        use TlsLatency as T;
        let (series, proxy) = (run.tls()?, run.proxy()?);
        let (totals, whole) = (series.totals(), series.whole());
        let wall_time = |[network, client, worker, server]: [TlsLatency; 4], compute| WallTime {
            network: Percentiles::of(&whole[network]),
            client: Percentiles::of(&whole[client]),
            loop_delay: Percentiles::of(&whole[worker]),
            compute: Percentiles::of(&proxy.whole()[compute]),
            server: Percentiles::of(&whole[server]),
        };
        Some(Self {
            offers: totals[TlsCounter::OffersToResume],
            tls12_only: totals[TlsCounter::Tls12Only],
            mlkem_offered: totals[TlsCounter::MlkemOffered],
            early_data_offered: totals[TlsCounter::EarlyDataOffered],
            ech_offered: totals[TlsCounter::EchOffered],
            no_ticket_beside: BESIDE.iter().map(|&(n, counter)| (n, totals[counter])).collect(),
            ticket_ages: TicketAges {
                accepted: ages(run.tls_record().map(|record| &record.ages_accepted)),
                expired: ages(run.tls_record().map(|record| &record.ages_expired)),
            },
            wall_time_us: WallTimes {
                full: wall_time(
                    [T::NetworkFull, T::ClientFull, T::WorkerFull, T::ServerFull],
                    ProxyLatency::ComputeFull,
                ),
                resumed: wall_time(
                    [T::NetworkResumed, T::ClientResumed, T::WorkerResumed, T::ServerResumed],
                    ProxyLatency::ComputeResumed,
                ),
            },
            key_exchange_us: Percentiles::of(&whole[TlsLatency::KeyExchange]),
            signature_us: Percentiles::of(&whole[TlsLatency::Signature]),
            usage: Dimension::ALL
                .iter()
                .map(|&dimension| (dimension.word(), usage(run, dimension)))
                .collect(),
        })
    }
}

/// Other open connections of the address, with the counter of the handshakes without a ticket.
const BESIDE: [(&str, TlsCounter); 5] = [
    ("0", TlsCounter::NoTicketAlone),
    ("1", TlsCounter::NoTicketBeside1),
    ("2-3", TlsCounter::NoTicketBeside3),
    ("4-7", TlsCounter::NoTicketBeside7),
    ("8+", TlsCounter::NoTicketBesideMore),
];

/// Full handshakes by reason; empty for a run without records of TLS.
pub(super) fn full_by_reason(run: &Run) -> BTreeMap<&'static str, u64> {
    // A log does not have reasons.
    if run.absent(LogFigure::FullReasons).is_some() {
        return BTreeMap::new();
    }
    let totals = run.tls().map(MetricSeries::totals);
    let count =
        |totals: &Counters<TlsCounter>| FullReason::ALL.map(|(_, counter, word)| (word, totals[counter]));
    totals.map(count).into_iter().flatten().collect()
}

fn ages(counts: Option<&AgeCounts>) -> Vec<AgeCount> {
    let all = counts.into_iter().flat_map(AgeCounts::iter);
    all.map(|(age, count)| AgeCount { seconds: age.as_secs(), count }).collect()
}

/// The values of a dimension, sorted.
fn usage(run: &Run, dimension: Dimension) -> Vec<UsageSummary> {
    let sum = run.usage().sum(dimension);
    let mut rows: Vec<UsageSummary> =
        run.usage().of(dimension).map(|(value, counters)| UsageSummary::of(value, counters, &sum)).collect();
    rows.sort_by_key(|row| (row.value == OTHER_VALUE, Reverse(row.full.saturating_add(row.resumed))));
    rows
}

impl UsageSummary {
    fn of(value: &str, counters: &Counters<UsageCounter>, sum: &Counters<UsageCounter>) -> Self {
        let percent = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64 * 100.0);
        Self {
            value: value.to_owned(),
            full: counters[UsageCounter::HandshakesFull],
            resumed: counters[UsageCounter::HandshakesResumed],
            failed: counters[UsageCounter::HandshakesFailed],
            bytes: ByteCounts {
                r#in: counters[UsageCounter::BytesIn],
                out: counters[UsageCounter::BytesOut],
            },
            compute_us: counters.compute_ns() as f64 / 1e3,
            only_choice: counters[UsageCounter::OnlyChoice],
            full_by_reason: ReasonCounts {
                no_ticket: counters[UsageCounter::FullNoTicket],
                expired: counters[UsageCounter::FullExpired],
                unknown_key: counters[UsageCounter::FullUnknownKey],
                mismatch: counters[UsageCounter::FullMismatch],
            },
            handshakes_percent: percent(counters.handshakes(), sum.handshakes()),
            compute_percent: percent(counters.compute_ns(), sum.compute_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::runs::Model;
    use recorder::publish::Publisher;
    use records::delta::{ProxyDelta, UsageDelta};
    use records::ids::RunId;
    use records::kinds::RunRecord;
    use records::metrics::ProxyCounter;

    fn usage(dimension: Dimension, value: &str, counts: &[(UsageCounter, u64)]) -> UsageDelta {
        let mut counters = Counters::default();
        for &(counter, n) in counts {
            counters[counter] = n;
        }
        UsageDelta { dimension, value: value.into(), counters }
    }

    fn delta() -> ProxyDelta {
        use UsageCounter::{ComputeFullNs, ComputeResumedNs, FullExpired, HandshakesFull, HandshakesResumed};
        let mut delta = ProxyDelta::default();
        delta.counters[ProxyCounter::HandshakesFull] = 4;
        let tls = &mut delta.tls;
        tls.counters[TlsCounter::FullExpired] = 3;
        tls.counters[TlsCounter::FullUnknown] = 1;
        tls.counters[TlsCounter::NoTicketBeside3] = 5;
        tls.latencies[TlsLatency::ClientFull].record(Duration::from_millis(2));
        tls.ages_expired.count(Duration::from_secs(7_000));
        tls.usage = vec![
            usage(Dimension::Version, OTHER_VALUE, &[(HandshakesFull, 90)]),
            usage(
                Dimension::Version,
                "TLSv1.2",
                &[(HandshakesFull, 3), (FullExpired, 2), (ComputeFullNs, 300_000)],
            ),
            usage(Dimension::Version, "TLSv1.3", &[(HandshakesResumed, 7), (ComputeResumedNs, 100_000)]),
        ];
        delta
    }

    fn summary(deltas: &[ProxyDelta]) -> serde_json::Value {
        let at = |second: u64| records::kinds::Timestamps {
            monotonic_us: second * 1_000_000,
            realtime_us: second * 1_000_000,
        };
        let mut publisher = Publisher::new(RunId::from_bits(1), Vec::new(), 60, at(0));
        publisher.start(RunRecord::default(), at(0));
        // A value gets a record every five seconds.
        for (second, delta) in (1..).step_by(10).zip(deltas) {
            publisher.interval(Some(delta), None, None, at(second));
        }
        let mut model = Model::default();
        publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
        serde_json::to_value(model.current().unwrap().summary()).unwrap()
    }

    #[test]
    fn a_summary_has_each_reason_and_the_values_by_handshakes() {
        let summary = summary(&[delta(), delta()]);
        let (handshakes, tls) = (&summary["proxy"]["handshakes"], &summary["proxy"]["tls"]);
        let reasons = handshakes["full_by_reason"].as_object().unwrap();
        assert_eq!(reasons.len(), 12);
        assert_eq!(reasons.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 8);
        assert_eq!((&reasons["expired"], &handshakes["full"]), (&json!(6), &json!(8)));
        assert_eq!(tls["no_ticket_beside"], json!({"0": 0, "1": 0, "2-3": 10, "4-7": 0, "8+": 0}));
        assert_eq!(tls["ticket_ages"], json!({"accepted": [], "expired": [{"seconds": 8192, "count": 2}]}));
        assert_eq!(tls["wall_time_us"]["full"]["client"]["mean"], json!(2_000.0));
        assert_eq!(tls["wall_time_us"]["resumed"]["loop_delay"]["n"], json!(0));
        let versions = tls["usage"]["version"].as_array().unwrap();
        let values: Vec<&str> = versions.iter().map(|row| row["value"].as_str().unwrap()).collect();
        assert_eq!(values, ["TLSv1.3", "TLSv1.2", OTHER_VALUE]);
        let old = &versions[1];
        assert_eq!((&old["handshakes_percent"], &old["compute_percent"]), (&json!(3.0), &json!(75.0)));
        assert_eq!((&old["compute_us"], &old["full_by_reason"]["expired"]), (&json!(600.0), &json!(4)));
        assert_eq!(tls["usage"]["name"], json!([]));
    }

    #[test]
    fn a_run_without_a_proxy_has_no_figures_of_tls() {
        assert_eq!(summary(&[])["proxy"], json!(null));
    }
}
