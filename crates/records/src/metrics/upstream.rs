//! The family of counters and latencies of each upstream.

use crate::metrics::counters::metrics;

metrics! {
    /// The proxy's counters for each upstream.
    UpstreamCounter {
        Connections = "UPSTREAM_CONNECTIONS_TOTAL", Count, "400", "Connections to this upstream that were established."
            => figure: "connections", metric: "upstream_connections";
        Refused = "UPSTREAM_REFUSED_TOTAL", Count, "12", "Attempts to connect to this upstream that were refused, or found no socket at its path."
            => figure: "failed.refused", metric: "upstream_attempts_failed", label: "refused";
        TimedOut = "UPSTREAM_TIMED_OUT_TOTAL", Count, "0", "Attempts to connect to this upstream that took too long."
            => figure: "failed.timed_out", metric: "upstream_attempts_failed", label: "timed out";
        FailedCertificate = "UPSTREAM_FAILED_CERTIFICATE_TOTAL", Count, "0", "Attempts to connect to this upstream whose certificate was not accepted."
            => figure: "failed.certificate", metric: "upstream_attempts_failed", label: "certificate";
        FailedAlert = "UPSTREAM_FAILED_ALERT_TOTAL", Count, "0", "Attempts to connect that this upstream ended with a TLS alert."
            => figure: "failed.alert", metric: "upstream_attempts_failed", label: "alert";
        FailedTls = "UPSTREAM_FAILED_TLS_TOTAL", Count, "0", "Attempts to connect to this upstream whose TLS handshake failed for another reason, such as an upstream that does not speak TLS."
            => figure: "failed.tls", metric: "upstream_attempts_failed", label: "tls";
        FailedOther = "UPSTREAM_FAILED_OTHER_TOTAL", Count, "0", "Attempts to connect to this upstream that failed for another reason."
            => figure: "failed.other", metric: "upstream_attempts_failed", label: "other";
        Checks = "UPSTREAM_CHECKS_TOTAL", Count, "60", "Active checks of this upstream, one for each of its addresses."
            => figure: "checks", metric: "upstream_checks";
        ChecksFailed = "UPSTREAM_CHECKS_FAILED_TOTAL", Count, "3", "Of the active checks, those that failed."
            => figure: "checks.failed", metric: "upstream_checks_failed";
        Broken = "UPSTREAM_BREAKS_TOTAL", Count, "1", "Connections that this upstream broke; in HTTP mode, requests that it did not answer, or not completely, or with a malformed response."
            => figure: "broken", metric: "upstream_connections_broken";
        Late = "UPSTREAM_LATE_TOTAL", Count, "0", "Requests that this upstream did not begin to answer in time; in HTTP mode only."
            => figure: "late", metric: "upstream_requests_late";
        Exchanges = "UPSTREAM_EXCHANGES_TOTAL", Count, "9000", "Times this upstream began to answer what a client had sent; in HTTP mode, requests sent to it that are over."
            => figure: "exchanges", metric: "upstream_exchanges";
        Status5xx = "UPSTREAM_STATUS_5XX_TOTAL", Count, "2", "Requests that this upstream answered with 500 or above; in HTTP mode only."
            => figure: "status.5xx", metric: "upstream_responses_5xx";
        TlsFull = "UPSTREAM_TLS_FULL_TOTAL", Count, "20", "Full TLS handshakes with this upstream: the proxy's own, or those of clients that are passed to it."
            => figure: "tls.full", metric: "upstream_handshakes", kind: "full";
        TlsResumed = "UPSTREAM_TLS_RESUMED_TOTAL", Count, "380", "Resumed TLS handshakes with this upstream: the proxy's own, or those of clients that are passed to it."
            => figure: "tls.resumed", metric: "upstream_handshakes", kind: "resumed";
        TlsRefused = "UPSTREAM_TLS_NOT_RESUMED_TOTAL", Count, "2", "Of the full handshakes, those for which a session was at hand, and this upstream did not resume it, or it had expired. For the others the worker had none left."
            => figure: "tls.not_resumed", metric: "upstream_handshakes_not_resumed";
        Tls12 = "UPSTREAM_TLS12_TOTAL", Count, "0", "TLS handshakes with this upstream that negotiated TLS 1.2, or of passed clients an older version; the others negotiated TLS 1.3."
            => figure: "tls.tls12", metric: "upstream_handshakes_tls12";
        TlsFailed = "UPSTREAM_TLS_FAILED_TOTAL", Count, "0", "TLS handshakes of passed clients with this upstream that failed or did not end."
            => figure: "tls.failed", metric: "upstream_handshakes_failed";
        TlsUnjudged = "UPSTREAM_TLS_UNJUDGED_TOTAL", Count, "0", "TLS handshakes of passed clients with this upstream that took too many bytes to be read to their end."
            => figure: "tls.unjudged", metric: "upstream_handshakes_unjudged";
        BytesIn = "UPSTREAM_BYTES_IN_TOTAL", Bytes, "40210", "Plaintext from clients to this upstream, counted when its connection has ended; in HTTP mode, request bodies, counted when the request is over."
            => figure: "bytes.in", metric: "upstream_in_bytes";
        BytesOut = "UPSTREAM_BYTES_OUT_TOTAL", Bytes, "71902331", "Plaintext from this upstream to clients, counted when its connection has ended; in HTTP mode, response bodies, counted when the request is over."
            => figure: "bytes.out", metric: "upstream_out_bytes";
    }
}

metrics! {
    /// The proxy's latencies for each upstream.
    UpstreamLatency {
        Connect = "UPSTREAM_CONNECT", Histogram, "HISTFAAA…", "Connecting to this upstream begun to connected, without TLS, of attempts that succeeded."
            => figure: "connect", metric: "upstream_connecting_seconds";
        TlsFull = "UPSTREAM_TLS_FULL", Histogram, "HISTFAAA…", "Full TLS handshake with this upstream: connected to handshake done, round trips included. Of passed clients: first byte of the `ClientHello` to the last flight."
            => figure: "tls_full", metric: "upstream_handshake_seconds", kind: "full";
        TlsResumed = "UPSTREAM_TLS_RESUMED", Histogram, "HISTFAAA…", "Resumed TLS handshake with this upstream: connected to handshake done. Of passed clients as for a full one."
            => figure: "tls_resumed", metric: "upstream_handshake_seconds", kind: "resumed";
        TlsCompute = "UPSTREAM_TLS_COMPUTE", Histogram, "HISTFAAA…", "Time spent inside the TLS library during a handshake with this upstream, full or resumed."
            => figure: "tls_compute", metric: "upstream_handshake_compute_seconds";
        FirstByte = "UPSTREAM_FIRST_BYTE", Histogram, "HISTFAAA…", "Last byte a client sent before this upstream answered to the first byte of the answer; in HTTP mode, request head sent (HTTP/2: queued on its connection) to response head received."
            => figure: "first_byte", metric: "upstream_first_byte_seconds";
    }
}

impl UpstreamCounter {
    /// The attempts to connect that failed, by cause.
    pub const FAILED: [Self; 6] = [
        Self::Refused,
        Self::TimedOut,
        Self::FailedCertificate,
        Self::FailedAlert,
        Self::FailedTls,
        Self::FailedOther,
    ];
}
