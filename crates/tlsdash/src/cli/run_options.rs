//! The options of a run, whatever it measures.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use experiment::ExperimentPlan;
use log_store::UploadUrl;
use model::alerts::Alert;
use serde::{Deserialize, Serialize};

use super::flags::without_flags;
use super::format::Format;
use super::help::{DASHBOARD, EXPERIMENTS, METRICS, RECORDS};
use crate::journals::choice::JournalChoice;
use crate::value::{self, ParsedValue, RecordInterval, one_or_many};

/// The options of every command that writes records.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct RunOptions {
    /// Where records go: auto, system, namespace:NAME, file:PATH.journal, or off (headless only); it is the journal of
    /// all runs, so take a file only where the host has no other, and --record to keep one run
    #[arg(long, help_heading = RECORDS, value_name = "WHERE", default_value = "auto")]
    pub(crate) journal: ParsedValue<JournalChoice>,
    /// Send all records to a log store; logs+http://HOST:9428, logs+https://…, or to systemd-journal-remote,
    /// https://HOST:19532. They wait in the journal file until they are confirmed (docs/hosts.md)
    #[arg(long, help_heading = RECORDS, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<ParsedValue<UploadUrl>>,
    /// Keep a copy of this run in this new file; it is what to show, send or replay later, while --journal names the
    /// journal of all runs
    #[arg(long, help_heading = RECORDS, value_name = "FILE.journal")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<PathBuf>,
    /// Archive an existing file of --record; it stays beside the new one
    #[arg(long, help_heading = RECORDS)]
    pub(crate) append: bool,
    /// Time between records of the counters; 100ms to 60s
    #[arg(long, help_heading = RECORDS, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: ParsedValue<RecordInterval>,
    /// Run without a dashboard, until SIGTERM or Ctrl-C
    #[arg(long, help_heading = DASHBOARD)]
    pub(crate) headless: bool,
    /// Serve on when the terminal closes; without a dashboard, until SIGTERM
    #[arg(long, help_heading = DASHBOARD)]
    pub(crate) keep_running: bool,
    /// Format of the summary at the end
    #[arg(long, help_heading = DASHBOARD, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Alert while a figure is beyond a limit, such as 'response.p99 > 5ms for 30s' or 'failed.ratio > 1% over 1m'; may be
    /// repeated (docs/alerts.md)
    #[arg(long, help_heading = METRICS, value_name = "CONDITION")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) alert: Vec<ParsedValue<Alert>>,
    /// Serve figures for Prometheus; at http://ADDR/metrics, and /healthz and /readyz (docs/metrics.md)
    #[arg(long, help_heading = METRICS, value_name = "ADDR", value_parser = value::address)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Clients with metrics of their own; those with most bytes (0 to 1000)
    #[arg(long, help_heading = METRICS, value_name = "N", default_value_t = 0)]
    pub(crate) metrics_clients: usize,
    /// Compare two values of a setting in pairs of blocks, such as workers=1..2,metric=exchange.p99,pairs=12; other
    /// words: quick, normal, careful, aa, block, discard, flush, keep (docs/experiments.md). A headless run ends with the experiment
    #[arg(long, help_heading = EXPERIMENTS, value_name = "WORDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ab: Option<ParsedValue<ExperimentPlan>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        without_flags()
    }
}
