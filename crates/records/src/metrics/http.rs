//! Counters and latencies of HTTP mode.

use super::counters::metrics;

// Moments at which several latencies start or end.
const HEAD: &str = "request head received";
const HANDED: &str = "first byte of the response handed to the client";
const TAKEN: &str = "last byte of the response taken by the kernel";

metrics! {
    /// The proxy's counters of HTTP, over all routes.
    HttpCounter {
        Requests = "HTTP_REQUESTS_TOTAL", Count, "12000", "Requests that are over: answered, or given up."
            => figure: "http.requests";
        Requests11 = "HTTP1_REQUESTS_TOTAL", Count, "2000", "Requests over HTTP/1.1 or HTTP/1.0."
            => figure: "http.requests.h1", metric: "http_requests", label: "HTTP/1";
        Requests2 = "HTTP2_REQUESTS_TOTAL", Count, "10000", "Requests over HTTP/2."
            => figure: "http.requests.h2", metric: "http_requests", label: "HTTP/2";
        Status1xx = "HTTP_STATUS_1XX_TOTAL", Count, "3", "Requests that switched protocols (status 101)."
            => figure: "http.status.1xx", metric: "http_responses", label: "1xx";
        Status2xx = "HTTP_STATUS_2XX_TOTAL", Count, "11800", "Requests answered with a status of 200 to 299."
            => figure: "http.status.2xx", metric: "http_responses", label: "2xx";
        Status3xx = "HTTP_STATUS_3XX_TOTAL", Count, "100", "Requests answered with a status of 300 to 399."
            => figure: "http.status.3xx", metric: "http_responses", label: "3xx";
        Status4xx = "HTTP_STATUS_4XX_TOTAL", Count, "80", "Requests answered with a status of 400 to 499, by an upstream or the proxy."
            => figure: "http.status.4xx", metric: "http_responses", label: "4xx";
        Status5xx = "HTTP_STATUS_5XX_TOTAL", Count, "15", "Requests answered with a status of 500 or above, by an upstream or the proxy."
            => figure: "http.status.5xx", metric: "http_responses", label: "5xx";
        Unanswered = "HTTP_UNANSWERED_TOTAL", Count, "2", "Requests that were over before any status was sent."
            => figure: "http.status.none", metric: "http_responses", label: "none";
        MethodGet = "HTTP_METHOD_GET_TOTAL", Count, "11000", "Requests with the method GET."
            => metric: "http_methods", label: "GET";
        MethodHead = "HTTP_METHOD_HEAD_TOTAL", Count, "0", "Requests with the method HEAD."
            => metric: "http_methods", label: "HEAD";
        MethodPost = "HTTP_METHOD_POST_TOTAL", Count, "900", "Requests with the method POST."
            => metric: "http_methods", label: "POST";
        MethodPut = "HTTP_METHOD_PUT_TOTAL", Count, "100", "Requests with the method PUT."
            => metric: "http_methods", label: "PUT";
        MethodDelete = "HTTP_METHOD_DELETE_TOTAL", Count, "0", "Requests with the method DELETE."
            => metric: "http_methods", label: "DELETE";
        MethodOther = "HTTP_METHOD_OTHER_TOTAL", Count, "0", "Requests with another method."
            => metric: "http_methods", label: "other";
        FailedNoRoute = "HTTP_FAILED_NO_ROUTE_TOTAL", Count, "0", "Requests that no route serves (404)."
            => figure: "http.failed.no_route", metric: "http_requests_failed", label: "no-route";
        FailedAmbiguous = "HTTP_FAILED_AMBIGUOUS_TOTAL", Count, "0", "Requests whose path has a normal form that another route serves (400)."
            => figure: "http.failed.ambiguous_path", metric: "http_requests_failed", label: "ambiguous-path";
        FailedMalformed = "HTTP_FAILED_MALFORMED_TOTAL", Count, "0", "Requests that break the protocol (400)."
            => figure: "http.failed.malformed", metric: "http_requests_failed", label: "malformed";
        FailedMisdirected = "HTTP_FAILED_MISDIRECTED_TOTAL", Count, "0", "Requests for a host that the proxy does not serve on this connection (421)."
            => figure: "http.failed.misdirected", metric: "http_requests_failed", label: "misdirected";
        FailedHeadTimeout = "HTTP_FAILED_HEAD_TIMEOUT_TOTAL", Count, "0", "Requests whose head was not complete in time (408)."
            => figure: "http.failed.head_timeout", metric: "http_requests_failed", label: "head-timeout";
        FailedBodyTimeout = "HTTP_FAILED_BODY_TIMEOUT_TOTAL", Count, "0", "Requests whose body made no progress in time (408)."
            => figure: "http.failed.body_timeout", metric: "http_requests_failed", label: "body-timeout";
        FailedBodyTooLarge = "HTTP_FAILED_BODY_TOO_LARGE_TOTAL", Count, "0", "Requests whose body exceeds its bound (413)."
            => figure: "http.failed.body_too_large", metric: "http_requests_failed", label: "body-too-large";
        FailedUriTooLong = "HTTP_FAILED_URI_TOO_LONG_TOTAL", Count, "0", "Requests whose target exceeds its bound (414)."
            => figure: "http.failed.uri_too_long", metric: "http_requests_failed", label: "uri-too-long";
        FailedHeaderTooLarge = "HTTP_FAILED_HEADER_TOO_LARGE_TOTAL", Count, "0", "Requests whose header exceeds its bound (431)."
            => figure: "http.failed.header_too_large", metric: "http_requests_failed", label: "header-too-large";
        FailedRequestRate = "HTTP_FAILED_REQUEST_RATE_TOTAL", Count, "0", "Requests refused because their client made requests beyond its rate (429)."
            => figure: "http.failed.request_rate", metric: "http_requests_failed", label: "request-rate";
        FailedQueueFull = "HTTP_FAILED_QUEUE_FULL_TOTAL", Count, "0", "Requests refused because too many waited for an upstream connection (503)."
            => figure: "http.failed.queue_full", metric: "http_requests_failed", label: "queue-full";
        FailedQueueTimeout = "HTTP_FAILED_QUEUE_TIMEOUT_TOTAL", Count, "0", "Requests that waited too long for an upstream connection (503)."
            => figure: "http.failed.queue_timeout", metric: "http_requests_failed", label: "queue-timeout";
        FailedUpstreamsDrained = "HTTP_FAILED_UPSTREAMS_DRAINED_TOTAL", Count, "0", "Requests whose upstreams were all drained (503)."
            => figure: "http.failed.upstreams_drained", metric: "http_requests_failed", label: "upstreams-drained";
        FailedConnect = "HTTP_FAILED_CONNECT_TOTAL", Count, "1", "Requests for which no upstream could be reached (502)."
            => figure: "http.failed.connect", metric: "http_requests_failed", label: "connect";
        FailedConnectTimeout = "HTTP_FAILED_CONNECT_TIMEOUT_TOTAL", Count, "0", "Requests for which no upstream could be reached in time (504)."
            => figure: "http.failed.connect_timeout", metric: "http_requests_failed", label: "connect-timeout";
        FailedUpstreamClosed = "HTTP_FAILED_UPSTREAM_CLOSED_TOTAL", Count, "1", "Requests whose upstream ended the connection before its response began (502)."
            => figure: "http.failed.upstream_closed", metric: "http_requests_failed", label: "upstream-closed";
        FailedUpstreamInvalid = "HTTP_FAILED_UPSTREAM_INVALID_TOTAL", Count, "0", "Requests whose upstream sent a malformed response (502)."
            => figure: "http.failed.upstream_invalid", metric: "http_requests_failed", label: "upstream-invalid";
        FailedUpstreamTimeout = "HTTP_FAILED_UPSTREAM_TIMEOUT_TOTAL", Count, "0", "Requests whose upstream did not begin its response in time (504)."
            => figure: "http.failed.upstream_timeout", metric: "http_requests_failed", label: "upstream-timeout";
        FailedUpstreamCut = "HTTP_FAILED_UPSTREAM_CUT_TOTAL", Count, "0", "Responses whose upstream broke before they were complete."
            => figure: "http.failed.upstream_cut", metric: "http_requests_failed", label: "upstream-cut";
        FailedClientGone = "HTTP_FAILED_CLIENT_GONE_TOTAL", Count, "3", "Requests that their client gave up."
            => figure: "http.failed.client_gone", metric: "http_requests_failed", label: "client-gone";
        FailedDrainTimeout = "HTTP_FAILED_DRAIN_TIMEOUT_TOTAL", Count, "0", "Requests in flight when the drain's time was over."
            => figure: "http.failed.drain_timeout", metric: "http_requests_failed", label: "drain-timeout";
        FailedIdleTimeout = "HTTP_FAILED_IDLE_TIMEOUT_TOTAL", Count, "0", "Requests whose connection was closed since nothing moved on it."
            => figure: "http.failed.idle_timeout", metric: "http_requests_failed", label: "idle-timeout";
        FailedSendTimeout = "HTTP_FAILED_SEND_TIMEOUT_TOTAL", Count, "0", "Requests whose connection was reset since the client took nothing of what waited for it."
            => figure: "http.failed.send_timeout", metric: "http_requests_failed", label: "send-timeout";
        FailedPendingBound = "HTTP_FAILED_PENDING_BOUND_TOTAL", Count, "0", "Requests whose connection was reset since connections held too much memory for peers that did not read."
            => figure: "http.failed.pending_bound", metric: "http_requests_failed", label: "pending-bound";
        Unrecorded = "HTTP_REQUESTS_UNRECORDED_TOTAL", Count, "0", "Failed requests, and responses of 500 or above, for which no record had room."
            => metric: "http_requests_unrecorded";
        Retried = "HTTP_RETRIED_TOTAL", Count, "4", "Requests sent once more on a new connection, since the upstream had closed the kept one."
            => figure: "http.retried", metric: "http_requests_retried";
        Reused = "HTTP_UPSTREAM_REUSED_TOTAL", Count, "11900", "Requests sent on a kept upstream connection."
            => figure: "http.reused", metric: "http_upstream_reused";
        Queued = "HTTP_QUEUED_TOTAL", Count, "20", "Requests that waited for an upstream connection."
            => figure: "http.waited", metric: "http_requests_queued";
        GrpcCalls = "GRPC_CALLS_TOTAL", Count, "312", "Calls of gRPC to whose upstreams HTTP/2 is spoken, and that gave a status."
            => figure: "http.grpc.calls", metric: "grpc_calls";
        GrpcFailed = "GRPC_FAILED_TOTAL", Count, "2", "Calls of gRPC whose status was another than OK (0)."
            => figure: "http.grpc.failed", metric: "grpc_calls_failed";
        BodyIn = "HTTP_BODY_IN_TOTAL", Bytes, "90210", "Bytes of request bodies."
            => figure: "http.body.in", metric: "http_body_in_bytes";
        BodyOut = "HTTP_BODY_OUT_TOTAL", Bytes, "81902331", "Bytes of response bodies."
            => figure: "http.body.out", metric: "http_body_out_bytes";
        Connections2 = "HTTP2_CONNECTIONS_TOTAL", Count, "16", "Connections that speak HTTP/2."
            => figure: "http.h2.connections", metric: "http2_connections";
        Streams2 = "HTTP2_STREAMS_TOTAL", Count, "10002", "Streams that clients opened."
            => figure: "http.h2.streams", metric: "http2_streams";
        ResetsIn = "HTTP2_RESETS_IN_TOTAL", Count, "2", "`RST_STREAM` frames from clients."
            => figure: "http.h2.resets.in", metric: "http2_resets_in";
        ResetsOut = "HTTP2_RESETS_OUT_TOTAL", Count, "0", "`RST_STREAM` frames to clients."
            => figure: "http.h2.resets.out", metric: "http2_resets_out";
        GoawaysIn = "HTTP2_GOAWAYS_IN_TOTAL", Count, "12", "GOAWAY frames from clients."
            => figure: "http.h2.goaways.in", metric: "http2_goaways_in";
        GoawaysOut = "HTTP2_GOAWAYS_OUT_TOTAL", Count, "4", "GOAWAY frames to clients."
            => figure: "http.h2.goaways.out", metric: "http2_goaways_out";
        HeaderBytesIn = "HTTP2_HEADER_BYTES_IN_TOTAL", Bytes, "80211", "Compressed header blocks from clients."
            => figure: "http.h2.headers.in", metric: "http2_headers_in_bytes";
        HeaderBytesOut = "HTTP2_HEADER_BYTES_OUT_TOTAL", Bytes, "61000", "Compressed header blocks to clients."
            => figure: "http.h2.headers.out", metric: "http2_headers_out_bytes";
        PlainHeaderBytesIn = "HTTP2_HEADER_PLAIN_IN_TOTAL", Bytes, "402211", "The same header blocks from clients before compression: names, values, and 4 bytes a field."
            => figure: "http.h2.headers.plain_in", metric: "http2_headers_plain_in_bytes";
        PlainHeaderBytesOut = "HTTP2_HEADER_PLAIN_OUT_TOTAL", Bytes, "310040", "The same header blocks to clients before compression."
            => figure: "http.h2.headers.plain_out", metric: "http2_headers_plain_out_bytes";
        FloodResets = "HTTP2_FLOOD_RESETS_TOTAL", Count, "0", "Connections ended since too many streams were reset, by either side."
            => figure: "http.h2.floods.resets", metric: "http2_floods", label: "resets";
        FloodControl = "HTTP2_FLOOD_CONTROL_TOTAL", Count, "0", "Connections ended for too many PING, SETTINGS, PRIORITY or `WINDOW_UPDATE` frames."
            => figure: "http.h2.floods.control", metric: "http2_floods", label: "control";
        FloodHeaders = "HTTP2_FLOOD_HEADERS_TOTAL", Count, "0", "Connections ended for too large or too many CONTINUATION frames."
            => figure: "http.h2.floods.headers", metric: "http2_floods", label: "headers";
        FloodEmpty = "HTTP2_FLOOD_EMPTY_TOTAL", Count, "0", "Connections ended for too many empty DATA frames."
            => figure: "http.h2.floods.empty", metric: "http2_floods", label: "empty";
    }
}

metrics! {
    /// The proxy's latencies of a request.
    HttpLatency {
        Queue = "HTTP_QUEUE", Histogram, "HISTFAAA…", "Waiting for an upstream connection, of requests that waited, also in vain."
            => figure: "http.queue", title: "HTTP queue", alias: "queue", start: "all upstream connections in use when the request came", end: "upstream connection assigned, or the request gave up", metric: "http_queue_seconds";
        Upstream = "HTTP_UPSTREAM", Histogram, "HISTFAAA…", "Request head sent to the upstream (HTTP/2: queued on its connection) to its response head received."
            => figure: "http.upstream", title: "HTTP upstream", alias: "upstream", start: "request head sent to the upstream (HTTP/2: queued on its connection)", end: "response head received", metric: "http_upstream_seconds";
        FirstByte = "HTTP_FIRST_BYTE", Histogram, "HISTFAAA…", "Request head received to the first byte of the response handed to the client."
            => figure: "http.first_byte", title: "HTTP first byte", alias: "ttfb", start: HEAD, end: HANDED;
        Request = "HTTP_REQUEST", Histogram, "HISTFAAA…", "First byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel: slow clients are in it."
            => figure: "http.request", title: "HTTP request", alias: "request", note: "slow clients included", start: "first byte of the request (HTTP/2: its complete header)", end: TAKEN;
        FirstByte1 = "HTTP1_FIRST_BYTE", Histogram, "HISTFAAA…", "The time to the first byte of requests over HTTP/1.1 or HTTP/1.0 alone."
            => figure: "http.first_byte_http1", title: "HTTP/1.1 first byte", start: HEAD, end: HANDED, metric: "http_first_byte_seconds", label: "HTTP/1";
        FirstByte2 = "HTTP2_FIRST_BYTE", Histogram, "HISTFAAA…", "The time to the first byte of requests over HTTP/2 alone."
            => figure: "http.first_byte_http2", title: "HTTP/2 first byte", start: HEAD, end: HANDED, metric: "http_first_byte_seconds", label: "HTTP/2";
        Request1 = "HTTP1_REQUEST", Histogram, "HISTFAAA…", "The whole time of requests over HTTP/1.1 or HTTP/1.0 alone."
            => figure: "http.request_http1", title: "HTTP/1.1 request", start: "first byte of the request", end: TAKEN, metric: "http_request_seconds", label: "HTTP/1";
        Request2 = "HTTP2_REQUEST", Histogram, "HISTFAAA…", "The whole time of requests over HTTP/2 alone."
            => figure: "http.request_http2", title: "HTTP/2 request", start: "complete header of the request", end: TAKEN, metric: "http_request_seconds", label: "HTTP/2";
    }
}

metrics! {
    /// The proxy's counters for each route.
    RouteCounter {
        Requests = "ROUTE_REQUESTS_TOTAL", Count, "9000", "Requests of this route that are over."
            => figure: "requests", metric: "route_requests";
        Status2xx = "ROUTE_STATUS_2XX_TOTAL", Count, "8990", "Requests of this route answered with 200 to 299."
            => figure: "status.2xx", metric: "route_responses", label: "2xx";
        Status3xx = "ROUTE_STATUS_3XX_TOTAL", Count, "0", "Requests of this route answered with 300 to 399."
            => figure: "status.3xx", metric: "route_responses", label: "3xx";
        Status4xx = "ROUTE_STATUS_4XX_TOTAL", Count, "8", "Requests of this route answered with 400 to 499."
            => figure: "status.4xx", metric: "route_responses", label: "4xx";
        Status5xx = "ROUTE_STATUS_5XX_TOTAL", Count, "2", "Requests of this route answered with 500 or above."
            => figure: "status.5xx", metric: "route_responses", label: "5xx";
        Failed = "ROUTE_FAILED_TOTAL", Count, "2", "Requests of this route that failed, whatever status was sent."
            => figure: "failed", metric: "route_requests_failed";
        Retried = "ROUTE_RETRIED_TOTAL", Count, "1", "Requests of this route sent once more on a new connection."
            => figure: "retried", metric: "route_requests_retried";
        BodyIn = "ROUTE_BODY_IN_TOTAL", Bytes, "40210", "Bytes of request bodies of this route."
            => figure: "body.in", metric: "route_body_in_bytes";
        BodyOut = "ROUTE_BODY_OUT_TOTAL", Bytes, "71902331", "Bytes of response bodies of this route."
            => figure: "body.out", metric: "route_body_out_bytes";
    }
}

metrics! {
    /// The proxy's latencies for each route.
    RouteLatency {
        Upstream = "ROUTE_UPSTREAM", Histogram, "HISTFAAA…", "Request head sent to the upstream (HTTP/2: queued on its connection) to its response head received."
            => figure: "upstream", metric: "route_upstream_seconds";
        FirstByte = "ROUTE_FIRST_BYTE", Histogram, "HISTFAAA…", "Request head received to the first byte of the response handed to the client."
            => figure: "first_byte", metric: "route_first_byte_seconds";
        Request = "ROUTE_REQUEST", Histogram, "HISTFAAA…", "First byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel."
            => figure: "request", metric: "route_request_seconds";
    }
}
