//! Counters and latencies of TLS, besides those in every proxy record.

use super::counters::{Counters, metrics};

// Moments at which several latencies start.
const FLIGHT: &str = "each flight sent";
const CAME: &str = "data of the client came";

metrics! {
    /// The proxy's counters of TLS.
    TlsCounter {
        FullFirstVisit = "FULL_FIRST_VISIT_TOTAL", Count, "40", "Full handshakes without an offer to resume, of an address that was not seen before."
            => figure: "handshakes.full.first_visit", metric: "handshakes_full", label: "first visit";
        FullNoTicket = "FULL_NO_TICKET_TOTAL", Count, "120", "Full handshakes without an offer to resume, of an address that was seen before."
            => figure: "handshakes.full.no_ticket", metric: "handshakes_full", label: "no ticket";
        FullExpired = "FULL_EXPIRED_TOTAL", Count, "12", "Full handshakes whose session had ended: it was older than the ticket lifetime, or the client's certificate has expired."
            => figure: "handshakes.full.expired", metric: "handshakes_full", label: "expired";
        FullUnknownKey = "FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes whose ticket was sealed with a key that is not known here: one forgotten, or one of another host."
            => figure: "handshakes.full.unknown_key", metric: "handshakes_full", label: "unknown key";
        FullDamaged = "FULL_DAMAGED_TOTAL", Count, "0", "Full handshakes whose ticket names a known key and does not open with it."
            => figure: "handshakes.full.damaged", metric: "handshakes_full", label: "damaged";
        FullOtherName = "FULL_OTHER_NAME_TOTAL", Count, "0", "Full handshakes whose ticket was issued for another server name."
            => figure: "handshakes.full.other_name", metric: "handshakes_full", label: "other name";
        FullOtherVersion = "FULL_OTHER_VERSION_TOTAL", Count, "0", "Full handshakes whose ticket is of another TLS version or cipher than was negotiated."
            => figure: "handshakes.full.other_version", metric: "handshakes_full", label: "other version";
        FullClientAuth = "FULL_CLIENT_AUTH_TOTAL", Count, "0", "Full handshakes whose ticket was issued under other rules for client certificates."
            => figure: "handshakes.full.client_auth", metric: "handshakes_full", label: "client auth";
        FullResumptionOff = "FULL_RESUMPTION_OFF_TOTAL", Count, "0", "Full handshakes while resumption is off, but for first visits; or of clients that offered a ticket while sessions are kept in a cache."
            => figure: "handshakes.full.resumption_off", metric: "handshakes_full", label: "resumption off";
        FullEvicted = "FULL_EVICTED_TOTAL", Count, "0", "Full handshakes whose session had been in the session cache and was evicted, or used before."
            => figure: "handshakes.full.evicted", metric: "handshakes_full", label: "evicted";
        FullRefused = "FULL_REFUSED_TOTAL", Count, "0", "Full handshakes whose client offered to resume and was refused; of packets alone, which do not say why."
            => figure: "handshakes.full.refused", metric: "handshakes_full", label: "refused";
        FullUnknown = "FULL_UNKNOWN_TOTAL", Count, "0", "Full handshakes for which no reason is known."
            => figure: "handshakes.full.unknown", metric: "handshakes_full", label: "unknown";
        OffersToResume = "RESUMPTIONS_OFFERED_TOTAL", Count, "960", "Completed handshakes in which the client offered to resume."
            => figure: "handshakes.offers", metric: "resumptions_offered";
        Tls12Only = "TLS12_ONLY_TOTAL", Count, "8", "Completed handshakes in which the client offered no TLS 1.3."
            => figure: "handshakes.tls12_only", metric: "handshakes_tls12_only";
        MlkemOffered = "MLKEM_OFFERED_TOTAL", Count, "900", "Completed handshakes in which the client supports X25519MLKEM768."
            => figure: "handshakes.mlkem_offered", metric: "handshakes_mlkem_offered";
        EarlyDataOffered = "EARLY_DATA_OFFERED_TOTAL", Count, "0", "Completed handshakes in which the client offered early data (0-RTT), whether the server took it or not."
            => figure: "handshakes.early_data_offered", metric: "handshakes_early_data_offered";
        EchOffered = "ECH_OFFERED_TOTAL", Count, "300", "Completed handshakes in which the client encrypted a `ClientHello` within its own (ECH), or pretended to (GREASE): these look the same."
            => figure: "handshakes.ech_offered", metric: "handshakes_ech_offered";
        NoTicketAlone = "NO_TICKET_ALONE_TOTAL", Count, "20", "Of the full handshakes without a ticket of a known address: no other connection of it was open."
            => metric: "handshakes_no_ticket", label: "0";
        NoTicketBeside1 = "NO_TICKET_BESIDE_1_TOTAL", Count, "60", "The same with 1 other connection of the address open."
            => metric: "handshakes_no_ticket", label: "1";
        NoTicketBeside3 = "NO_TICKET_BESIDE_3_TOTAL", Count, "30", "The same with 2 or 3 others open."
            => metric: "handshakes_no_ticket", label: "2-3";
        NoTicketBeside7 = "NO_TICKET_BESIDE_7_TOTAL", Count, "10", "The same with 4 to 7 others open."
            => metric: "handshakes_no_ticket", label: "4-7";
        NoTicketBesideMore = "NO_TICKET_BESIDE_MORE_TOTAL", Count, "0", "The same with 8 or more others open."
            => metric: "handshakes_no_ticket", label: "8+";
        HandshakesRetransmitted = "HANDSHAKES_RETRANSMITTED_TOTAL", Count, "3", "Completed handshakes in which the kernel sent a segment to the client again, the SYN-ACK included."
            => figure: "handshakes.retransmitted", metric: "handshakes_retransmitted";
        Retransmits = "HANDSHAKE_RETRANSMITS_TOTAL", Count, "4", "Segments that the kernel sent again by the end of handshakes that were completed."
            => figure: "handshakes.retransmits", metric: "handshake_retransmits";
    }
}

metrics! {
    /// Where the wall time of handshakes goes, and their most expensive parts. A handshake's network, client, worker
    /// and compute time add up to its whole.
    TlsLatency {
        NetworkFull = "WAIT_NETWORK_FULL", Histogram, "HISTFAAA…", "Round trips of a full handshake: the kernel's round-trip time for each flight awaited, at most the time waited."
            => figure: "wait_network_full", title: "full, network", note: "estimated", start: FLIGHT, end: "one round-trip time later, or the answer; summed over a full handshake", metric: "handshake_wait_seconds", label: "network", kind: "full";
        NetworkResumed = "WAIT_NETWORK_RESUMED", Histogram, "HISTFAAA…", "Round trips of a resumed handshake."
            => figure: "wait_network_resumed", title: "resumed, network", note: "estimated", start: FLIGHT, end: "one round-trip time later, or the answer; summed over a resumed handshake", metric: "handshake_wait_seconds", label: "network", kind: "resumed";
        ClientFull = "WAIT_CLIENT_FULL", Histogram, "HISTFAAA…", "Waiting for the client in a full handshake, without the round trips."
            => figure: "wait_client_full", title: "full, client", start: "one round-trip time after each flight", end: "the client's answer; summed over a full handshake", metric: "handshake_wait_seconds", label: "client", kind: "full";
        ClientResumed = "WAIT_CLIENT_RESUMED", Histogram, "HISTFAAA…", "Waiting for the client in a resumed handshake, without the round trips."
            => figure: "wait_client_resumed", title: "resumed, client", start: "one round-trip time after each flight", end: "the client's answer; summed over a resumed handshake", metric: "handshake_wait_seconds", label: "client", kind: "resumed";
        WorkerFull = "WAIT_WORKER_FULL", Histogram, "HISTFAAA…", "Loop delay of a full handshake: what had come waited for the worker, which was busy with other connections."
            => figure: "wait_worker_full", title: "full, loop delay", start: CAME, end: "the worker read it; summed over a full handshake", metric: "handshake_wait_seconds", label: "loop delay", kind: "full";
        WorkerResumed = "WAIT_WORKER_RESUMED", Histogram, "HISTFAAA…", "Loop delay of a resumed handshake."
            => figure: "wait_worker_resumed", title: "resumed, loop delay", start: CAME, end: "the worker read it; summed over a resumed handshake", metric: "handshake_wait_seconds", label: "loop delay", kind: "resumed";
        ServerFull = "WAIT_SERVER_FULL", Histogram, "HISTFAAA…", "The server's time in a full handshake, waiting and computing together; of packets alone."
            => figure: "wait_server_full", title: "full, server", start: "each flight of the client captured", end: "the server's answer, without the round trip between; summed over a full handshake", metric: "handshake_wait_seconds", label: "server", kind: "full";
        ServerResumed = "WAIT_SERVER_RESUMED", Histogram, "HISTFAAA…", "The server's time in a resumed handshake; of packets alone."
            => figure: "wait_server_resumed", title: "resumed, server", start: "each flight of the client captured", end: "the server's answer, without the round trip between; summed over a resumed handshake", metric: "handshake_wait_seconds", label: "server", kind: "resumed";
        KeyExchange = "KEY_EXCHANGE", Histogram, "HISTFAAA…", "CPU-bound time of one handshake's key exchange."
            => figure: "key_exchange", title: "key exchange CPU", start: "each call for the key exchange", end: "its return", metric: "key_exchange_seconds";
        Signature = "SIGNATURE", Histogram, "HISTFAAA…", "CPU-bound time of one handshake's signature."
            => figure: "signature", title: "signature CPU", start: "each signature begun", end: "it is made", metric: "signature_seconds";
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
        FullNoTicket = "USAGE_FULL_NO_TICKET_TOTAL", Count, "3", "Full handshakes without an offer to resume."
            => label: "no ticket";
        FullExpired = "USAGE_FULL_EXPIRED_TOTAL", Count, "1", "Full handshakes whose ticket or session had expired."
            => label: "expired";
        FullUnknownKey = "USAGE_FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes whose ticket was sealed with an unknown key."
            => label: "unknown key";
        FullMismatch = "USAGE_FULL_MISMATCH_TOTAL", Count, "0", "Full handshakes whose ticket is for another name, version, cipher or rule for client certificates."
            => label: "mismatch";
        Passed = "USAGE_PASSED_TOTAL", Count, "0", "Connections whose TLS was passed to an upstream unread; only for server names.";
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
