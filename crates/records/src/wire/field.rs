//! The journal fields of tlsdash: names, units, meanings.

use std::borrow::Cow;

use crate::metrics::{Field, Unit};

/// systemd's own field with the sentence for people.
pub(crate) const MESSAGE: &str = "MESSAGE";

macro_rules! fields {
    ($($constant:ident = $name:literal, $unit:ident, $example:literal, $meaning:literal;)*) => {$(
        pub static $constant: Field = Field {
            name: Cow::Borrowed(concat!("TLSDASH_", $name)),
            unit: Unit::$unit,
            example: $example,
            meaning: Cow::Borrowed($meaning),
        };
    )*};
}

// On every record.
fields! {
    KIND = "KIND", Text, "proxy", "Kind of record.";
    MINUTE = "MINUTE", Text, "proxy", "Kind of a [roll-up](#roll-ups) over a minute, in place of `TLSDASH_KIND`.";
    HOUR = "HOUR", Text, "proxy", "Kind of a [roll-up](#roll-ups) over an hour, in place of `TLSDASH_KIND`.";
    AFTER = "AFTER", Count, "1840", "On the last of the roll-ups that were written together: they stand for the records with numbers greater than this,";
    THROUGH = "THROUGH", Count, "1871", "and up to this.";
    BATCH = "BATCH", Count, "14", "How many were written together, this one included. If one is missing, they stand for nothing.";
    RUN = "RUN", Id, "6f1d…", "The run this record belongs to.";
    SEQ = "SEQ", Count, "117", "Number of the record within its run, from 1; a gap in the numbers read is a loss.";
    SCHEMA = "SCHEMA", Count, "1", "Version of the record format.";
    MONO = "MONO_US", Micros, "192833041", "`CLOCK_MONOTONIC` when the record was made.";
    INTERVAL = "INTERVAL_US", Micros, "1000000", "Time the record covers up to then; 0 for an event. In a starting `run`: how long it had lasted when its recording began. In `proxy`, `http` and `load` it does not reach back to the previous record if the process did not run in between.";
}

// On single kinds.
fields! {
    PHASE = "PHASE", Text, "start", "`start` or `stop`.";
    VERSION = "VERSION", Text, "0.1.0", "Version of tlsdash.";
    HOST = "HOST", Text, "edge-1", "Name of the host.";
    LISTEN = "LISTEN", Text, "[::]:8443", "Addresses the proxy listens on, separated by blanks.";
    UPSTREAM = "UPSTREAM", Text, "unix:/run/app.sock", "Target that the proxy forwards to, or that the load uses.";
    CERTIFICATE = "CERTIFICATE", Text, "ECDSA P-256", "Key type of the certificate.";
    WORKERS = "WORKERS", Count, "2", "Worker threads of the proxy.";
    KERNEL = "KERNEL", Text, "6.1.0-18-amd64", "Release of the kernel.";
    CPU_MODEL = "CPU_MODEL", Text, "AMD EPYC 7B13", "The processor's own name.";
    CORES = "CORES", Count, "8", "Cores that the process may run on.";
    GOVERNOR = "GOVERNOR", Text, "performance", "Governor of the first core's frequency (absent without one).";
    CLOCK_SOURCE = "CLOCK_SOURCE", Text, "tsc", "Source of the kernel's clocks.";
    HOST_MEMORY = "HOST_MEMORY_BYTES", Bytes, "33554432000", "Memory of the host.";
    CONTROL_SOCKET = "CONTROL_SOCKET", Text, "/run/tlsdash/control.sock", "Absolute path of the control socket of this run (absent without one).";
    SETTINGS = "SETTINGS", Json, "[{\"name\":\"load.rate\",\"value\":1000.0,…}]", "Every setting with value, unit, range and when a change acts.";
    LOG = "LOG", Text, "haproxy", "Terminator whose log was counted (absent if this program terminated TLS).";
    SERVICE = "SERVICE", Text, ":443 nginx", "Service whose part of a run this is; its id differs from the whole run's in the last two digits (absent in the whole run).";
    LOG_RESOLUTION = "LOG_RESOLUTION_US", Micros, "1000", "Resolution of the times in the log, and the least time that is counted; 0 without a log.";
    ABSENT = "ABSENT", Text, "handshake time: nginx does not log how long a handshake took", "Figures that the log does not have, each with the reason, separated by semicolons.";
    RUNS_ON = "RUNS_ON", Flag, "0", "Only the recording ended; the process continued.";
    NEXT_RUN = "NEXT_RUN", Text, "5f0c8e1d2b3a49788c6d5e4f3a2b1c0d", "Id of the run of the process that has taken over in an upgrade (absent if none has).";
    HAS_PROXY = "HAS_PROXY", Flag, "1", "The record also carries the fields of a `proxy` record, for the whole run.";
    HAS_LOAD = "HAS_LOAD", Flag, "1", "The record also carries the fields of a `load` record, for the whole run.";
    HAS_HTTP = "HAS_HTTP", Flag, "1", "The record also carries the fields of an `http` record, for the whole run.";
    OPEN = "CONNECTIONS_OPEN", Count, "10", "Connections open at the end of the interval.";
    CLIENTS_DEFERRED = "CLIENTS_DEFERRED", Count, "0", "Changed clients whose record was deferred for lack of budget.";
    UPSTREAMS_DEFERRED = "UPSTREAMS_DEFERRED", Count, "0", "Changed upstreams whose record was deferred to a later interval.";
    MIX_CONNECTIONS = "MIX_CONNECTIONS", ArrivalCounts, "1928330:2 1:1 3:4", "Connections with a completed handshake, by the tenth of a second in which they began, as `tenth:count`: the first tenth is counted from the beginning of `CLOCK_MONOTONIC`, each other one from the one before. Records that are merged have none.";
    MIX_REQUESTS = "MIX_REQUESTS", ArrivalCounts, "1928330:12 1:40 1:33", "Requests by their begin, in the same form; in TCP mode exchanges.";
    MIX_REQUESTS_EACH = "MIX_REQUESTS_EACH", ValueCounts, "1:3 10:7", "Requests of the connections that ended in the interval, as `number:connections`; numbers from 64 on are the middle of a class of a 32nd.";
    MIX_STREAMS_EACH = "MIX_STREAMS_EACH", ValueCounts, "30:2 104:1", "The same of connections of HTTP/2.";
    MIX_GAPS = "MIX_GAPS_US", ValueCounts, "1008:3 250880:40", "Microseconds from the begin of a request to that of the next one on its connection, in the same form.";
    MIX_STREAM_GAPS = "MIX_STREAM_GAPS_US", ValueCounts, "0:12 20736:9", "The same of connections of HTTP/2, whose requests may be under way at the same time.";
    MIX_BYTES_IN = "MIX_BYTES_IN", ValueCounts, "0:80 1008:3", "Bytes of requests: of bodies in HTTP mode, of all plaintext otherwise.";
    MIX_BYTES_OUT = "MIX_BYTES_OUT", ValueCounts, "13:60 10112:23", "Bytes of responses, in the same form.";
    CERTIFICATE_FINGERPRINT = "CERTIFICATE_SHA256", Text, "5b1e0c6f2a9d8e47", "The first 8 bytes of the certificate's SHA-256.";
    CERTIFICATE_FILE = "CERTIFICATE_FILE", Text, "/etc/tls/www.pem", "The file of the certificate (absent if it was made in memory).";
    CERTIFICATE_NAMES = "CERTIFICATE_NAMES", Text, "www.example.org example.org", "Its first DNS names, separated by blanks.";
    CERTIFICATE_MORE_NAMES = "CERTIFICATE_MORE_NAMES", Count, "0", "Further names.";
    CERTIFICATE_ISSUER = "CERTIFICATE_ISSUER", Text, "CN=R11, O=Let's Encrypt, C=US", "The issuer's distinguished name.";
    CERTIFICATE_SERIAL = "CERTIFICATE_SERIAL", Text, "04f2c1a9", "The serial number, in hexadecimal.";
    CERTIFICATE_KEY = "CERTIFICATE_KEY", Text, "ECDSA P-256", "Type of its key.";
    CERTIFICATE_CHAIN = "CERTIFICATE_CHAIN", Count, "2", "Certificates in the chain, the leaf included.";
    CERTIFICATE_CHAIN_BYTES = "CERTIFICATE_CHAIN_BYTES", Bytes, "2310", "The chain in DER.";
    CERTIFICATE_NOT_BEFORE = "CERTIFICATE_NOT_BEFORE", Count, "1793059200", "When its validity begins, in seconds since 1970.";
    CERTIFICATE_NOT_AFTER = "CERTIFICATE_NOT_AFTER", Count, "1800835199", "When its validity ends, in seconds since 1970.";
    CERTIFICATE_SINCE = "CERTIFICATE_SINCE", Count, "1793100000", "Since when it is served, in seconds since 1970.";
    CERTIFICATE_HANDSHAKES = "CERTIFICATE_HANDSHAKES_TOTAL", Count, "4012", "Full handshakes in which it was presented.";
    CERTIFICATE_DEFAULT = "CERTIFICATE_DEFAULT", Flag, "1", "It is the first certificate, for clients that ask for no name of a certificate.";
    CERTIFICATE_STAPLED_UNTIL = "CERTIFICATE_STAPLED_UNTIL", Count, "0", "When the stapled OCSP response ends, in seconds since 1970; 0 if none is stapled.";
    CERTIFICATE_MUST_STAPLE = "CERTIFICATE_MUST_STAPLE", Flag, "0", "It demands a stapled OCSP response (RFC 7633).";
    CERTIFICATE_FAULTS = "CERTIFICATE_FAULTS", Text, "the chain is incomplete", "Defects of the chain, separated by semicolons (absent if none is known).";
    CERTIFICATE_REFUSAL = "CERTIFICATE_REFUSAL", Text, "the key in /etc/tls/www.key does not belong to the certificate in /etc/tls/www.pem", "Why its files, as they are now, are not in use (absent if they are).";
    CERTIFICATE_RENEWAL_AT = "CERTIFICATE_RENEWAL_AT", Count, "1798200000", "When it is ordered next by ACME, in seconds since 1970; 0 if it is not.";
    CERTIFICATE_RENEWAL_ERROR = "CERTIFICATE_RENEWAL_ERROR", Text, "the authority could not validate www.example.org: connection refused", "Why the last order by ACME has failed (absent if it has not).";
    CERTIFICATE_REPLACED = "CERTIFICATE_REPLACED", Flag, "0", "Another certificate has replaced it.";
    UPSTREAM_NAME = "UPSTREAM_NAME", Text, "unix:/run/app.sock", "The upstream, as it was configured.";
    UPSTREAM_LAST = "UPSTREAM_LAST", Flag, "0", "The upstream's last record; its latencies are those of the whole run.";
    UPSTREAM_STATE = "UPSTREAM_STATE", Text, "up", "`up`, also before the first attempt; `down` if it could not be reached and rests; `drained` by an operator; `gone` if a reload has removed it.";
    UPSTREAM_STATE_TIME = "UPSTREAM_STATE_US", Micros, "412000000", "How long the upstream has been in this state; 0 if that is not known.";
    UPSTREAM_REASON = "UPSTREAM_REASON", Text, "Connection refused (os error 111)", "Why the upstream is not up (absent if it is).";
    UPSTREAM_OPEN = "UPSTREAM_OPEN", Count, "4", "Connections to the upstream at the end of the interval, including idle ones.";
    UPSTREAM_IDLE = "UPSTREAM_IDLE", Count, "1", "Of these, connections without a request; 0 in TCP mode.";
    HTTP_REQUESTS_OPEN = "HTTP_REQUESTS_OPEN", Count, "32", "Requests in flight at the end of the interval.";
    HTTP_REQUESTS_QUEUED = "HTTP_REQUESTS_QUEUED", Count, "0", "Of these, requests that wait for an upstream connection.";
    HTTP_UPSTREAM_OPEN = "HTTP_UPSTREAM_OPEN", Count, "40", "Upstream connections at the end of the interval, including idle ones.";
    HTTP_UPSTREAM_IDLE = "HTTP_UPSTREAM_IDLE", Count, "8", "Idle upstream connections at the end of the interval.";
    HTTP_ROUTES_DEFERRED = "HTTP_ROUTES_DEFERRED", Count, "0", "Changed routes whose record was deferred to a later interval.";
    HTTP_STATUSES = "HTTP_STATUSES", StatusCounts, "200:11800 404:80 other:3", "Responses of the run as `status:count`, at most 64 statuses; `other` sums further ones.";
    GRPC_STATUSES = "GRPC_STATUSES", StatusCounts, "0:310 14:2", "Calls of gRPC of the run by the status that upstreams gave, as `status:count`.";
    HAS_TLS = "HAS_TLS", Flag, "1", "The record also carries the fields of a `tls` record, for the whole run.";
    USAGE_DEFERRED = "USAGE_DEFERRED", Count, "0", "Changed values of usage whose record was deferred to a later interval.";
    AGES_ACCEPTED = "TICKET_AGES_ACCEPTED", AgeCounts, "60:11 3444:80", "Ages of the sessions that resumed during the run, from their first handshake on, as `seconds:count` with the upper end of each class of a quarter octave.";
    AGES_EXPIRED = "TICKET_AGES_EXPIRED", AgeCounts, "46341:12", "Ages of the ended sessions that were offered during the run, in the same form.";
    USAGE_DIMENSION = "USAGE_DIMENSION", Text, "version", "Dimension: `version`, `group`, `cipher`, `signature`, `alpn`, `certificate`, `name` or `fingerprint`.";
    USAGE_VALUE = "USAGE_VALUE", Text, "TLSv1.2", "The value; `other` for all values beyond the limit.";
    ROUTE = "ROUTE", Text, "shop.example/static", "Host and path prefix of the route; `other` for all routes from the 51st on.";
    ROUTE_LAST = "ROUTE_LAST", Flag, "0", "The route's last record; its latencies are those of the whole run.";
    REQUEST_ROUTE = "REQUEST_ROUTE", Text, "shop.example/static", "Route that serves the request (absent if none does).";
    REQUEST_VERSION = "REQUEST_VERSION", Text, "HTTP/2", "Protocol of the request: `HTTP/1.1`, also for HTTP/1.0, or `HTTP/2`.";
    REQUEST_METHOD = "REQUEST_METHOD", Text, "GET", "Method of the request.";
    REQUEST_PATH = "REQUEST_PATH", Text, "/static/logo.svg", "Path of the request without the query (absent if paths are not recorded).";
    REQUEST_UPSTREAM = "REQUEST_UPSTREAM", Text, "unix:/run/app.sock", "Upstream that the request was sent to last (absent if none).";
    REQUEST_STATUS = "REQUEST_STATUS", Count, "502", "Status that was sent; 0 if the request ended before one was sent.";
    REQUEST_FAILURE = "REQUEST_FAILURE", Text, "upstream-closed", "Why the request failed (absent if an upstream answered it completely).";
    REQUEST_QUEUE = "REQUEST_QUEUE_US", Micros, "0", "Time that the request waited for an upstream connection; 0 if it did not.";
    REQUEST_UPSTREAM_TIME = "REQUEST_UPSTREAM_US", Micros, "1801", "Request header sent to the upstream to its response header received; 0 without a response.";
    REQUEST_FIRST_BYTE = "REQUEST_FIRST_BYTE_US", Micros, "1850", "Request header received to the first byte of the response handed to the client; 0 without a response.";
    REQUEST_DURATION = "REQUEST_US", Micros, "2103", "First byte of the request to the last byte of the response taken by the kernel.";
    REQUEST_BODY_IN = "REQUEST_BODY_IN", Bytes, "0", "Bytes of the request's body.";
    REQUEST_BODY_OUT = "REQUEST_BODY_OUT", Bytes, "10240", "Bytes of the response's body.";
    REQUEST_REUSED = "REQUEST_REUSED", Flag, "1", "The request was sent on a reused upstream connection.";
    REQUEST_RETRIED = "REQUEST_RETRIED", Flag, "0", "The request was retried on a new connection.";
    LOAD_RUNNING = "LOAD_RUNNING", Flag, "1", "Requests are being scheduled.";
    LOAD_RATE = "LOAD_RATE", PerSecond, "1000", "Requested rate a second; 0 in a closed loop.";
    LOAD_RESUME = "LOAD_RESUME_PERCENT", Percent, "80", "Share of new connections that should resume.";
    LOAD_CONNECTIONS = "LOAD_CONNECTIONS", Count, "32", "Requested connections.";
    LOAD_DUE = "LOAD_DUE_US", Micros, "30000000", "Length of the schedule up to now, without warm-up and pauses; 0 in a closed loop.";
    LOAD_SENDING = "LOAD_SENDING_US", Micros, "29980000", "The same to the last request sent.";
    LOAD_MEASURED = "LOAD_MEASURED_US", Micros, "30000514", "The same to the end of the schedule, or to the last answer if that came later; in a closed loop, to the end of the last request.";
    LOAD_THREADS = "LOAD_THREADS", Count, "1", "Threads of the load generator.";
    LOAD_TALLY = "LOAD_TALLY", Json, "[{\"event\":\"status\",\"of\":200,\"count\":1500}]", "Outcomes of the load's requests and handshakes, by kind: statuses, failures, negotiated TLS parameters; each with its first example.";
    CLIENT = "CLIENT", Id, "127.0.0.2", "Source address, or `other`.";
    CLIENT_EPOCH = "CLIENT_EPOCH", Count, "1", "Number of the client's stay in the bounded table, ascending; counters restart with each.";
    CLIENT_LAST = "CLIENT_LAST", Flag, "0", "No further record of this epoch follows.";
    CLIENT_EXCHANGE_SKETCH = "CLIENT_EXCHANGE_SKETCH", Sketch, "31200455 93:4 94:17", "Latencies of this client's exchanges since its last record with this field: exact maximum in ns, then `bucket:samples`, see above (absent if none, and for five seconds after the last one).";
    CLIENT_RTT = "CLIENT_RTT_US", Micros, "410", "Round-trip time to this client, as the kernel estimated it at the end of the client's latest handshake; 0 if it is not known.";
    CLIENT_OPEN = "CLIENT_CONNECTIONS_OPEN", Count, "2", "Connections of this client open at the end of the interval.";
    SETTING = "SETTING", Text, "load.rate", "Dotted name of the setting that was changed.";
    SETTING_BEFORE = "SETTING_BEFORE", Text, "1000", "The setting before the change.";
    SETTING_AFTER = "SETTING_AFTER", Json, "{\"name\":\"load.rate\",\"value\":1250.0,…}", "The setting after the change.";
    SETTING_BY = "SETTING_BY", Text, "alice (uid 1000, pid 4711)", "Who changed it over the control socket; empty for the dashboard, an experiment and the program itself.";
    CALIBRATION_CPU = "CALIBRATION_CPU_US", Micros, "1800000", "CPU time of the measurement.";
    COST_KEY_EXCHANGE = "COST_KEY_EXCHANGE_NS", Text, r#"{"x25519":[31000,32000,35000]}"#, "The proxy's part of a key exchange by group: the quartiles of several slices, in nanoseconds, as a JSON object.";
    COST_SIGNATURE = "COST_SIGNATURE_NS", Text, r#"{"ECDSA P-256":[15000,16000,19000]}"#, "A signature by key type of the certificate, in the same form.";
    COST_REST = "COST_REST_NS", Text, r#"{"TLSv1.3 full":[51000,52000,57000]}"#, "The rest of a full and of a resumed handshake by version, with X25519 or with the group that follows, in the same form.";
    MARK = "MARK", Count, "1", "Number of the mark within the run.";
    MARK_TEXT = "MARK_TEXT", Text, "after kernel update", "Text of the note.";
    ALERT = "ALERT", Count, "1", "Number of the alert within the run.";
    ALERT_STATE = "ALERT_STATE", Text, "fired", "`fired`, `resolved`, or `withdrawn` if it was changed or switched off while it was firing.";
    ALERT_CONDITION = "ALERT_CONDITION", Text, "response.p99 > 5ms for 30s", "The alert as it was written.";
    ALERT_FIGURE = "ALERT_FIGURE", Text, "load.response.p99", "Full name of the figure; docs/figures.md defines it and its unit.";
    ALERT_OPERATOR = "ALERT_OPERATOR", Text, ">", "Operator between value and limit.";
    ALERT_LIMIT = "ALERT_LIMIT", Number, "5000", "The limit, in the figure's unit.";
    ALERT_VALUE = "ALERT_VALUE", Number, "7210.5", "The figure over the last window with a value, in its unit.";
    ALERT_WORST = "ALERT_WORST", Number, "9202", "The worst value since the condition began to hold.";
    ALERT_HOLD = "ALERT_HOLD_US", Micros, "30000000", "How long the condition must hold before the alert fires.";
    ALERT_WINDOW = "ALERT_WINDOW_US", Micros, "10000000", "The time that a value covers.";
    ALERT_FIRING = "ALERT_FIRING_US", Micros, "72000000", "How long the alert has been firing; 0 when it fires.";
    EXPERIMENT = "EXPERIMENT", Count, "1", "Number of the experiment within the run.";
    EXPERIMENT_STEP = "EXPERIMENT_STEP", Text, "verdict", "Step of the experiment: `begin`, `switch`, `pair` or `verdict`.";
    EXPERIMENT_STAGE = "EXPERIMENT_STAGE", Text, "a/b", "`a/a` while both arms have the first value, then `a/b`.";
    EXPERIMENT_ARM = "EXPERIMENT_ARM", Text, "b", "The arm whose value is in force: `a` or `b`.";
    EXPERIMENT_SETTING = "EXPERIMENT_SETTING", Text, "proxy.workers", "Dotted name of the compared setting.";
    EXPERIMENT_A = "EXPERIMENT_A", Text, "1", "Its first value.";
    EXPERIMENT_B = "EXPERIMENT_B", Text, "2", "Its second value.";
    EXPERIMENT_PAIR = "EXPERIMENT_PAIR", Count, "7", "The pair in progress or complete, from 1 in each stage.";
    EXPERIMENT_PAIRS = "EXPERIMENT_PAIRS", Count, "12", "Planned pairs of this stage.";
    EXPERIMENT_BLOCK = "EXPERIMENT_BLOCK_US", Micros, "10000000", "Length of a block.";
    EXPERIMENT_DISCARD = "EXPERIMENT_DISCARD_US", Micros, "2000000", "Ignored time after each switch.";
    EXPERIMENT_FLUSH = "EXPERIMENT_FLUSH", Flag, "0", "Sessions and tickets are forgotten at each switch.";
    EXPERIMENT_SEED = "EXPERIMENT_SEED", Id, "11400714819323198485", "Seed of the order within the pairs.";
    EXPERIMENT_METRIC = "EXPERIMENT_METRIC", Text, "exchange.p99", "The compared figure.";
    EXPERIMENT_PRIMARY = "EXPERIMENT_PRIMARY", Flag, "1", "The experiment's verdict is the verdict on this figure.";
    EXPERIMENT_HAS_ESTIMATE = "EXPERIMENT_HAS_ESTIMATE", Flag, "1", "The record has an estimate of the figure.";
    EXPERIMENT_PAIRS_USED = "EXPERIMENT_PAIRS_USED", Count, "12", "Pairs in the comparison.";
    EXPERIMENT_FIGURE_A = "EXPERIMENT_FIGURE_A", Number, "412.3", "The figure over all blocks of the first value: latencies in µs, others as their name says.";
    EXPERIMENT_FIGURE_B = "EXPERIMENT_FIGURE_B", Number, "391.1", "The figure over all blocks of the second value.";
    EXPERIMENT_EFFECT = "EXPERIMENT_EFFECT_PERCENT", Percent, "-5.1", "Difference of the second value from the first; for a share, in percentage points.";
    EXPERIMENT_EFFECT_LOW = "EXPERIMENT_EFFECT_LOW_PERCENT", Percent, "-6.8", "Lower end of the confidence interval.";
    EXPERIMENT_EFFECT_HIGH = "EXPERIMENT_EFFECT_HIGH_PERCENT", Percent, "-3.4", "Upper end of the confidence interval.";
    EXPERIMENT_CONFIDENCE = "EXPERIMENT_CONFIDENCE_PERCENT", Percent, "95", "Confidence of the interval.";
    EXPERIMENT_P = "EXPERIMENT_P", Number, "0.0005", "How often chance alone would make a difference as large as this, by the sign-flip test.";
    EXPERIMENT_RESOLUTION = "EXPERIMENT_RESOLUTION_PERCENT", Percent, "2.1", "The difference that the planned pairs would show four times in five, by the spread of the pairs.";
    EXPERIMENT_PAIR_EFFECT = "EXPERIMENT_PAIR_EFFECT_PERCENT", Percent, "-4.7", "Difference within the pair that is complete; for a share, in percentage points. Absent without figures of both blocks.";
    EXPERIMENT_OUTCOME = "EXPERIMENT_OUTCOME", Text, "better", "`pending`, `better`, `worse`, `no difference shown` or `inconclusive`.";
    EXPERIMENT_REASON = "EXPERIMENT_REASON", Text, "too few pairs: 4 of the 6 that it takes", "The reason, in words.";
    MEMORY = "MEMORY_BYTES", Bytes, "18350080", "Resident memory of the process.";
    MEMORY_PSS = "MEMORY_PSS_BYTES", Bytes, "14155776", "The same with each shared page divided among its users (PSS), read every 10 s; 0 if the kernel does not report it.";
    DESCRIPTORS = "DESCRIPTORS", Count, "81", "Open file descriptors of the process.";
    DESCRIPTORS_MAX = "DESCRIPTORS_MAX", Count, "65536", "Limit on open file descriptors of the process (`RLIMIT_NOFILE`); 0 without one.";
    THREADS = "THREADS", Count, "7", "Threads of the process.";
    BUSIEST_WORKER_CPU = "BUSIEST_WORKER_CPU_US_TOTAL", Micros, "812033", "CPU time of the proxy's running thread that has used the most; beside the CPU time of all threads it shows how evenly workers are used.";
    WORKER_COUNTS = "WORKER_COUNTS", Text, "0 812033 12 3400 1200 2188 850; 1 790012 9 3391 1195 2187 640", "Workers of the proxy, those that have ended included: number, CPU time in microseconds, open connections, accepted connections, full and resumed handshakes, and in the interval the longest loop delay of a handshake in microseconds (absent if none).";
    PEAK_WORKER_CPU = "PEAK_WORKER_CPU_US_TOTAL", Micros, "910410", "CPU time of the proxy's busiest thread between two readings, summed over the readings of the run.";
    MACHINE_CPUS = "MACHINE_CPUS", Count, "8", "Online CPUs of the machine, over which stolen CPU time is counted; 0 if unknown.";
    OBSERVED_PID = "OBSERVED_PID", Id, "4711", "The first observed process, whose descendants are included; 0 if none.";
    OBSERVED_CPU = "OBSERVED_CPU_US_TOTAL", Micros, "812033", "CPU time of the observed processes since the observation began.";
    OBSERVED_THREADS = "OBSERVED_THREADS", Count, "26", "Their threads.";
    OBSERVED_THREADS_MAX = "OBSERVED_THREADS_MAX", Count, "46", "Their most threads at a reading.";
    OBSERVED_MEMORY = "OBSERVED_MEMORY_BYTES", Bytes, "7800000", "Their resident memory; shared pages count for each.";
    OBSERVED_MEMORY_MAX = "OBSERVED_MEMORY_MAX_BYTES", Bytes, "7800000", "Their most resident memory at a reading.";
    OBSERVED_DESCRIPTORS = "OBSERVED_DESCRIPTORS", Count, "118", "Their open descriptors; 0 if the kernel hides them.";
    OBSERVED_LISTENERS = "OBSERVED_LISTENERS", Count, "4", "Their listening TCP sockets, read every 10 s.";
    OBSERVED_BACKLOG = "OBSERVED_BACKLOG", Count, "0", "Connections in the backlogs of these sockets at that moment.";
    OBSERVED_PROCESSES = "OBSERVED_PROCESSES", Text, "4711 1200 nginx: master process; 4712 810833 nginx: worker process", "CPU time of each process since the observation began: its id, microseconds, its name; the 16 busiest (absent if none).";
    HEALTH_REFUSED = "HEALTH_REFUSED_TOTAL", Count, "0", "Records of intervals that the journal had not accepted when the next interval ended.";
    HEALTH_MERGED = "HEALTH_MERGED_TOTAL", Count, "0", "Intervals whose counters were merged into a later record for that reason.";
    HEALTH_WAITS = "HEALTH_WAITS_TOTAL", Count, "12", "Times that the journal accepted no records for a moment; pending ones were offered again.";
    HEALTH_DROPPED = "HEALTH_DROPPED_TOTAL", Count, "0", "Discarded records: too many events waited, the journal would never have accepted them, or its file was removed or truncated.";
    HEALTH_SUPPRESSED = "HEALTH_SUPPRESSED_TOTAL", Count, "0", "Messages of this service, records or not, that journald's rate limit dropped.";
    HEALTH_OVER_BUDGET = "HEALTH_OVER_BUDGET_TOTAL", Count, "0", "Records of connection errors and failed requests without room in the budget.";
    HEALTH_CLOCK_STEP = "HEALTH_CLOCK_STEP_US", Micros, "0", "Sum of the wall clock's jumps against the monotonic clock; negative if backwards.";
    HEALTH_CLOCK_STEPS = "HEALTH_CLOCK_STEPS_TOTAL", Count, "0", "Jumps of the wall clock.";
    HEALTH_ERROR = "HEALTH_ERROR", Text, "No space left on device", "The last refusal, in words.";
    HEALTH_UPLOAD_WAITING = "HEALTH_UPLOAD_WAITING", Count, "0", "Records that wait for a receiver of `--upload` that fails, or catches up.";
    HEALTH_UPLOAD_LOST = "HEALTH_UPLOAD_LOST_TOTAL", Count, "0", "Records that left the archives before a receiver had confirmed them, or were too large for it.";
    HEALTH_UPLOAD_FAILURE = "HEALTH_UPLOAD_FAILURE", Text, "connection refused", "Why uploads fail, in words; absent while they do not.";
    NOTICE_LEVEL = "NOTICE_LEVEL", Text, "warning", "Severity: `info`, `notice` or `warning`.";
    NOTICE_TOPIC = "NOTICE_TOPIC", Text, "upstream", "Topic: `alert`, `bound`, `certificate`, `client-certificate`, `control`, `descriptors`, `journal`, `log`, `log-line`, `log-lost`, `log-order`, `log-silent`, `metrics`, `reload`, `replay`, `root`, `terminal`, `upgrade`, `upstream` or `worker`; later versions add topics.";
    NOTICE_TEXT = "NOTICE", Text, "the upstream unix:/run/app.sock cannot be reached: Connection refused", "The message.";
    CONNECTION = "CONNECTION", Id, "1204", "Number of the connection within the run.";
    OUTCOME = "OUTCOME", Text, "ended", "How the connection ended.";
    DETAIL = "DETAIL", Text, "peer sent alert: unknown_ca", "The error, in words.";
    TLS_VERSION = "TLS_VERSION", Text, "TLSv1.3", "Negotiated protocol version.";
    CIPHER = "CIPHER", Text, "TLS_AES_256_GCM_SHA384", "Negotiated cipher suite.";
    GROUP = "GROUP", Text, "X25519MLKEM768", "Negotiated key exchange group.";
    SNI = "SNI", Text, "www.example.org", "Server name that the client requested.";
    ALPN = "ALPN", Text, "http/1.1", "Negotiated application protocol.";
    CLIENT_NAME = "CLIENT_NAME", Text, "worker-7.example.org", "Name in the client's verified certificate.";
    RESUMED = "RESUMED", Flag, "1", "The handshake resumed an earlier session.";
    CONNECTION_BYTES_IN = "CONNECTION_BYTES_IN", Bytes, "812", "Plaintext from the client to the upstream over this connection.";
    CONNECTION_BYTES_OUT = "CONNECTION_BYTES_OUT", Bytes, "101222", "Plaintext from the upstream to the client over this connection.";
    CONNECTION_LIFETIME = "CONNECTION_LIFETIME_US", Micros, "10332", "Accept to close of this connection.";
}

/// The fields that every record carries, systemd's own names first.
pub fn common_fields() -> Vec<Field> {
    let text = |name, example, meaning| Field {
        name: Cow::Borrowed(name),
        unit: Unit::Text,
        example,
        meaning: Cow::Borrowed(meaning),
    };
    let systemd = [
        text("MESSAGE", "load: 1000/s sent, 0 failed", "The record as a sentence."),
        text("MESSAGE_ID", "see the kinds", "One per kind, fixed for all time."),
        text(
            "PRIORITY",
            "6",
            "Syslog priority: 4 for errors and losses, 5 for what a person did or should know, 6 for events, 7 for each interval's figures.",
        ),
        text("SYSLOG_IDENTIFIER", "tlsdash", "Always `tlsdash`."),
    ];
    systemd
        .into_iter()
        .chain(
            [&KIND, &MINUTE, &HOUR, &AFTER, &THROUGH, &BATCH, &RUN, &SEQ, &SCHEMA, &MONO, &INTERVAL]
                .map(Clone::clone),
        )
        .collect()
}
