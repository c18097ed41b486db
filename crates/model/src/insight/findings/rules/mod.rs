//! The rules, a file for each subject.

pub(super) mod certificates;
mod clients;
mod handshakes;
mod host;
mod http;
mod limits;
mod logs;
mod measurement;
mod revocation;
pub(super) mod rule;
mod served;
pub(super) mod tickets;
mod upstreams;

use self::rule::Rule;

/// All rules, in the order in which findings of one moment open.
pub(super) const RULES: [Rule; 37] = [
    certificates::EXPIRES,
    revocation::EXPIRES,
    served::RENEWAL,
    served::NOT_LOADED,
    served::CHAIN,
    served::STAPLE_MISSING,
    certificates::NOT_COVERED,
    certificates::RSA_KEY,
    served::CHAIN_SIZE,
    clients::TLS12_ONLY,
    clients::ONLY_CHOICE,
    logs::OLD_VERSIONS,
    logs::NEVER_RESUMES,
    logs::LINES_LOST,
    logs::PACKETS_LOST,
    tickets::KEYS_UNKNOWN,
    tickets::RESUMPTION_LOW,
    handshakes::REFUSED,
    limits::BEYOND_LIMIT,
    limits::MEMORY_SHORT,
    handshakes::UPSTREAM_UNREACHABLE,
    upstreams::SLOW,
    upstreams::FAILING,
    host::ACCEPT_ERRORS,
    host::BACKLOG_OVERFLOW,
    host::DESCRIPTORS,
    host::CPU_THROTTLED,
    host::CPU_STOLEN,
    host::WORKERS_UNEVEN,
    host::OBSERVED_ENDED,
    clients::BUSY_CLIENT,
    measurement::RECORDS_LOST,
    measurement::LOAD_LATE,
    http::QUEUE,
    http::SERVER_ERRORS,
    http::RETRIED,
    http::UPSTREAM_SLOW,
];
