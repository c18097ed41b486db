//! Figures that are one amount divided by another. Over several blocks of an experiment, or several runs, the sums are
//! divided.

use super::scalars::failed_requests;
use super::{FigureSide, FigureUnit};
use crate::runs::Run;
use records::metrics::{Counters, CpuGroup, FullReason, HttpCounter, LoadCounter, ProxyCounter, TlsCounter};

/// Counters over a span of time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The span, in microseconds.
    pub span_us: u64,
    pub proxy: Counters<ProxyCounter>,
    pub tls: Counters<TlsCounter>,
    pub http: Counters<HttpCounter>,
    pub load: Counters<LoadCounter>,
    /// CPU time used, in microseconds.
    pub cpu: Counters<CpuGroup>,
}

/// Whether a lower or a higher value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// A figure that is one amount divided by another.
#[derive(Debug)]
pub struct Quotient {
    /// The name without the side's prefix.
    pub(super) name: &'static str,
    pub(super) side: FigureSide,
    pub(super) unit: FigureUnit,
    pub(super) definition: &'static str,
    pub better: Better,
    /// The dividend.
    pub of: fn(&Totals) -> f64,
    /// The divisor.
    pub per: fn(&Totals) -> f64,
}

impl PartialEq for Quotient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Totals {
    /// The totals of a whole run.
    pub fn of(run: &Run) -> Self {
        Self {
            span_us: run.duration_us(),
            proxy: run.proxy().map(|series| *series.totals()).unwrap_or_default(),
            tls: run.tls().map(|series| *series.totals()).unwrap_or_default(),
            http: run.http().map(|series| *series.totals()).unwrap_or_default(),
            load: run.load().map(|series| *series.totals()).unwrap_or_default(),
            cpu: run.host().map(|host| host.cpu).unwrap_or_default(),
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.span_us as f64 / 1e6
    }

    fn handshakes(&self) -> f64 {
        self.proxy.sum(&[ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed]) as f64
    }

    /// Full handshakes by the records of their reasons; none in recordings from before there were any.
    fn reasons(&self) -> f64 {
        self.tls.sum(&FullReason::ALL.map(|(_, counter, _)| counter)) as f64
    }

    /// Handshakes of a run with such records; else none.
    fn tls_handshakes(&self) -> f64 {
        if self.tls.is_zero() { 0.0 } else { self.handshakes() }
    }

    /// Handshakes whose version is known.
    fn handshakes_by_version(&self) -> f64 {
        use ProxyCounter::{Tls12Full, Tls12Resumed, Tls13Full, Tls13Resumed};
        self.proxy.sum(&[Tls13Full, Tls13Resumed, Tls12Full, Tls12Resumed]) as f64
    }

    fn plaintext_bytes(&self) -> f64 {
        self.proxy.sum(&[ProxyCounter::BytesIn, ProxyCounter::BytesOut]) as f64
    }

    /// None in a log, which has no bytes of TLS.
    fn wire_bytes(&self) -> f64 {
        self.proxy.sum(&[ProxyCounter::WireIn, ProxyCounter::WireOut]) as f64
    }

    fn exchanges(&self) -> f64 {
        self.proxy[ProxyCounter::Exchanges] as f64
    }

    fn requests(&self) -> f64 {
        self.http[HttpCounter::Requests] as f64
    }

    fn plain_header_bytes(&self) -> f64 {
        self.http.sum(&[HttpCounter::PlainHeaderBytesIn, HttpCounter::PlainHeaderBytesOut]) as f64
    }

    fn proxy_cpu_us(&self) -> f64 {
        self.cpu[CpuGroup::Proxy] as f64
    }
}

impl Quotient {
    /// `None` if there is nothing to divide by.
    pub fn value(&self, totals: &Totals) -> Option<f64> {
        let per = (self.per)(totals);
        (per > 0.0).then(|| (self.of)(totals) / per)
    }
}

const fn rate(
    side: FigureSide,
    name: &'static str,
    definition: &'static str,
    of: fn(&Totals) -> f64,
) -> Quotient {
    let (unit, better) = (FigureUnit::PerSecond, Better::Higher);
    Quotient { name, side, unit, definition, better, of, per: Totals::seconds }
}

const fn cpu(name: &'static str, definition: &'static str, per: fn(&Totals) -> f64) -> Quotient {
    let (side, unit, better) = (FigureSide::Proxy, FigureUnit::Micros, Better::Lower);
    Quotient { name, side, unit, definition, better, of: Totals::proxy_cpu_us, per }
}

/// A share of the handshakes that the proxy completed, or of the full ones among them.
macro_rules! share {
    ($name:literal, $better:ident, $definition:literal, $counter:ident per $per:ident) => {
        Quotient {
            name: $name,
            side: FigureSide::Proxy,
            unit: FigureUnit::Ratio,
            definition: $definition,
            better: Better::$better,
            of: |totals| totals.tls[TlsCounter::$counter] as f64,
            per: Totals::$per,
        }
    };
}

pub(super) static QUOTIENTS: [Quotient; 29] = [
    rate(
        FigureSide::Proxy,
        "exchanges.rate",
        "Exchanges that the proxy counted, over the run's duration.",
        Totals::exchanges,
    ),
    rate(
        FigureSide::Proxy,
        "handshakes.rate",
        "Full and resumed handshakes that the proxy completed, over the run's duration.",
        Totals::handshakes,
    ),
    rate(
        FigureSide::Load,
        "requests.rate",
        "Requests answered whole with a status below 400, over the run's duration, pauses included; `rate.achieved` leaves pauses and warm-up out.",
        |totals| totals.load[LoadCounter::Ok] as f64,
    ),
    rate(
        FigureSide::Proxy,
        "bytes.rate",
        "Plaintext bytes both ways through the proxy, over the run's duration.",
        Totals::plaintext_bytes,
    ),
    cpu(
        "cpu.per_exchange",
        "CPU time of the proxy's workers, over the exchanges that they counted.",
        Totals::exchanges,
    ),
    cpu(
        "cpu.per_handshake",
        "All CPU time of the proxy's workers, over the full and resumed handshakes that they completed.",
        Totals::handshakes,
    ),
    Quotient {
        name: "resumed.ratio",
        side: FigureSide::Proxy,
        unit: FigureUnit::Ratio,
        definition: "Resumed handshakes over full and resumed ones, as the proxy counts them.",
        better: Better::Higher,
        of: |totals| totals.proxy[ProxyCounter::HandshakesResumed] as f64,
        per: Totals::handshakes,
    },
    Quotient {
        name: "bytes.tls.ratio",
        side: FigureSide::Proxy,
        unit: FigureUnit::Ratio,
        definition: "What TLS adds to the bytes of clients, both ways, over all their bytes above TCP: handshakes, record headers and tags. Not known where connections are passed.",
        better: Better::Lower,
        of: |totals| (totals.wire_bytes() - totals.plaintext_bytes()).max(0.0),
        per: |totals| if totals.proxy[ProxyCounter::Passed] > 0 { 0.0 } else { totals.wire_bytes() },
    },
    Quotient {
        name: "handshakes.round_trips",
        side: FigureSide::Proxy,
        unit: FigureUnit::Count,
        definition: "Round trips that a handshake takes before the first request, by its version, over the handshakes: two for a full one of TLS 1.2, one for any other, and one more for a `HelloRetryRequest`.",
        better: Better::Lower,
        of: |totals| {
            let one_more = [ProxyCounter::Tls12Full, ProxyCounter::HandshakesRetried];
            totals.handshakes_by_version() + totals.proxy.sum(&one_more) as f64
        },
        per: Totals::handshakes_by_version,
    },
    share!("handshakes.full.first_visit.ratio", Lower, "Full handshakes with the reason `first_visit`, over those whose reason was recorded.", FullFirstVisit per reasons),
    share!("handshakes.full.no_ticket.ratio", Lower, "Full handshakes with the reason `no_ticket`, over those whose reason was recorded.", FullNoTicket per reasons),
    share!("handshakes.full.expired.ratio", Lower, "Full handshakes with the reason `expired`, over those whose reason was recorded.", FullExpired per reasons),
    share!("handshakes.full.unknown_key.ratio", Lower, "Full handshakes with the reason `unknown_key`, over those whose reason was recorded.", FullUnknownKey per reasons),
    share!("handshakes.full.damaged.ratio", Lower, "Full handshakes with the reason `damaged`, over those whose reason was recorded.", FullDamaged per reasons),
    share!("handshakes.full.other_name.ratio", Lower, "Full handshakes with the reason `other_name`, over those whose reason was recorded.", FullOtherName per reasons),
    share!("handshakes.full.other_version.ratio", Lower, "Full handshakes with the reason `other_version`, over those whose reason was recorded.", FullOtherVersion per reasons),
    share!("handshakes.full.client_auth.ratio", Lower, "Full handshakes with the reason `client_auth`, over those whose reason was recorded.", FullClientAuth per reasons),
    share!("handshakes.full.resumption_off.ratio", Lower, "Full handshakes with the reason `resumption_off`, over those whose reason was recorded.", FullResumptionOff per reasons),
    share!("handshakes.full.evicted.ratio", Lower, "Full handshakes with the reason `evicted`, over those whose reason was recorded.", FullEvicted per reasons),
    share!("handshakes.full.unknown.ratio", Lower, "Full handshakes with the reason `unknown`, over those whose reason was recorded.", FullUnknown per reasons),
    share!("handshakes.offers.ratio", Higher, "Completed handshakes in which the client offered to resume, over all.", OffersToResume per tls_handshakes),
    share!("handshakes.tls12_only.ratio", Lower, "Completed handshakes in which the client offered no TLS 1.3, over all.", Tls12Only per tls_handshakes),
    share!("handshakes.mlkem_offered.ratio", Higher, "Completed handshakes in which the client supports X25519MLKEM768, over all.", MlkemOffered per tls_handshakes),
    Quotient {
        name: "failed.ratio",
        side: FigureSide::Load,
        unit: FigureUnit::Ratio,
        definition: "Failed requests over those that failed or were answered with a status below 400.",
        better: Better::Lower,
        of: |totals| totals.load[LoadCounter::Failed] as f64,
        per: |totals| totals.load.sum(&[LoadCounter::Ok, LoadCounter::Failed]) as f64,
    },
    rate(
        FigureSide::Http,
        "http.requests.rate",
        "Requests that were over in the proxy, answered or given up, over the run's duration.",
        Totals::requests,
    ),
    Quotient {
        name: "http.failed.ratio",
        side: FigureSide::Http,
        unit: FigureUnit::Ratio,
        definition: "Requests that failed in the proxy, whatever status was sent, over all requests.",
        better: Better::Lower,
        of: |totals| failed_requests(&totals.http) as f64,
        per: Totals::requests,
    },
    Quotient {
        name: "http.reused.ratio",
        side: FigureSide::Http,
        unit: FigureUnit::Ratio,
        definition: "Requests sent on a kept upstream connection over all requests.",
        better: Better::Higher,
        of: |totals| totals.http[HttpCounter::Reused] as f64,
        per: Totals::requests,
    },
    Quotient {
        name: "http.headers.savings",
        side: FigureSide::Http,
        unit: FigureUnit::Ratio,
        definition: "What HTTP/2 saved of header bytes by compression, both ways, over the bytes before compression.",
        better: Better::Higher,
        of: |totals| {
            let sent = totals.http.sum(&[HttpCounter::HeaderBytesIn, HttpCounter::HeaderBytesOut]);
            totals.plain_header_bytes() - sent as f64
        },
        per: Totals::plain_header_bytes,
    },
    Quotient {
        name: "http.cpu.per_request",
        side: FigureSide::Http,
        unit: FigureUnit::Micros,
        definition: "CPU time of the proxy's workers, over the requests that were over.",
        better: Better::Lower,
        of: Totals::proxy_cpu_us,
        per: Totals::requests,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FigureName;
    use crate::insight::testing::{RunBuilder, add};
    use records::kinds::Judged;

    #[test]
    fn what_tls_adds_is_not_known_of_bytes_that_are_passed() {
        let of = |passed| {
            let mut recorder = RunBuilder::begun(&[]);
            recorder.seconds(2, |recorder| {
                let counted = [
                    (ProxyCounter::WireOut, 1_000),
                    (ProxyCounter::BytesOut, 900),
                    (ProxyCounter::Passed, passed),
                ];
                add(&mut recorder.proxy.counters, &counted);
            });
            let name: FigureName = "proxy.bytes.tls.ratio".parse().unwrap();
            name.figures().next().unwrap().value(recorder.run(), None)
        };
        assert_eq!([of(0), of(1)], [Some(0.1), None]);
    }

    #[test]
    fn a_verdict_knows_shares_by_their_names() {
        for quotient in &QUOTIENTS {
            let judged = Judged { setting: "", a: "", b: "", metric: quotient.name };
            assert_eq!(judged.unit() == "points", quotient.unit == FigureUnit::Ratio, "{}", quotient.name);
        }
    }
}
