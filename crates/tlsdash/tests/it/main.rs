//! The program as a user runs it. Tests run at the same time: none may need the machine for itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/prometheus.rs"]
mod prometheus_program;
#[path = "../common/terminal.rs"]
mod terminal;

mod acme;
mod alerts;
mod bad_input;
mod bad_recordings;
mod check;
mod clients;
mod compact;
mod compare;
mod control;
mod copies;
mod demo;
mod dependencies;
mod edges;
mod experiment;
mod explain;
mod first_screen;
mod fleet;
mod forged;
mod golden;
mod hosts;
mod http;
mod http_clients;
mod http_records;
mod install;
mod journald;
mod lifecycle;
mod load;
mod load_styles;
mod log_store;
mod many_hosts;
mod metrics;
mod notices;
mod outputs;
mod prometheus;
mod record;
mod recording_stops;
mod reload;
mod replay;
mod runs;
mod screen;
mod selftest;
mod service;
mod sources;
mod staged_files;
mod tls;
mod upgrade;
mod watch_control;
mod wire;
