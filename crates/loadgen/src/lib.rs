//! The load generator, and the demo upstream it can be pointed at.
//!
//! A [`Load`] runs a [`Plan`] against a [`Target`]: HTTP/1.1, HTTP/2 or a plain echo, over TLS, TCP or a unix socket, in
//! a closed loop or on a schedule, with a share of its handshakes resumed. Each of its threads is on its own: an event
//! loop, a part of the connections and of the schedule, counters and histograms, which are handed over when they are
//! asked for.
//!
//! # How a request travels
//!
//! 1. `pacer` lets it fall due: by the schedule, or because a connection is free. `state` says when that begins,
//!    pauses and ends, and what is warm-up.
//! 2. `worker` gives it to a free slot. A slot without a connection makes one first: over TCP, from
//!    the address of the `client` whose turn it is, then `tls`, which resumes one of the client's sessions if the
//!    ratio wants it.
//! 3. The bytes that `request` has written out beforehand go to the connection. That is the moment it is sent, so
//!    in an open loop the lag includes making a connection, and the service time does not.
//! 4. `http1` takes the answer apart as it comes, in whatever pieces, and counts its body off.
//! 5. `stats` enters what became of it, and is the one place that says what counts as what.
//! 6. The connection waits for the next request, or is closed in order, so that both ends agree to the byte.
//!
//! # What else there is
//!
//! `http2` is steps 2 to 6 for HTTP/2, whose connections carry many requests at a time; `pacer`, `state` and `stats`
//! are the same, and so is the `transport` below.
//!
//! `plan`, `target`, `targets` and `config` are what a load is started with, `check` looks at it all and tries the
//! server out, `control` and `settings` are what can be changed while it runs, `load` holds the threads, `clock` tells
//! the time, [`report`] shapes what came of it, and `upstream` is the server for demos.
//!
//! # What it does not do
//!
//! Bodies of answers are counted and compared, not kept. There is no pipelining. A request whose kept connection the
//! server closed before answering is sent once more, whatever its method. With HTTP/2 there is no early data, nothing
//! is said of priorities, and pushes are refused. The protocol cannot change while a load runs, since results that speak
//! of two protocols speak of none.

#![forbid(unsafe_code)]

mod clock;
mod config;
mod control;
mod load;
mod plan;
mod protocol;
pub mod results;
mod schedule;
mod stats;
mod target;
mod tls;
mod upstream;
mod worker;

pub use config::{LoadConfig, StartError};
pub use control::SourceTotals;
pub use load::{Load, Measured, probe};
pub use plan::{Arrivals, KeepAlive, KeepAliveError, Plan, PlanError, Profile, ProfileError, Rate, Share};
pub use protocol::http2::{Http2Harness, Http2HarnessResult};
pub use protocol::{Protocol, RequestError};
pub use target::{
    Body, Expect, LineError, ReadBodyError, Scheme, Target, TargetError, TargetsError, Template,
    parse_targets, read_body,
};
pub use tls::{Alpn, Identity, Known, TlsOptions, TlsSetupError, TlsVersion, Trust};
pub use upstream::{DemoUpstream, UpstreamAddr, UpstreamError};
