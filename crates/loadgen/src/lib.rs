//! The load generator, and the demo upstream that it can load.
//!
//! A [`Load`] runs a [`Plan`] against a [`Target`]: HTTP/1.1, HTTP/2 or a plain echo, over TLS, TCP or a Unix socket,
//! in a closed loop or on a schedule. Each thread is independent: it has an event loop, a part of the connections and of
//! the schedule, and its own counters and histograms, which the collector takes.
//!
//! # How a request travels
//!
//! 1. `schedule` decides when the request falls due: by the rate, or because a connection is free. It also knows when
//!    the load starts, pauses and ends, and which requests are warm-up.
//! 2. `worker` assigns the request to a free slot. A slot without a connection opens one: TCP from the address of the
//!    next `worker::client`, then `tls`, which resumes one of the client's sessions if the ratio asks for it.
//! 3. A `protocol::ProtocolSession` writes the request, whose bytes were prepared before the load started. Now it
//!    counts as sent: in an open loop the lag includes opening a connection, and the service time does not.
//! 4. The session parses the answer as it arrives, in pieces of any size, and counts the bytes of its body.
//! 5. `stats` records the result. It alone decides how a result is counted.
//! 6. The connection waits for the next request, or is closed cleanly, so both ends count the same bytes.
//!
//! HTTP/1.1 and HTTP/2 differ only in their session: how many requests a connection carries at a time, how a request
//! is written, and how answers are parsed.
//!
//! # Modules
//!
//! | module | purpose |
//! |---|---|
//! | `config`, `plan`, `script`, `target` | the configuration of a load |
//! | `load` | the checks before the start, and the handle on the threads |
//! | `control` | live settings, and the results that threads share |
//! | `schedule`, `worker`, `protocol`, `tls`, `stats` | the six steps above |
//! | `upstream` | the server for demos |
//!
//! # Limitations
//!
//! Bodies of answers are counted and compared, not kept. There is no pipelining. If the server closes a kept connection
//! before it answers, the request is sent once more, whatever its method. HTTP/2 sends no early data and no priorities,
//! and refuses pushes. The protocol cannot change while a load runs, because its histograms would mix both.

#![forbid(unsafe_code)]

mod clock;
mod config;
mod control;
mod load;
mod plan;
mod protocol;
mod schedule;
mod script;
mod stats;
mod target;
mod tls;
mod upstream;
mod worker;

pub use config::{LoadConfig, LoadStartError};
pub use control::SourceTotals;
pub use control::settings::infos as setting_infos;
pub use load::{Load, MeasuredTime, probe};
pub use plan::{
    Arrivals, KeepAlive, KeepAliveError, Plan, PlanError, Profile, ProfileError, Rate, Share, ValueError,
};
pub use protocol::http2::{Http2Harness, Http2HarnessResult};
pub use protocol::{Protocol, RequestError};
pub use records::values::TlsVersion;
pub use script::{ClientProfile, Lane, LaneKind, Script, ScriptClient, ScriptError, ScriptRequest};
pub use target::{
    ConnectTo, ConnectToError, Destination, Expect, LineError, ReadBodyError, RequestBody, Scheme, Target,
    TargetError, TargetsError, Template, parse_targets, read_body,
};
pub use tls::{
    Alpn, FetchCertificatesError, Identity, KnownCertificates, TlsOptions, TlsSetupError, Trust, TrustError,
    ciphers_from, fetch_certificates, groups_from, knows_cipher, knows_group,
};
pub use upstream::{DemoUpstream, UpstreamAddr, UpstreamError};
