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
use crate::journals::choice::JournalChoice;
use crate::value::{self, ParsedValue, RecordInterval, one_or_many};

/// The options of every command that writes records.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct RunOptions {
    /// Where records go: auto, system, namespace:NAME, file:PATH.journal, or off (headless only)
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub(crate) journal: ParsedValue<JournalChoice>,
    /// Send all records to a log store (logs+http://HOST:9428, logs+https://…) or to systemd-journal-remote
    /// (https://HOST:19532); they wait in the journal file until they are confirmed (docs/hosts.md)
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<ParsedValue<UploadUrl>>,
    /// Write a second copy of all records to this journal file, which must not exist
    #[arg(long, value_name = "FILE.journal")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<PathBuf>,
    /// Archive an existing file of --record beside the new one
    #[arg(long)]
    pub(crate) append: bool,
    /// Time between records of the counters, 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: ParsedValue<RecordInterval>,
    /// Run without a dashboard, until SIGTERM or Ctrl-C
    #[arg(long)]
    pub(crate) headless: bool,
    /// Keep serving without a dashboard when the terminal closes, until SIGTERM
    #[arg(long)]
    pub(crate) keep_running: bool,
    /// Format of the summary at the end
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Alert while a figure is beyond a limit, such as 'response.p99 > 5ms for 30s' or 'failed.ratio > 1% over 1m'; may be
    /// repeated (docs/alerts.md)
    #[arg(long, value_name = "CONDITION")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) alert: Vec<ParsedValue<Alert>>,
    /// Serve figures for Prometheus at http://ADDR/metrics, and /healthz and /readyz (docs/metrics.md)
    #[arg(long, value_name = "ADDR", value_parser = value::address)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Give this many clients metrics of their own, those with most bytes (0 to 1000)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) metrics_clients: usize,
    /// Compare two values of a setting in pairs of blocks, such as workers=1..2,metric=exchange.p99,pairs=12; other
    /// words: quick, normal, careful, aa, block, discard, flush, keep (docs/experiments.md). A headless run ends with the experiment
    #[arg(long, value_name = "WORDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ab: Option<ParsedValue<ExperimentPlan>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        without_flags()
    }
}
