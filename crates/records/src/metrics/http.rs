//! Counters and latencies of HTTP mode.

use super::counters::metrics;

metrics! {
    /// The proxy's counters of HTTP, over all routes.
    HttpCounter {
        Requests = "HTTP_REQUESTS_TOTAL", Count, "12000", "Requests that are over: answered, or given up.";
        Requests11 = "HTTP1_REQUESTS_TOTAL", Count, "2000", "Requests over HTTP/1.1 or HTTP/1.0.";
        Requests2 = "HTTP2_REQUESTS_TOTAL", Count, "10000", "Requests over HTTP/2.";
        Status1xx = "HTTP_STATUS_1XX_TOTAL", Count, "3", "Requests that switched protocols (status 101).";
        Status2xx = "HTTP_STATUS_2XX_TOTAL", Count, "11800", "Requests answered with a status of 200 to 299.";
        Status3xx = "HTTP_STATUS_3XX_TOTAL", Count, "100", "Requests answered with a status of 300 to 399.";
        Status4xx = "HTTP_STATUS_4XX_TOTAL", Count, "80", "Requests answered with a status of 400 to 499, by an upstream or the proxy.";
        Status5xx = "HTTP_STATUS_5XX_TOTAL", Count, "15", "Requests answered with a status of 500 or above, by an upstream or the proxy.";
        Unanswered = "HTTP_UNANSWERED_TOTAL", Count, "2", "Requests that were over before any status was sent.";
        MethodGet = "HTTP_METHOD_GET_TOTAL", Count, "11000", "Requests with the method GET.";
        MethodHead = "HTTP_METHOD_HEAD_TOTAL", Count, "0", "Requests with the method HEAD.";
        MethodPost = "HTTP_METHOD_POST_TOTAL", Count, "900", "Requests with the method POST.";
        MethodPut = "HTTP_METHOD_PUT_TOTAL", Count, "100", "Requests with the method PUT.";
        MethodDelete = "HTTP_METHOD_DELETE_TOTAL", Count, "0", "Requests with the method DELETE.";
        MethodOther = "HTTP_METHOD_OTHER_TOTAL", Count, "0", "Requests with another method.";
        FailedNoRoute = "HTTP_FAILED_NO_ROUTE_TOTAL", Count, "0", "Requests that no route serves (404).";
        FailedAmbiguous = "HTTP_FAILED_AMBIGUOUS_TOTAL", Count, "0", "Requests whose path has a normal form that another route serves (400).";
        FailedMalformed = "HTTP_FAILED_MALFORMED_TOTAL", Count, "0", "Requests that break the protocol (400).";
        FailedMisdirected = "HTTP_FAILED_MISDIRECTED_TOTAL", Count, "0", "Requests for a host that the proxy does not serve on this connection (421).";
        FailedHeadTimeout = "HTTP_FAILED_HEAD_TIMEOUT_TOTAL", Count, "0", "Requests whose head was not complete in time (408).";
        FailedBodyTimeout = "HTTP_FAILED_BODY_TIMEOUT_TOTAL", Count, "0", "Requests whose body made no progress in time (408).";
        FailedBodyTooLarge = "HTTP_FAILED_BODY_TOO_LARGE_TOTAL", Count, "0", "Requests whose body exceeds its bound (413).";
        FailedUriTooLong = "HTTP_FAILED_URI_TOO_LONG_TOTAL", Count, "0", "Requests whose target exceeds its bound (414).";
        FailedHeaderTooLarge = "HTTP_FAILED_HEADER_TOO_LARGE_TOTAL", Count, "0", "Requests whose header exceeds its bound (431).";
        FailedQueueFull = "HTTP_FAILED_QUEUE_FULL_TOTAL", Count, "0", "Requests refused because too many waited for an upstream connection (503).";
        FailedQueueTimeout = "HTTP_FAILED_QUEUE_TIMEOUT_TOTAL", Count, "0", "Requests that waited too long for an upstream connection (503).";
        FailedConnect = "HTTP_FAILED_CONNECT_TOTAL", Count, "1", "Requests for which no upstream could be reached (502).";
        FailedConnectTimeout = "HTTP_FAILED_CONNECT_TIMEOUT_TOTAL", Count, "0", "Requests for which no upstream could be reached in time (504).";
        FailedUpstreamClosed = "HTTP_FAILED_UPSTREAM_CLOSED_TOTAL", Count, "1", "Requests whose upstream ended the connection before its response began (502).";
        FailedUpstreamInvalid = "HTTP_FAILED_UPSTREAM_INVALID_TOTAL", Count, "0", "Requests whose upstream sent a malformed response (502).";
        FailedUpstreamTimeout = "HTTP_FAILED_UPSTREAM_TIMEOUT_TOTAL", Count, "0", "Requests whose upstream did not begin its response in time (504).";
        FailedUpstreamCut = "HTTP_FAILED_UPSTREAM_CUT_TOTAL", Count, "0", "Responses whose upstream broke before they were complete.";
        FailedClientGone = "HTTP_FAILED_CLIENT_GONE_TOTAL", Count, "3", "Requests that their client gave up.";
        FailedDrainTimeout = "HTTP_FAILED_DRAIN_TIMEOUT_TOTAL", Count, "0", "Requests in flight when the drain's time was over.";
        FailedIdleTimeout = "HTTP_FAILED_IDLE_TIMEOUT_TOTAL", Count, "0", "Requests whose connection was closed since nothing moved on it.";
        FailedSendTimeout = "HTTP_FAILED_SEND_TIMEOUT_TOTAL", Count, "0", "Requests whose connection was reset since the client took nothing of what waited for it.";
        FailedPendingBound = "HTTP_FAILED_PENDING_BOUND_TOTAL", Count, "0", "Requests whose connection was reset since connections held too much memory for peers that did not read.";
        Unrecorded = "HTTP_REQUESTS_UNRECORDED_TOTAL", Count, "0", "Failed requests, and responses of 500 or above, for which no record had room.";
        Retried = "HTTP_RETRIED_TOTAL", Count, "4", "Requests sent once more on a new connection, since the upstream had closed the kept one.";
        Reused = "HTTP_UPSTREAM_REUSED_TOTAL", Count, "11900", "Requests sent on a kept upstream connection.";
        Queued = "HTTP_QUEUED_TOTAL", Count, "20", "Requests that waited for an upstream connection.";
        BodyIn = "HTTP_BODY_IN_TOTAL", Bytes, "90210", "Bytes of request bodies.";
        BodyOut = "HTTP_BODY_OUT_TOTAL", Bytes, "81902331", "Bytes of response bodies.";
        Connections2 = "HTTP2_CONNECTIONS_TOTAL", Count, "16", "Connections that speak HTTP/2.";
        Streams2 = "HTTP2_STREAMS_TOTAL", Count, "10002", "Streams that clients opened.";
        ResetsIn = "HTTP2_RESETS_IN_TOTAL", Count, "2", "`RST_STREAM` frames from clients.";
        ResetsOut = "HTTP2_RESETS_OUT_TOTAL", Count, "0", "`RST_STREAM` frames to clients.";
        GoawaysIn = "HTTP2_GOAWAYS_IN_TOTAL", Count, "12", "GOAWAY frames from clients.";
        GoawaysOut = "HTTP2_GOAWAYS_OUT_TOTAL", Count, "4", "GOAWAY frames to clients.";
        HeaderBytesIn = "HTTP2_HEADER_BYTES_IN_TOTAL", Bytes, "80211", "Compressed header blocks from clients.";
        HeaderBytesOut = "HTTP2_HEADER_BYTES_OUT_TOTAL", Bytes, "61000", "Compressed header blocks to clients.";
        PlainHeaderBytesIn = "HTTP2_HEADER_PLAIN_IN_TOTAL", Bytes, "402211", "The same header blocks from clients before compression: names, values, and 4 bytes a field.";
        PlainHeaderBytesOut = "HTTP2_HEADER_PLAIN_OUT_TOTAL", Bytes, "310040", "The same header blocks to clients before compression.";
        FloodResets = "HTTP2_FLOOD_RESETS_TOTAL", Count, "0", "Connections ended since too many streams were reset, by either side.";
        FloodControl = "HTTP2_FLOOD_CONTROL_TOTAL", Count, "0", "Connections ended for too many PING, SETTINGS, PRIORITY or `WINDOW_UPDATE` frames.";
        FloodHeaders = "HTTP2_FLOOD_HEADERS_TOTAL", Count, "0", "Connections ended for too large or too many CONTINUATION frames.";
        FloodEmpty = "HTTP2_FLOOD_EMPTY_TOTAL", Count, "0", "Connections ended for too many empty DATA frames.";
    }
}

metrics! {
    /// The proxy's latencies of a request.
    HttpLatency {
        Queue = "HTTP_QUEUE", Histogram, "HISTFAAA…", "Waiting for an upstream connection, of requests that waited, also in vain.";
        Upstream = "HTTP_UPSTREAM", Histogram, "HISTFAAA…", "Request head sent to the upstream to its response head received.";
        FirstByte = "HTTP_FIRST_BYTE", Histogram, "HISTFAAA…", "Request head received to the first byte of the response handed to the client.";
        Request = "HTTP_REQUEST", Histogram, "HISTFAAA…", "First byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel: slow clients are in it.";
        FirstByte1 = "HTTP1_FIRST_BYTE", Histogram, "HISTFAAA…", "The time to the first byte of requests over HTTP/1.1 or HTTP/1.0 alone.";
        FirstByte2 = "HTTP2_FIRST_BYTE", Histogram, "HISTFAAA…", "The time to the first byte of requests over HTTP/2 alone.";
        Request1 = "HTTP1_REQUEST", Histogram, "HISTFAAA…", "The whole time of requests over HTTP/1.1 or HTTP/1.0 alone.";
        Request2 = "HTTP2_REQUEST", Histogram, "HISTFAAA…", "The whole time of requests over HTTP/2 alone.";
    }
}

metrics! {
    /// The proxy's counters for each route.
    RouteCounter {
        Requests = "ROUTE_REQUESTS_TOTAL", Count, "9000", "Requests of this route that are over.";
        Status2xx = "ROUTE_STATUS_2XX_TOTAL", Count, "8990", "Requests of this route answered with 200 to 299.";
        Status3xx = "ROUTE_STATUS_3XX_TOTAL", Count, "0", "Requests of this route answered with 300 to 399.";
        Status4xx = "ROUTE_STATUS_4XX_TOTAL", Count, "8", "Requests of this route answered with 400 to 499.";
        Status5xx = "ROUTE_STATUS_5XX_TOTAL", Count, "2", "Requests of this route answered with 500 or above.";
        Failed = "ROUTE_FAILED_TOTAL", Count, "2", "Requests of this route that failed, whatever status was sent.";
        Retried = "ROUTE_RETRIED_TOTAL", Count, "1", "Requests of this route sent once more on a new connection.";
        BodyIn = "ROUTE_BODY_IN_TOTAL", Bytes, "40210", "Bytes of request bodies of this route.";
        BodyOut = "ROUTE_BODY_OUT_TOTAL", Bytes, "71902331", "Bytes of response bodies of this route.";
    }
}

metrics! {
    /// The proxy's latencies for each route.
    RouteLatency {
        Upstream = "ROUTE_UPSTREAM", Histogram, "HISTFAAA…", "Request head sent to the upstream to its response head received.";
        FirstByte = "ROUTE_FIRST_BYTE", Histogram, "HISTFAAA…", "Request head received to the first byte of the response handed to the client.";
        Request = "ROUTE_REQUEST", Histogram, "HISTFAAA…", "First byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel.";
    }
}
