//! Counters and latencies of TLS, besides those in every proxy record.

use super::counters::{Counters, metrics};

metrics! {
    /// The proxy's counters of TLS.
    TlsCounter {
        FullFirstVisit = "FULL_FIRST_VISIT_TOTAL", Count, "40", "Full handshakes without an offer to resume, of an address that was not seen before.";
        FullNoTicket = "FULL_NO_TICKET_TOTAL", Count, "120", "Full handshakes without an offer to resume, of an address that was seen before.";
        FullExpired = "FULL_EXPIRED_TOTAL", Count, "12", "Full handshakes whose session had ended: it was older than the ticket lifetime, or the client's certificate has expired.";
        FullUnknownKey = "FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes whose ticket was sealed with a key that is not known here: one forgotten, or one of another host.";
        FullDamaged = "FULL_DAMAGED_TOTAL", Count, "0", "Full handshakes whose ticket names a known key and does not open with it.";
        FullOtherName = "FULL_OTHER_NAME_TOTAL", Count, "0", "Full handshakes whose ticket was issued for another server name.";
        FullOtherVersion = "FULL_OTHER_VERSION_TOTAL", Count, "0", "Full handshakes whose ticket is of another TLS version or cipher than was negotiated.";
        FullClientAuth = "FULL_CLIENT_AUTH_TOTAL", Count, "0", "Full handshakes whose ticket was issued under other rules for client certificates.";
        FullResumptionOff = "FULL_RESUMPTION_OFF_TOTAL", Count, "0", "Full handshakes while resumption is off, but for first visits; or of clients that offered a ticket while sessions are kept in a cache.";
        FullEvicted = "FULL_EVICTED_TOTAL", Count, "0", "Full handshakes whose session had been in the session cache and was evicted, or used before.";
        FullUnknown = "FULL_UNKNOWN_TOTAL", Count, "0", "Full handshakes for which no reason is known.";
        OffersToResume = "RESUMPTIONS_OFFERED_TOTAL", Count, "960", "Completed handshakes in which the client offered to resume.";
        Tls12Only = "TLS12_ONLY_TOTAL", Count, "8", "Completed handshakes in which the client offered no TLS 1.3.";
        MlkemOffered = "MLKEM_OFFERED_TOTAL", Count, "900", "Completed handshakes in which the client supports X25519MLKEM768.";
        NoTicketAlone = "NO_TICKET_ALONE_TOTAL", Count, "20", "Of the full handshakes without a ticket of a known address: no other connection of it was open.";
        NoTicketBeside1 = "NO_TICKET_BESIDE_1_TOTAL", Count, "60", "The same with 1 other connection of the address open.";
        NoTicketBeside3 = "NO_TICKET_BESIDE_3_TOTAL", Count, "30", "The same with 2 or 3 others open.";
        NoTicketBeside7 = "NO_TICKET_BESIDE_7_TOTAL", Count, "10", "The same with 4 to 7 others open.";
        NoTicketBesideMore = "NO_TICKET_BESIDE_MORE_TOTAL", Count, "0", "The same with 8 or more others open.";
        HandshakesRetransmitted = "HANDSHAKES_RETRANSMITTED_TOTAL", Count, "3", "Completed handshakes in which the kernel sent a segment to the client again, the SYN-ACK included.";
        Retransmits = "HANDSHAKE_RETRANSMITS_TOTAL", Count, "4", "Segments that the kernel sent again by the end of handshakes that were completed.";
    }
}

metrics! {
    /// Where the wall time of handshakes goes, and their most expensive parts. A handshake's network, client, worker
    /// and compute time add up to its whole.
    TlsLatency {
        NetworkFull = "WAIT_NETWORK_FULL", Histogram, "HISTFAAA…", "Round trips of a full handshake: the kernel's round-trip time for each flight awaited, at most the time waited.";
        NetworkResumed = "WAIT_NETWORK_RESUMED", Histogram, "HISTFAAA…", "Round trips of a resumed handshake.";
        ClientFull = "WAIT_CLIENT_FULL", Histogram, "HISTFAAA…", "Waiting for the client in a full handshake, without the round trips.";
        ClientResumed = "WAIT_CLIENT_RESUMED", Histogram, "HISTFAAA…", "Waiting for the client in a resumed handshake, without the round trips.";
        WorkerFull = "WAIT_WORKER_FULL", Histogram, "HISTFAAA…", "Loop delay of a full handshake: what had come waited for the worker, which was busy with other connections.";
        WorkerResumed = "WAIT_WORKER_RESUMED", Histogram, "HISTFAAA…", "Loop delay of a resumed handshake.";
        KeyExchange = "KEY_EXCHANGE", Histogram, "HISTFAAA…", "CPU-bound time of one handshake's key exchange.";
        Signature = "SIGNATURE", Histogram, "HISTFAAA…", "CPU-bound time of one handshake's signature.";
    }
}

metrics! {
    /// The proxy's counters for one value of a usage dimension, such as a version or a server name.
    UsageCounter {
        HandshakesFull = "USAGE_HANDSHAKES_FULL_TOTAL", Count, "16", "Full handshakes completed.";
        HandshakesResumed = "USAGE_HANDSHAKES_RESUMED_TOTAL", Count, "64", "Resumed handshakes completed.";
        HandshakesFailed = "USAGE_HANDSHAKES_FAILED_TOTAL", Count, "0", "Handshakes that failed after the `ClientHello` was read; only for server names and fingerprints.";
        BytesIn = "USAGE_BYTES_IN_TOTAL", Bytes, "12034", "Plaintext from clients to upstreams, of connections that are over.";
        BytesOut = "USAGE_BYTES_OUT_TOTAL", Bytes, "6130021", "Plaintext from upstreams to clients, of connections that are over.";
        ComputeFullNs = "USAGE_COMPUTE_FULL_NS_TOTAL", Nanos, "8120330", "Time spent inside the TLS library during full handshakes.";
        ComputeResumedNs = "USAGE_COMPUTE_RESUMED_NS_TOTAL", Nanos, "2120330", "Time spent inside the TLS library during resumed handshakes.";
        OnlyChoice = "USAGE_ONLY_CHOICE_TOTAL", Count, "2", "Completed handshakes in which the client offered nothing else that the proxy allows: without this value they would fail.";
        FullNoTicket = "USAGE_FULL_NO_TICKET_TOTAL", Count, "3", "Full handshakes without an offer to resume.";
        FullExpired = "USAGE_FULL_EXPIRED_TOTAL", Count, "1", "Full handshakes whose ticket or session had expired.";
        FullUnknownKey = "USAGE_FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes whose ticket was sealed with an unknown key.";
        FullMismatch = "USAGE_FULL_MISMATCH_TOTAL", Count, "0", "Full handshakes whose ticket is for another name, version, cipher or rule for client certificates.";
        NotCovered = "USAGE_NOT_COVERED_TOTAL", Count, "0", "Handshakes, failed ones included, for a server name that no certificate of the proxy has; only for server names.";
    }
}

impl Counters<UsageCounter> {
    /// Handshakes completed.
    pub fn handshakes(&self) -> u64 {
        self.sum(&[UsageCounter::HandshakesFull, UsageCounter::HandshakesResumed])
    }

    /// Time spent inside the TLS library during handshakes, in nanoseconds.
    pub fn compute_ns(&self) -> u64 {
        self.sum(&[UsageCounter::ComputeFullNs, UsageCounter::ComputeResumedNs])
    }
}
