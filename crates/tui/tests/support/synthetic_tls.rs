//! What the made-up run counts of TLS: reasons, waits, and who uses what.

use records::histogram::Histograms;
use records::kinds::{Body, TlsRecord, UsageRecord};
use records::metrics::{Counters, Dimension, TlsCounter, TlsLatency, UsageCounter};
use records::values::Latencies;

use super::fill;

/// Values with full and resumed handshakes a second, and handshake CPU in microseconds.
const USAGE: [(Dimension, &str, u64, u64, u64); 9] = [
    (Dimension::Version, "TLSv1.3", 80, 400, 41_000),
    (Dimension::Version, "TLSv1.2", 20, 0, 11_000),
    (Dimension::Group, "X25519MLKEM768", 94, 376, 50_000),
    (Dimension::Group, "secp256r1", 6, 24, 2_000),
    (Dimension::Signature, "ecdsa_secp256r1_sha256", 100, 0, 16_000),
    (Dimension::Name, "shop.example", 60, 340, 30_000),
    (Dimension::Name, "api.internal.shop.example", 30, 60, 15_000),
    (Dimension::Name, "none", 6, 0, 4_000),
    (Dimension::Name, "other", 4, 0, 3_000),
];

/// What the run counted of TLS so far.
#[derive(Default)]
pub struct SyntheticTls {
    counters: Counters<TlsCounter>,
    samples: Counters<TlsLatency>,
    usage: [Counters<UsageCounter>; USAGE.len()],
}

impl SyntheticTls {
    /// The records of a second.
    pub fn second(&mut self) -> Vec<Body> {
        let mut bodies = vec![self.totals()];
        bodies.extend((0..USAGE.len()).map(|at| self.value(at)));
        bodies
    }

    fn totals(&mut self) -> Body {
        let counts = [
            (TlsCounter::FullNoTicket, 62),
            (TlsCounter::FullExpired, 27),
            (TlsCounter::FullFirstVisit, 8),
            (TlsCounter::FullUnknownKey, 3),
            (TlsCounter::OffersToResume, 430),
            (TlsCounter::Tls12Only, 20),
            (TlsCounter::HandshakesRetransmitted, 4),
        ];
        for (counter, n) in counts {
            self.counters[counter] += n;
        }
        let mut interval = Histograms::default();
        let times = [
            (TlsLatency::NetworkFull, 100, 820),
            (TlsLatency::ClientFull, 100, 380),
            (TlsLatency::WorkerFull, 100, 60),
            (TlsLatency::NetworkResumed, 400, 160),
            (TlsLatency::ClientResumed, 400, 60),
            (TlsLatency::WorkerResumed, 400, 15),
        ];
        for (class, n, us) in times {
            fill(&mut interval, &mut self.samples, class, n, |_| us);
        }
        let latencies = Latencies::new(&interval, &self.samples);
        Body::Tls(Box::new(TlsRecord { counters: self.counters, latencies, ..TlsRecord::default() }))
    }

    fn value(&mut self, at: usize) -> Body {
        let (dimension, value, full, resumed, compute_us) = USAGE[at];
        let is_old = value == "TLSv1.2";
        let counts = [
            (UsageCounter::HandshakesFull, full),
            (UsageCounter::HandshakesResumed, resumed),
            (UsageCounter::HandshakesFailed, u64::from(value == "none")),
            (UsageCounter::BytesIn, (full + resumed) * 1_200),
            (UsageCounter::BytesOut, (full + resumed) * 82_000),
            (UsageCounter::ComputeFullNs, compute_us * 1_000),
            (UsageCounter::OnlyChoice, if is_old { full } else { 0 }),
            (UsageCounter::FullNoTicket, full * 7 / 10),
            (UsageCounter::FullExpired, full * 2 / 10),
        ];
        let counters = &mut self.usage[at];
        for (counter, n) in counts {
            counters[counter] += n;
        }
        Body::Usage(Box::new(UsageRecord { dimension, value: value.into(), counters: *counters }))
    }
}
