//! The families of metrics: counters and latencies of proxy, load and host.
//!
//! Every counter is cumulative in a record, and an increment on its way from a worker. `in` is from the client to the
//! upstream and `out` the opposite, for proxy and load alike, so they can be compared.

use super::counters::metrics;

metrics! {
    /// Counters of the proxy.
    ProxyCounter {
        Accepted = "CONNECTIONS_ACCEPTED_TOTAL", Count, "1204", "Connections accepted.";
        Closed = "CONNECTIONS_CLOSED_TOTAL", Count, "1194", "Connections closed, for whatever reason.";
        Failed = "CONNECTIONS_FAILED_TOTAL", Count, "3", "Connections closed before a byte reached an upstream.";
        HandshakesFull = "HANDSHAKES_FULL_TOTAL", Count, "240", "Full TLS handshakes completed.";
        HandshakesResumed = "HANDSHAKES_RESUMED_TOTAL", Count, "960", "Resumed TLS handshakes completed.";
        HandshakesFailed = "HANDSHAKES_FAILED_TOTAL", Count, "4", "Connections that ended before their handshake was complete.";
        HandshakesRetried = "HANDSHAKES_RETRIED_TOTAL", Count, "0", "Full handshakes that needed a `HelloRetryRequest` (counted as full too).";
        Tls13Full = "TLS13_FULL_TOTAL", Count, "240", "Full handshakes that negotiated TLS 1.3.";
        Tls13Resumed = "TLS13_RESUMED_TOTAL", Count, "960", "Resumed handshakes that negotiated TLS 1.3.";
        Tls12Full = "TLS12_FULL_TOTAL", Count, "0", "Full handshakes that negotiated TLS 1.2.";
        Tls12Resumed = "TLS12_RESUMED_TOTAL", Count, "0", "Resumed handshakes that negotiated TLS 1.2.";
        GroupX25519 = "GROUP_X25519_TOTAL", Count, "0", "Handshakes over X25519.";
        GroupP256 = "GROUP_P256_TOTAL", Count, "0", "Handshakes over secp256r1.";
        GroupP384 = "GROUP_P384_TOTAL", Count, "0", "Handshakes over secp384r1.";
        GroupMlkem = "GROUP_X25519MLKEM768_TOTAL", Count, "1200", "Handshakes over the hybrid X25519MLKEM768.";
        GroupOther = "GROUP_OTHER_TOTAL", Count, "0", "Handshakes over another group.";
        CipherAes128 = "CIPHER_AES128_GCM_TOTAL", Count, "0", "Handshakes that chose AES-128-GCM.";
        CipherAes256 = "CIPHER_AES256_GCM_TOTAL", Count, "1200", "Handshakes that chose AES-256-GCM.";
        CipherChacha = "CIPHER_CHACHA20_TOTAL", Count, "0", "Handshakes that chose ChaCha20-Poly1305.";
        CipherOther = "CIPHER_OTHER_TOTAL", Count, "0", "Handshakes that chose another cipher.";
        FailedTimeout = "HANDSHAKES_FAILED_TIMEOUT_TOTAL", Count, "0", "Handshakes not done at their deadline.";
        FailedEof = "HANDSHAKES_FAILED_EOF_TOTAL", Count, "3", "Handshakes during which the client went away.";
        FailedAlert = "HANDSHAKES_FAILED_ALERT_TOTAL", Count, "1", "Handshakes that the client ended with an alert.";
        FailedNotTls = "HANDSHAKES_FAILED_NOT_TLS_TOTAL", Count, "0", "Handshakes whose first bytes were not TLS.";
        FailedIncompatible = "HANDSHAKES_FAILED_INCOMPATIBLE_TOTAL", Count, "0", "Handshakes with no version, group or cipher in common.";
        FailedOther = "HANDSHAKES_FAILED_OTHER_TOTAL", Count, "0", "Handshakes that failed for another reason.";
        BytesIn = "BYTES_IN_TOTAL", Bytes, "183022", "Plaintext from clients to upstreams.";
        BytesOut = "BYTES_OUT_TOTAL", Bytes, "92012230", "Plaintext from upstreams to clients.";
        WireIn = "WIRE_BYTES_IN_TOTAL", Bytes, "402113", "TLS bytes received from clients.";
        WireOut = "WIRE_BYTES_OUT_TOTAL", Bytes, "92401922", "TLS bytes sent to clients.";
        Exchanges = "EXCHANGES_TOTAL", Count, "12000", "Times an upstream began to answer what a client had sent.";
        UpstreamConnects = "UPSTREAM_CONNECTS_TOTAL", Count, "1200", "Upstream connections established.";
        UpstreamConnectsFailed = "UPSTREAM_CONNECTS_FAILED_TOTAL", Count, "0", "Upstream connections that could not be established.";
        UpstreamBroken = "UPSTREAM_BROKEN_TOTAL", Count, "0", "Upstream connections that broke in mid-stream.";
        ClientBroken = "CLIENT_BROKEN_TOTAL", Count, "0", "Client connections that broke after their handshake.";
        IdleTimeouts = "IDLE_TIMEOUTS_TOTAL", Count, "0", "Connections closed because nothing moved for the idle timeout.";
        AcceptErrors = "ACCEPT_ERRORS_TOTAL", Count, "0", "Failed attempts to accept, mostly for lack of descriptors.";
        EventsUnrecorded = "EVENTS_UNRECORDED_TOTAL", Count, "0", "Connection errors for which no record had room.";
        SendTimeouts = "SEND_TIMEOUTS_TOTAL", Count, "0", "Connections cut because the client took nothing for the send timeout.";
        PendingCuts = "PENDING_CUTS_TOTAL", Count, "0", "Connections cut because all together held too much memory for peers that did not read, and these most or longest.";
        LinesRead = "LOG_LINES_TOTAL", Count, "0", "Lines of an observed log that arrived.";
        LinesUnreadable = "LOG_LINES_UNREADABLE_TOTAL", Count, "0", "Of these, lines that could not be read and count nothing.";
        LinesOutOfOrder = "LOG_LINES_OUT_OF_ORDER_TOTAL", Count, "0", "Of these, lines that are earlier than one before them by more than a minute, and count in the time of that.";
        LinesLost = "LOG_LINES_LOST_TOTAL", Count, "0", "Lines of an observed log that did not arrive, as far as that shows.";
    }
}

metrics! {
    /// Latencies that the proxy measures.
    ProxyLatency {
        HandshakeFull = "HANDSHAKE_FULL", Histogram, "HISTFAAA…", "Full handshake: the worker learns of the `ClientHello`, to handshake done, round trips included.";
        HandshakeResumed = "HANDSHAKE_RESUMED", Histogram, "HISTFAAA…", "Resumed handshake: the worker learns of the `ClientHello`, to handshake done.";
        ComputeFull = "COMPUTE_FULL", Histogram, "HISTFAAA…", "Time spent inside the TLS library during a full handshake.";
        ComputeResumed = "COMPUTE_RESUMED", Histogram, "HISTFAAA…", "Time spent inside the TLS library during a resumed handshake.";
        Connect = "CONNECT", Histogram, "HISTFAAA…", "Connecting to the upstream.";
        Exchange = "EXCHANGE", Histogram, "HISTFAAA…", "Last byte a client sent before the upstream answered to the first byte of the answer; exact without pipelining.";
        Lifetime = "LIFETIME", Histogram, "HISTFAAA…", "Accept to close.";
    }
}

metrics! {
    /// Counters of the proxy for each client.
    ClientCounter {
        Connections = "CLIENT_CONNECTIONS_TOTAL", Count, "80", "Connections accepted from this client.";
        BytesIn = "CLIENT_BYTES_IN_TOTAL", Bytes, "12034", "Plaintext from this client to upstreams.";
        BytesOut = "CLIENT_BYTES_OUT_TOTAL", Bytes, "6130021", "Plaintext from upstreams to this client.";
        HandshakesFull = "CLIENT_HANDSHAKES_FULL_TOTAL", Count, "16", "Full handshakes completed with this client.";
        HandshakesResumed = "CLIENT_HANDSHAKES_RESUMED_TOTAL", Count, "64", "Resumed handshakes completed with this client.";
        Exchanges = "CLIENT_EXCHANGES_TOTAL", Count, "800", "Times an upstream began to answer this client.";
        FullNoTicket = "CLIENT_FULL_NO_TICKET_TOTAL", Count, "3", "Full handshakes of this client without an offer to resume, but for its first.";
        FullExpired = "CLIENT_FULL_EXPIRED_TOTAL", Count, "1", "Full handshakes of this client whose ticket or session had expired.";
        FullUnknownKey = "CLIENT_FULL_UNKNOWN_KEY_TOTAL", Count, "0", "Full handshakes of this client whose ticket was sealed with an unknown key.";
        FullMismatch = "CLIENT_FULL_MISMATCH_TOTAL", Count, "0", "Full handshakes of this client whose ticket is for another name, version, cipher or rule for client certificates.";
        Tls12Only = "CLIENT_TLS12_ONLY_TOTAL", Count, "0", "Handshakes completed in which this client offered no TLS 1.3.";
        Retransmits = "CLIENT_RETRANSMITS_TOTAL", Count, "0", "Segments that the kernel sent to this client again, its SYN-ACKs among them, by the end of handshakes that completed.";
        Errors = "CLIENT_ERRORS_TOTAL", Count, "0", "Failed handshakes, connections without an upstream, broken connections and timeouts of this client, and its requests that the proxy refused or could not have answered (HTTP mode).";
    }
}

metrics! {
    /// Counters of the load.
    LoadCounter {
        Scheduled = "LOAD_SCHEDULED_TOTAL", Count, "10000", "Requests that fell due (open loop) or were begun (closed loop).";
        Sent = "LOAD_SENT_TOTAL", Count, "10000", "Requests whose first byte was handed to the connection.";
        Ok = "LOAD_OK_TOTAL", Count, "10000", "Requests answered whole, with a status below 400.";
        Failed = "LOAD_FAILED_TOTAL", Count, "0", "Requests that failed; each also counts under one class.";
        Late = "LOAD_LATE_TOTAL", Count, "0", "Requests that the generator started more than 1 ms after they were due although a connection was free, or because it stood still.";
        NeverSent = "LOAD_NEVER_SENT_TOTAL", Count, "0", "Requests that fell due and had not been sent when the load ended.";
        Throttled = "LOAD_THROTTLED_TOTAL", Count, "0", "Requests never sent because connections waited to retry after failed attempts; also counted as never sent.";
        Unfinished = "LOAD_UNFINISHED_TOTAL", Count, "0", "Requests that were sent and had no whole answer when the load ended.";
        Warmup = "LOAD_WARMUP_TOTAL", Count, "0", "Requests of the warm-up: counted as scheduled too, and nowhere else; not timed.";
        Reused = "LOAD_REUSED_TOTAL", Count, "9000", "Requests sent over a connection that had carried one before.";
        Retried = "LOAD_RETRIED_TOTAL", Count, "0", "Requests sent again because the server had closed a kept-alive connection.";
        FailedConnect = "LOAD_FAILED_CONNECT_TOTAL", Count, "0", "Requests that failed because no connection could be established.";
        FailedTls = "LOAD_FAILED_TLS_TOTAL", Count, "0", "Requests that failed in TLS.";
        FailedTimeout = "LOAD_FAILED_TIMEOUT_TOTAL", Count, "0", "Requests without a whole answer at their deadline.";
        FailedReset = "LOAD_FAILED_RESET_TOTAL", Count, "0", "Requests whose connection broke or closed before an answer began.";
        FailedShort = "LOAD_FAILED_SHORT_TOTAL", Count, "0", "Requests whose connection ended in the middle of the answer.";
        FailedBody = "LOAD_FAILED_BODY_TOTAL", Count, "0", "Requests whose answer had another body than expected.";
        FailedProtocol = "LOAD_FAILED_PROTOCOL_TOTAL", Count, "0", "Requests whose answer violated the protocol.";
        FailedStatus = "LOAD_FAILED_STATUS_TOTAL", Count, "0", "Requests answered with a status of 400 or above.";
        Status2xx = "LOAD_STATUS_2XX_TOTAL", Count, "10000", "Answers with a status of 200 to 299.";
        Status3xx = "LOAD_STATUS_3XX_TOTAL", Count, "0", "Answers with a status of 300 to 399.";
        Status4xx = "LOAD_STATUS_4XX_TOTAL", Count, "0", "Answers with a status of 400 to 499.";
        Status5xx = "LOAD_STATUS_5XX_TOTAL", Count, "0", "Answers with a status of 500 or above.";
        Opened = "LOAD_CONNECTIONS_OPENED_TOTAL", Count, "1000", "Connections that were established.";
        Closed = "LOAD_CONNECTIONS_CLOSED_TOTAL", Count, "968", "Established connections that were closed.";
        HandshakesFull = "LOAD_HANDSHAKES_FULL_TOTAL", Count, "200", "Full handshakes completed, as the client saw them.";
        HandshakesResumed = "LOAD_HANDSHAKES_RESUMED_TOTAL", Count, "800", "Resumed handshakes completed, as the client saw them.";
        HandshakesFailed = "LOAD_HANDSHAKES_FAILED_TOTAL", Count, "0", "Handshakes that failed, as the client saw them.";
        ResumptionsWanted = "LOAD_RESUMPTIONS_WANTED_TOTAL", Count, "800", "Connections chosen to resume, by the resumption ratio.";
        ResumptionsOffered = "LOAD_RESUMPTIONS_OFFERED_TOTAL", Count, "800", "Connections that offered a session to resume; fewer than wanted if no ticket was available.";
        EarlyWanted = "LOAD_EARLY_DATA_WANTED_TOTAL", Count, "0", "Connections chosen to resume and to send their first request as early data (0-RTT).";
        EarlyOffered = "LOAD_EARLY_DATA_OFFERED_TOTAL", Count, "0", "Connections that sent their first request as early data; fewer than wanted if no available ticket allowed that much early data.";
        EarlyAccepted = "LOAD_EARLY_DATA_ACCEPTED_TOTAL", Count, "0", "Handshakes in which the server accepted the early data; also counted as resumed.";
        BytesIn = "LOAD_BYTES_IN_TOTAL", Bytes, "183022", "Plaintext sent to the server.";
        BytesOut = "LOAD_BYTES_OUT_TOTAL", Bytes, "92012230", "Plaintext received from the server.";
        BodyIn = "LOAD_BODY_BYTES_IN_TOTAL", Bytes, "0", "Bodies sent to the server.";
        BodyOut = "LOAD_BODY_BYTES_OUT_TOTAL", Bytes, "90000000", "Bodies received from the server.";
        HeadOut = "LOAD_HEAD_BYTES_OUT_TOTAL", Bytes, "2012230", "Header fields of answers as received, compressed if the protocol compresses them.";
        HeadPlain = "LOAD_HEAD_PLAIN_BYTES_TOTAL", Bytes, "2012230", "The same header fields without compression.";
    }
}

metrics! {
    /// Latencies that the load measures.
    LoadLatency {
        Response = "LOAD_RESPONSE", Histogram, "HISTFAAA…", "Intended send to whole answer; corrected for coordinated omission; open loop only.";
        Service = "LOAD_SERVICE", Histogram, "HISTFAAA…", "Actual send to whole answer; not corrected for coordinated omission.";
        Lag = "LOAD_LAG", Histogram, "HISTFAAA…", "Intended send to actual send; open loop only.";
        Connect = "LOAD_CONNECT", Histogram, "HISTFAAA…", "TCP: begin of connecting to connected.";
        HandshakeFull = "LOAD_HANDSHAKE_FULL", Histogram, "HISTFAAA…", "TLS: connected to full handshake done, as the client saw it.";
        HandshakeResumed = "LOAD_HANDSHAKE_RESUMED", Histogram, "HISTFAAA…", "TLS: connected to resumed handshake done, as the client saw it; without early data that was accepted.";
        HandshakeEarly = "LOAD_HANDSHAKE_EARLY", Histogram, "HISTFAAA…", "TLS: connected to resumed handshake done, of those whose early data was accepted.";
        FirstByte = "LOAD_FIRST_BYTE", Histogram, "HISTFAAA…", "Actual send to the first byte of the answer.";
        Total = "LOAD_TOTAL", Histogram, "HISTFAAA…", "A connection taken, or begun, for a request to whole answer: connect and handshake included.";
        TotalPlain = "LOAD_TOTAL_PLAIN", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection without TLS.";
        TotalFull = "LOAD_TOTAL_FULL", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection with a full handshake.";
        TotalResumed = "LOAD_TOTAL_RESUMED", Histogram, "HISTFAAA…", "The total of requests that waited for a new connection with a resumed handshake.";
        TotalEarly = "LOAD_TOTAL_EARLY", Histogram, "HISTFAAA…", "The total of requests that began a new connection as early data which was accepted.";
        TotalKept = "LOAD_TOTAL_KEPT", Histogram, "HISTFAAA…", "The total of requests over a connection that stood already.";
    }
}

metrics! {
    /// Whose threads used how much CPU.
    CpuGroup {
        Proxy = "CPU_PROXY_US_TOTAL", Micros, "812033", "CPU time of the proxy's workers.";
        Load = "CPU_LOAD_US_TOTAL", Micros, "1203311", "CPU time of the load generator's threads.";
        Upstream = "CPU_UPSTREAM_US_TOTAL", Micros, "402113", "CPU time of the demo upstream.";
        Dashboard = "CPU_DASHBOARD_US_TOTAL", Micros, "20131", "CPU time of the dashboard and of following the journal.";
        Journal = "CPU_JOURNAL_US_TOTAL", Micros, "10022", "CPU time of gathering, encoding and writing records.";
        Other = "CPU_OTHER_US_TOTAL", Micros, "802", "CPU time of all other threads of the process.";
    }
}

/// The groups of threads of the program, by the beginning of their names.
pub const CPU_GROUPS: [(&str, CpuGroup); 5] = [
    ("proxy", CpuGroup::Proxy),
    ("load", CpuGroup::Load),
    ("upstream", CpuGroup::Upstream),
    ("dashboard", CpuGroup::Dashboard),
    ("journal", CpuGroup::Journal),
];
