//! The families of metrics: counters and latencies of proxy, clients and load.
//!
//! Every counter is cumulative in a record, and an increment on its way from a worker. `in` is from the client to the
//! upstream and `out` the opposite, for proxy and load alike, so they can be compared.

use super::counters::metrics;

// Moments at which several latencies start or end.
const HELLO: &str = "worker learns of the ClientHello";
const DONE: &str = "handshake complete";
const CALL: &str = "each call into the TLS library";
const DUE: &str = "request due by the schedule";
const SENT: &str = "first byte of the request sent";
const ANSWERED: &str = "whole answer received";
const CONNECTED: &str = "TCP connected";

metrics! {
    /// Counters of the proxy.
    ProxyCounter {
        Accepted = "CONNECTIONS_ACCEPTED_TOTAL", Count, "1204", "Connections accepted."
            => figure: "connections.accepted", metric: "connections_accepted";
        Closed = "CONNECTIONS_CLOSED_TOTAL", Count, "1194", "Connections closed, for whatever reason."
            => metric: "connections_closed";
        Failed = "CONNECTIONS_FAILED_TOTAL", Count, "3", "Connections that ended in an error before a byte reached an upstream."
            => figure: "connections.failed", metric: "connections_failed";
        HandshakesFull = "HANDSHAKES_FULL_TOTAL", Count, "240", "Full TLS handshakes completed."
            => figure: "handshakes.full";
        HandshakesResumed = "HANDSHAKES_RESUMED_TOTAL", Count, "960", "Resumed TLS handshakes completed."
            => figure: "handshakes.resumed";
        HandshakesFailed = "HANDSHAKES_FAILED_TOTAL", Count, "4", "Connections that ended before their handshake was complete."
            => figure: "handshakes.failed";
        HandshakesRetried = "HANDSHAKES_RETRIED_TOTAL", Count, "0", "Full handshakes that needed a `HelloRetryRequest` (counted as full too)."
            => metric: "handshakes_hello_retry";
        Tls13Full = "TLS13_FULL_TOTAL", Count, "240", "Full handshakes that negotiated TLS 1.3."
            => metric: "handshakes", label: "TLS 1.3", kind: "full";
        Tls13Resumed = "TLS13_RESUMED_TOTAL", Count, "960", "Resumed handshakes that negotiated TLS 1.3."
            => metric: "handshakes", label: "TLS 1.3", kind: "resumed";
        Tls12Full = "TLS12_FULL_TOTAL", Count, "0", "Full handshakes that negotiated TLS 1.2."
            => metric: "handshakes", label: "TLS 1.2", kind: "full";
        Tls12Resumed = "TLS12_RESUMED_TOTAL", Count, "0", "Resumed handshakes that negotiated TLS 1.2."
            => metric: "handshakes", label: "TLS 1.2", kind: "resumed";
        GroupMlkem = "GROUP_X25519MLKEM768_TOTAL", Count, "1200", "Handshakes over the hybrid X25519MLKEM768."
            => metric: "handshakes_by_group", label: "X25519MLKEM768";
        GroupX25519 = "GROUP_X25519_TOTAL", Count, "0", "Handshakes over X25519."
            => metric: "handshakes_by_group", label: "X25519";
        GroupP256 = "GROUP_P256_TOTAL", Count, "0", "Handshakes over secp256r1."
            => metric: "handshakes_by_group", label: "secp256r1";
        GroupP384 = "GROUP_P384_TOTAL", Count, "0", "Handshakes over secp384r1."
            => metric: "handshakes_by_group", label: "secp384r1";
        GroupOther = "GROUP_OTHER_TOTAL", Count, "0", "Handshakes over another group."
            => metric: "handshakes_by_group", label: "other";
        CipherAes256 = "CIPHER_AES256_GCM_TOTAL", Count, "1200", "Handshakes that chose AES-256-GCM."
            => metric: "handshakes_by_cipher", label: "AES-256-GCM";
        CipherAes128 = "CIPHER_AES128_GCM_TOTAL", Count, "0", "Handshakes that chose AES-128-GCM."
            => metric: "handshakes_by_cipher", label: "AES-128-GCM";
        CipherChacha = "CIPHER_CHACHA20_TOTAL", Count, "0", "Handshakes that chose ChaCha20-Poly1305."
            => metric: "handshakes_by_cipher", label: "ChaCha20-Poly1305";
        CipherOther = "CIPHER_OTHER_TOTAL", Count, "0", "Handshakes that chose another cipher."
            => metric: "handshakes_by_cipher", label: "other";
        FailedTimeout = "HANDSHAKES_FAILED_TIMEOUT_TOTAL", Count, "0", "Handshakes not done at their deadline."
            => metric: "handshakes_failed", label: "timeout";
        FailedEof = "HANDSHAKES_FAILED_EOF_TOTAL", Count, "3", "Handshakes during which the client went away."
            => metric: "handshakes_failed", label: "client left";
        FailedAlert = "HANDSHAKES_FAILED_ALERT_TOTAL", Count, "1", "Handshakes that the client ended with an alert."
            => metric: "handshakes_failed", label: "alert";
        FailedNotTls = "HANDSHAKES_FAILED_NOT_TLS_TOTAL", Count, "0", "Handshakes whose first bytes were not TLS."
            => metric: "handshakes_failed", label: "not TLS";
        FailedIncompatible = "HANDSHAKES_FAILED_INCOMPATIBLE_TOTAL", Count, "0", "Handshakes with no version, group or cipher in common."
            => metric: "handshakes_failed", label: "incompatible";
        FailedName = "HANDSHAKES_FAILED_NAME_TOTAL", Count, "0", "Handshakes refused because the client asked for a server name that is not served, or for none."
            => metric: "handshakes_failed", label: "unrecognized name";
        CertificateNotSent = "HANDSHAKES_FAILED_CERTIFICATE_NOT_SENT_TOTAL", Count, "0", "Handshakes refused because the client must have a certificate and sent none."
            => figure: "client_certificates.not_sent", metric: "handshakes_failed", label: "client certificate: none";
        CertificateUnknownCa = "HANDSHAKES_FAILED_CERTIFICATE_UNKNOWN_CA_TOTAL", Count, "0", "Handshakes refused because no trusted authority has issued the client's certificate."
            => figure: "client_certificates.unknown_ca", metric: "handshakes_failed", label: "client certificate: unknown CA";
        CertificateExpired = "HANDSHAKES_FAILED_CERTIFICATE_EXPIRED_TOTAL", Count, "0", "Handshakes refused because the client's certificate has expired."
            => figure: "client_certificates.expired", metric: "handshakes_failed", label: "client certificate: expired";
        CertificateNotYetValid = "HANDSHAKES_FAILED_CERTIFICATE_NOT_YET_VALID_TOTAL", Count, "0", "Handshakes refused because the client's certificate is not valid yet."
            => figure: "client_certificates.not_yet_valid", metric: "handshakes_failed", label: "client certificate: not yet valid";
        CertificateRevoked = "HANDSHAKES_FAILED_CERTIFICATE_REVOKED_TOTAL", Count, "0", "Handshakes refused because the client's certificate is revoked."
            => figure: "client_certificates.revoked", metric: "handshakes_failed", label: "client certificate: revoked";
        CertificateRevocationUnknown = "HANDSHAKES_FAILED_CERTIFICATE_REVOCATION_UNKNOWN_TOTAL", Count, "0", "Handshakes refused because no revocation list in force covers the client's certificate."
            => figure: "client_certificates.revocation_unknown", metric: "handshakes_failed", label: "client certificate: revocation unknown";
        CertificateWrongUsage = "HANDSHAKES_FAILED_CERTIFICATE_WRONG_USAGE_TOTAL", Count, "0", "Handshakes refused because the client's certificate is not for clients."
            => figure: "client_certificates.wrong_usage", metric: "handshakes_failed", label: "client certificate: wrong usage";
        CertificateBadSignature = "HANDSHAKES_FAILED_CERTIFICATE_BAD_SIGNATURE_TOTAL", Count, "0", "Handshakes refused because a signature of the client's certificate, or with its key, is not right."
            => figure: "client_certificates.bad_signature", metric: "handshakes_failed", label: "client certificate: bad signature";
        CertificateChainTooDeep = "HANDSHAKES_FAILED_CERTIFICATE_CHAIN_TOO_DEEP_TOTAL", Count, "0", "Handshakes refused because the client's certificate has too many intermediates."
            => figure: "client_certificates.chain_too_deep", metric: "handshakes_failed", label: "client certificate: chain too deep";
        CertificateOther = "HANDSHAKES_FAILED_CERTIFICATE_OTHER_TOTAL", Count, "0", "Handshakes refused because of the client's certificate, for another reason."
            => figure: "client_certificates.other", metric: "handshakes_failed", label: "client certificate: other";
        FailedOther = "HANDSHAKES_FAILED_OTHER_TOTAL", Count, "0", "Handshakes that failed for another reason."
            => metric: "handshakes_failed", label: "other";
        RefusedAddress = "HANDSHAKES_FAILED_ADDRESS_TOTAL", Count, "0", "Connections reset because their client's address is denied, or not allowed."
            => metric: "handshakes_failed", label: "address";
        RefusedConnections = "HANDSHAKES_FAILED_CONNECTIONS_PER_CLIENT_TOTAL", Count, "0", "Connections refused because their client had as many as it may have."
            => metric: "handshakes_failed", label: "connections per client";
        RefusedConnectionRate = "HANDSHAKES_FAILED_CONNECTION_RATE_TOTAL", Count, "0", "Connections reset because their client opened connections beyond its rate."
            => metric: "handshakes_failed", label: "connection rate";
        RefusedHandshakeRate = "HANDSHAKES_FAILED_HANDSHAKE_RATE_TOTAL", Count, "0", "Connections reset because their client began handshakes beyond its rate."
            => metric: "handshakes_failed", label: "handshake rate";
        RefusedMemory = "HANDSHAKES_FAILED_MEMORY_TOTAL", Count, "0", "Connections reset because hardly any memory was left."
            => metric: "handshakes_failed", label: "memory";
        Passed = "CONNECTIONS_PASSED_TOTAL", Count, "0", "Connections whose TLS was passed to an upstream unread."
            => figure: "connections.passed", metric: "connections_passed";
        BytesIn = "BYTES_IN_TOTAL", Bytes, "183022", "Plaintext from clients to upstreams; of passed connections TLS as it is."
            => figure: "bytes.in", metric: "plaintext_in_bytes";
        BytesOut = "BYTES_OUT_TOTAL", Bytes, "92012230", "Plaintext from upstreams for clients, also what a client left without taking; of passed connections TLS as it is."
            => figure: "bytes.out", metric: "plaintext_out_bytes";
        WireIn = "WIRE_BYTES_IN_TOTAL", Bytes, "402113", "TLS bytes received from clients."
            => metric: "tls_in_bytes";
        WireOut = "WIRE_BYTES_OUT_TOTAL", Bytes, "92401922", "TLS bytes made for clients, also those that a client left without taking."
            => metric: "tls_out_bytes";
        Exchanges = "EXCHANGES_TOTAL", Count, "12000", "Times an upstream began to answer what a client had sent."
            => metric: "exchanges";
        UpstreamConnects = "UPSTREAM_CONNECTS_TOTAL", Count, "1200", "Upstream connections established."
            => metric: "upstream_connects";
        UpstreamConnectsFailed = "UPSTREAM_CONNECTS_FAILED_TOTAL", Count, "0", "Upstream connections that could not be established."
            => metric: "upstream_connects_failed";
        UpstreamBroken = "UPSTREAM_BROKEN_TOTAL", Count, "0", "Upstream connections that broke in mid-stream."
            => metric: "connections_cut", label: "upstream broken";
        ClientBroken = "CLIENT_BROKEN_TOTAL", Count, "0", "Client connections that broke after their handshake."
            => metric: "connections_cut", label: "client broken";
        IdleTimeouts = "IDLE_TIMEOUTS_TOTAL", Count, "0", "Connections closed because nothing moved for the idle timeout."
            => metric: "connections_cut", label: "idle timeout";
        IdleClosed = "IDLE_CLOSED_TOTAL", Count, "0", "Idle connections closed because memory was short."
            => metric: "connections_cut", label: "memory";
        AcceptErrors = "ACCEPT_ERRORS_TOTAL", Count, "0", "Failed attempts to accept, mostly for lack of descriptors."
            => metric: "accept_errors";
        EventsUnrecorded = "EVENTS_UNRECORDED_TOTAL", Count, "0", "Connection errors for which no record had room."
            => metric: "connection_errors_unrecorded";
        SendTimeouts = "SEND_TIMEOUTS_TOTAL", Count, "0", "Connections cut because the client took nothing for the send timeout."
            => metric: "connections_cut", label: "send timeout";
        PendingCuts = "PENDING_CUTS_TOTAL", Count, "0", "Connections cut because all together held too much memory for peers that did not read, and these most or longest."
            => metric: "connections_cut", label: "pending bytes";
        LinesRead = "LOG_LINES_TOTAL", Count, "0", "Lines of an observed log that arrived."
            => figure: "lines", metric: "log_lines";
        LinesUnreadable = "LOG_LINES_UNREADABLE_TOTAL", Count, "0", "Of these, lines that could not be read and count nothing."
            => figure: "lines.unreadable", metric: "log_lines_unreadable";
        LinesOutOfOrder = "LOG_LINES_OUT_OF_ORDER_TOTAL", Count, "0", "Of these, lines that are earlier than one before them by more than a minute, and count in the time of that."
            => figure: "lines.out_of_order", metric: "log_lines_out_of_order";
        LinesLost = "LOG_LINES_LOST_TOTAL", Count, "0", "Lines of an observed log that did not arrive, as far as that shows."
            => figure: "lines.lost", metric: "log_lines_lost";
        Packets = "PACKETS_TOTAL", Count, "0", "Packets of observed connections that were read."
            => figure: "packets", metric: "packets";
        PacketsLost = "PACKETS_LOST_TOTAL", Count, "0", "Packets that the kernel, or whoever made the capture, dropped for lack of room."
            => figure: "packets.lost", metric: "packets_lost";
        Unjudged = "HANDSHAKES_UNJUDGED_TOTAL", Count, "0", "Handshakes of which a part was not captured, so that neither their end nor their kind is known."
            => figure: "handshakes.unjudged", metric: "handshakes_unjudged";
        ClosedByClient = "CLOSED_BY_CLIENT_TOTAL", Count, "0", "Connections that the client closed first, with a FIN; of packets alone."
            => figure: "closed_first.client", metric: "connections_closed_first", label: "client";
        ClosedByServer = "CLOSED_BY_SERVER_TOTAL", Count, "0", "Connections that the server closed first, with a FIN."
            => figure: "closed_first.server", metric: "connections_closed_first", label: "server";
        ResetByClient = "RESET_BY_CLIENT_TOTAL", Count, "0", "Connections that the client reset, and nobody had closed before."
            => figure: "closed_first.client_reset", metric: "connections_closed_first", label: "client-reset";
        ResetByServer = "RESET_BY_SERVER_TOTAL", Count, "0", "Connections that the server reset, and nobody had closed before."
            => figure: "closed_first.server_reset", metric: "connections_closed_first", label: "server-reset";
        ClientWindowsFull = "CLIENT_WINDOWS_FULL_TOTAL", Count, "0", "Times that a client stopped reading: it announced a receive window of 0, while neither end had closed; of packets alone."
            => figure: "windows_full.client", metric: "windows_full", label: "client";
        ServerWindowsFull = "SERVER_WINDOWS_FULL_TOTAL", Count, "0", "Times that a server stopped reading."
            => figure: "windows_full.server", metric: "windows_full", label: "server";
        QuicConnections = "QUIC_CONNECTIONS_TOTAL", Count, "0", "QUIC connections, as far as pairs of addresses and ports tell: UDP of port 443, not judged; of packets alone."
            => figure: "quic.connections", metric: "quic_connections";
        QuicPackets = "QUIC_PACKETS_TOTAL", Count, "0", "Packets of QUIC."
            => figure: "quic.packets", metric: "quic_packets";
        QuicBytes = "QUIC_BYTES_TOTAL", Bytes, "0", "Payload of these packets, of both directions."
            => figure: "quic.bytes", metric: "quic_bytes";
    }
}

metrics! {
    /// Latencies that the proxy measures.
    ProxyLatency {
        HandshakeFull = "HANDSHAKE_FULL", Histogram, "HISTFAAA…", "Full handshake: the worker learns of the `ClientHello`, to handshake done, round trips included."
            => figure: "handshake_full", title: "full handshake", alias: "full", start: HELLO, end: DONE, metric: "handshake_seconds", kind: "full";
        HandshakeResumed = "HANDSHAKE_RESUMED", Histogram, "HISTFAAA…", "Resumed handshake: the worker learns of the `ClientHello`, to handshake done."
            => figure: "handshake_resumed", title: "resumed handshake", alias: "resumed", start: HELLO, end: DONE, metric: "handshake_seconds", kind: "resumed";
        ComputeFull = "COMPUTE_FULL", Histogram, "HISTFAAA…", "Time spent inside the TLS library during a full handshake."
            => figure: "compute_full", title: "full handshake CPU", start: CALL, end: "its return; summed over a full handshake", metric: "handshake_compute_seconds", kind: "full";
        ComputeResumed = "COMPUTE_RESUMED", Histogram, "HISTFAAA…", "Time spent inside the TLS library during a resumed handshake."
            => figure: "compute_resumed", title: "resumed handshake CPU", start: CALL, end: "its return; summed over a resumed handshake", metric: "handshake_compute_seconds", kind: "resumed";
        Connect = "CONNECT", Histogram, "HISTFAAA…", "Connecting to the upstream."
            => figure: "connect", title: "connect", start: "connecting to the upstream begun", end: "connected to the upstream", metric: "upstream_connect_seconds";
        Exchange = "EXCHANGE", Histogram, "HISTFAAA…", "Last byte a client sent before the upstream answered to the first byte of the answer; exact without pipelining."
            => figure: "exchange", title: "exchange", start: "last byte from the client before the upstream answered", end: "first byte of the upstream's answer", metric: "exchange_seconds";
        Lifetime = "LIFETIME", Histogram, "HISTFAAA…", "Accept to close."
            => figure: "lifetime", title: "lifetime", start: "connection accepted", end: "connection closed", metric: "connection_seconds";
    }
}

metrics! {
    /// Counters of the proxy for each client.
    ClientCounter {
        Connections = "CLIENT_CONNECTIONS_TOTAL", Count, "80", "Connections accepted from this client."
            => figure: "connections", metric: "client_connections";
        BytesIn = "CLIENT_BYTES_IN_TOTAL", Bytes, "12034", "Plaintext from this client to upstreams."
            => figure: "bytes_in", metric: "client_plaintext_in_bytes";
        BytesOut = "CLIENT_BYTES_OUT_TOTAL", Bytes, "6130021", "Plaintext from upstreams to this client."
            => figure: "bytes_out", metric: "client_plaintext_out_bytes";
        HandshakesFull = "CLIENT_HANDSHAKES_FULL_TOTAL", Count, "16", "Full handshakes completed with this client."
            => figure: "handshakes_full", metric: "client_handshakes", kind: "full";
        HandshakesResumed = "CLIENT_HANDSHAKES_RESUMED_TOTAL", Count, "64", "Resumed handshakes completed with this client."
            => figure: "handshakes_resumed", metric: "client_handshakes", kind: "resumed";
        Exchanges = "CLIENT_EXCHANGES_TOTAL", Count, "800", "Times an upstream began to answer this client."
            => figure: "exchanges", title: "exchanges", metric: "client_exchanges", column: "exchanges";
        FullNoTicket = "CLIENT_FULL_NO_TICKET_TOTAL", Count, "3", "Full handshakes of this client without an offer to resume, but for its first."
            => figure: "full_by_reason.no_ticket", metric: "client_handshakes_full", label: "no ticket";
        FullExpired = "CLIENT_FULL_EXPIRED_TOTAL", Count, "1", "Full handshakes of this client whose ticket or session had expired."
            => figure: "full_by_reason.expired", metric: "client_handshakes_full", label: "expired";
        FullUnknownKey = "CLIENT_FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes of this client whose ticket was sealed with an unknown key."
            => figure: "full_by_reason.unknown_key", metric: "client_handshakes_full", label: "unknown key";
        FullMismatch = "CLIENT_FULL_MISMATCH_TOTAL", Count, "0", "Full handshakes of this client whose ticket is for another name, version, cipher or rule for client certificates."
            => figure: "full_by_reason.mismatch", metric: "client_handshakes_full", label: "mismatch";
        Tls12Only = "CLIENT_TLS12_ONLY_TOTAL", Count, "0", "Handshakes completed in which this client offered no TLS 1.3."
            => figure: "tls12_only", title: "1.2 only", metric: "client_handshakes_tls12_only", column: "tls12-only";
        Retransmits = "CLIENT_RETRANSMITS_TOTAL", Count, "0", "Segments that the kernel sent to this client again, its SYN-ACKs among them, by the end of handshakes that completed."
            => figure: "retransmits", title: "resent", metric: "client_handshake_retransmits", column: "resent";
        Errors = "CLIENT_ERRORS_TOTAL", Count, "0", "Failed handshakes, connections without an upstream, broken connections and timeouts of this client, and its requests that the proxy refused or could not have answered (HTTP mode)."
            => figure: "errors", title: "failures", metric: "client_errors", column: "failures";
    }
}

metrics! {
    /// Counters of the load.
    LoadCounter {
        Scheduled = "LOAD_SCHEDULED_TOTAL", Count, "10000", "Requests that fell due (open loop) or were begun (closed loop)."
            => figure: "requests.scheduled", metric: "load_requests_scheduled";
        Sent = "LOAD_SENT_TOTAL", Count, "10000", "Requests whose first byte was handed to the connection."
            => figure: "requests.sent", metric: "load_requests_sent";
        Ok = "LOAD_OK_TOTAL", Count, "10000", "Requests answered whole, with a status below 400."
            => figure: "requests.ok", metric: "load_requests_ok";
        Failed = "LOAD_FAILED_TOTAL", Count, "0", "Requests that failed; each also counts under one class."
            => figure: "requests.failed";
        Late = "LOAD_LATE_TOTAL", Count, "0", "Requests that the generator started more than 1 ms after they were due although a connection was free, or because it stood still."
            => figure: "requests.late", metric: "load_requests_late";
        NeverSent = "LOAD_NEVER_SENT_TOTAL", Count, "0", "Requests that fell due and had not been sent when the load ended."
            => figure: "requests.never_sent", metric: "load_requests_never_sent";
        Throttled = "LOAD_THROTTLED_TOTAL", Count, "0", "Requests never sent because connections waited to retry after failed attempts, or a retry was sent in their place; also counted as never sent."
            => figure: "requests.throttled", metric: "load_requests_throttled";
        Unfinished = "LOAD_UNFINISHED_TOTAL", Count, "0", "Requests that were sent and had no whole answer when the load ended."
            => figure: "requests.unfinished", metric: "load_requests_unfinished";
        Warmup = "LOAD_WARMUP_TOTAL", Count, "0", "Requests of the warm-up: counted as scheduled too, and nowhere else; not timed."
            => figure: "requests.warmup", metric: "load_requests_warmup";
        Reused = "LOAD_REUSED_TOTAL", Count, "9000", "Requests sent over a connection that had carried one before."
            => figure: "requests.reused", metric: "load_requests_reused";
        Retried = "LOAD_RETRIED_TOTAL", Count, "0", "Requests sent again because the server had closed a kept-alive connection."
            => figure: "requests.retried", metric: "load_requests_retried";
        FailedConnect = "LOAD_FAILED_CONNECT_TOTAL", Count, "0", "Requests that failed because no connection could be established."
            => figure: "errors.connect", title: "no connection", metric: "load_requests_failed", label: "connect";
        FailedTls = "LOAD_FAILED_TLS_TOTAL", Count, "0", "Requests that failed in TLS."
            => figure: "errors.tls", title: "TLS", metric: "load_requests_failed", label: "tls";
        FailedTimeout = "LOAD_FAILED_TIMEOUT_TOTAL", Count, "0", "Requests without a whole answer at their deadline."
            => figure: "errors.timeout", title: "timeout", metric: "load_requests_failed", label: "timeout";
        FailedReset = "LOAD_FAILED_RESET_TOTAL", Count, "0", "Requests whose connection broke or closed before an answer began."
            => figure: "errors.reset", title: "reset", metric: "load_requests_failed", label: "reset";
        FailedShort = "LOAD_FAILED_SHORT_TOTAL", Count, "0", "Requests whose connection ended in the middle of the answer."
            => figure: "errors.short", title: "cut short", metric: "load_requests_failed", label: "short";
        FailedBody = "LOAD_FAILED_BODY_TOTAL", Count, "0", "Requests whose answer had another body than expected."
            => figure: "errors.body", title: "wrong body", metric: "load_requests_failed", label: "body";
        FailedProtocol = "LOAD_FAILED_PROTOCOL_TOTAL", Count, "0", "Requests whose answer violated the protocol."
            => figure: "errors.protocol", title: "not HTTP", metric: "load_requests_failed", label: "protocol";
        FailedStatus = "LOAD_FAILED_STATUS_TOTAL", Count, "0", "Requests answered with a status of 400 or above."
            => figure: "errors.status", title: "status 4xx 5xx", metric: "load_requests_failed", label: "status";
        Status2xx = "LOAD_STATUS_2XX_TOTAL", Count, "10000", "Answers with a status of 200 to 299."
            => metric: "load_responses", label: "2xx";
        Status3xx = "LOAD_STATUS_3XX_TOTAL", Count, "0", "Answers with a status of 300 to 399."
            => metric: "load_responses", label: "3xx";
        Status4xx = "LOAD_STATUS_4XX_TOTAL", Count, "0", "Answers with a status of 400 to 499."
            => metric: "load_responses", label: "4xx";
        Status5xx = "LOAD_STATUS_5XX_TOTAL", Count, "0", "Answers with a status of 500 or above."
            => metric: "load_responses", label: "5xx";
        Opened = "LOAD_CONNECTIONS_OPENED_TOTAL", Count, "1000", "Connections that were established."
            => figure: "connections", metric: "load_connections_opened";
        Closed = "LOAD_CONNECTIONS_CLOSED_TOTAL", Count, "968", "Established connections that were closed."
            => metric: "load_connections_closed";
        HandshakesFull = "LOAD_HANDSHAKES_FULL_TOTAL", Count, "200", "Full handshakes completed, as the client saw them."
            => figure: "handshakes.full", metric: "load_handshakes", kind: "full";
        HandshakesResumed = "LOAD_HANDSHAKES_RESUMED_TOTAL", Count, "800", "Resumed handshakes completed, as the client saw them."
            => figure: "handshakes.resumed", metric: "load_handshakes", kind: "resumed";
        HandshakesFailed = "LOAD_HANDSHAKES_FAILED_TOTAL", Count, "0", "Handshakes that failed, as the client saw them."
            => figure: "handshakes.failed", metric: "load_handshakes_failed";
        ResumptionsWanted = "LOAD_RESUMPTIONS_WANTED_TOTAL", Count, "800", "Connections chosen to resume, by the resumption ratio."
            => figure: "resumptions.wanted", metric: "load_resumptions_wanted";
        ResumptionsOffered = "LOAD_RESUMPTIONS_OFFERED_TOTAL", Count, "800", "Connections that offered a session to resume; fewer than wanted if no ticket was available."
            => figure: "resumptions.offered", metric: "load_resumptions_offered";
        EarlyWanted = "LOAD_EARLY_DATA_WANTED_TOTAL", Count, "0", "Connections chosen to resume and to send their first request as early data (0-RTT)."
            => figure: "early_data.wanted", metric: "load_early_data_wanted";
        EarlyOffered = "LOAD_EARLY_DATA_OFFERED_TOTAL", Count, "0", "Connections that sent their first request as early data; fewer than wanted if no available ticket allowed that much early data."
            => figure: "early_data.offered", metric: "load_early_data_offered";
        EarlyAccepted = "LOAD_EARLY_DATA_ACCEPTED_TOTAL", Count, "0", "Handshakes in which the server accepted the early data; also counted as resumed."
            => figure: "early_data.accepted", metric: "load_early_data_accepted";
        BytesIn = "LOAD_BYTES_IN_TOTAL", Bytes, "183022", "Plaintext sent to the server."
            => figure: "bytes.in", metric: "load_sent_bytes";
        BytesOut = "LOAD_BYTES_OUT_TOTAL", Bytes, "92012230", "Plaintext received from the server."
            => figure: "bytes.out", metric: "load_received_bytes";
        BodyIn = "LOAD_BODY_BYTES_IN_TOTAL", Bytes, "0", "Bodies sent to the server."
            => figure: "body.in", metric: "load_body_sent_bytes";
        BodyOut = "LOAD_BODY_BYTES_OUT_TOTAL", Bytes, "90000000", "Bodies received from the server."
            => figure: "body.out", metric: "load_body_received_bytes";
        HeadOut = "LOAD_HEAD_BYTES_OUT_TOTAL", Bytes, "2012230", "Header fields of answers as received, compressed if the protocol compresses them."
            => figure: "head.out", metric: "load_head_received_bytes";
        HeadPlain = "LOAD_HEAD_PLAIN_BYTES_TOTAL", Bytes, "2012230", "The same header fields without compression."
            => figure: "head.plain", metric: "load_head_plain_bytes";
    }
}

metrics! {
    /// Latencies that the load measures.
    LoadLatency {
        Response = "LOAD_RESPONSE", Histogram, "HISTFAAA…", "Intended send to whole answer; corrected for coordinated omission; open loop only."
            => figure: "response", title: "response", note: "CO-corrected", start: DUE, end: ANSWERED, metric: "load_response_seconds";
        Service = "LOAD_SERVICE", Histogram, "HISTFAAA…", "Actual send to whole answer; not corrected for coordinated omission."
            => figure: "service", title: "service", note: "uncorrected", start: SENT, end: ANSWERED, metric: "load_service_seconds";
        Lag = "LOAD_LAG", Histogram, "HISTFAAA…", "Intended send to actual send; open loop only."
            => figure: "lag", title: "send lag", start: DUE, end: SENT, metric: "load_lag_seconds";
        Connect = "LOAD_CONNECT", Histogram, "HISTFAAA…", "TCP: begin of connecting to connected."
            => figure: "connect", title: "connect", start: "connecting begun", end: CONNECTED, metric: "load_connect_seconds";
        HandshakeFull = "LOAD_HANDSHAKE_FULL", Histogram, "HISTFAAA…", "TLS: connected to full handshake done, as the client saw it."
            => figure: "handshake_full", title: "full handshake", alias: "full", start: CONNECTED, end: "full handshake complete", metric: "load_handshake_full_seconds";
        HandshakeResumed = "LOAD_HANDSHAKE_RESUMED", Histogram, "HISTFAAA…", "TLS: connected to resumed handshake done, as the client saw it; without early data that was accepted."
            => figure: "handshake_resumed", title: "resumed handshake", alias: "resumed", start: CONNECTED, end: "resumed handshake complete, without early data that was accepted", metric: "load_handshake_resumed_seconds";
        HandshakeEarly = "LOAD_HANDSHAKE_EARLY", Histogram, "HISTFAAA…", "TLS: connected to resumed handshake done, of those whose early data was accepted."
            => figure: "handshake_early", title: "handshake with early data", start: CONNECTED, end: "resumed handshake complete whose early data was accepted", metric: "load_handshake_early_seconds";
        FirstByte = "LOAD_FIRST_BYTE", Histogram, "HISTFAAA…", "Actual send to the first byte of the answer."
            => figure: "first_byte", title: "first byte", start: SENT, end: "first byte of the answer received", metric: "load_first_byte_seconds";
        Total = "LOAD_TOTAL", Histogram, "HISTFAAA…", "A connection taken, or begun, for a request to whole answer: connect and handshake included."
            => figure: "total", title: "total", start: "connection taken or opened for the request", end: ANSWERED, metric: "load_total_seconds";
        TotalPlain = "LOAD_TOTAL_PLAIN", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection without TLS."
            => figure: "total_plain", title: "total, plain", start: "new connection without TLS begun", end: ANSWERED;
        TotalFull = "LOAD_TOTAL_FULL", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection with a full handshake."
            => figure: "total_full", title: "total, full handshake", start: "new connection with a full handshake begun", end: ANSWERED;
        TotalResumed = "LOAD_TOTAL_RESUMED", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection with a resumed handshake."
            => figure: "total_resumed", title: "total, resumed handshake", start: "new connection with a resumed handshake begun", end: ANSWERED;
        TotalEarly = "LOAD_TOTAL_EARLY", Histogram, "HISTFAAA…", "The total of requests that began a new connection as early data which was accepted."
            => figure: "total_early", title: "total, early data", start: "new connection with accepted early data begun", end: ANSWERED;
        TotalKept = "LOAD_TOTAL_KEPT", Histogram, "HISTFAAA…", "The total of requests over a connection that stood already."
            => figure: "total_kept", title: "total, kept alive", start: "kept-alive connection taken", end: ANSWERED;
    }
}

impl ProxyCounter {
    /// The counter of a group, by its IANA name.
    pub fn of_group(name: &str) -> Self {
        match name {
            "X25519MLKEM768" => Self::GroupMlkem,
            "X25519" => Self::GroupX25519,
            "secp256r1" => Self::GroupP256,
            "secp384r1" => Self::GroupP384,
            _ => Self::GroupOther,
        }
    }

    /// The counter of a cipher suite, by IANA's name or OpenSSL's.
    pub fn of_cipher(name: &str) -> Self {
        let has = |parts: [&str; 2]| parts.iter().any(|part| name.contains(part));
        if has(["AES_128_GCM", "AES128-GCM"]) {
            Self::CipherAes128
        } else if has(["AES_256_GCM", "AES256-GCM"]) {
            Self::CipherAes256
        } else if has(["CHACHA20_POLY1305", "CHACHA20-POLY1305"]) {
            Self::CipherChacha
        } else {
            Self::CipherOther
        }
    }
}
