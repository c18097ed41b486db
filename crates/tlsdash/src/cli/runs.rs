//! Which recorded runs a command reads.

use std::ffi::OsString;

use clap::Args;
use model::history::Moment;

use super::help::RUNS;
use crate::journals::reading::{RecordLimit, RunChoice, RunPrefix, RunQuery};
use crate::journals::writers::WriterArgs;
use crate::value::ParsedValue;

/// Which runs are read, and of when.
#[derive(Args, Debug)]
#[command(next_help_heading = RUNS)]
pub(crate) struct RunsArgs {
    /// Journals to read: a file with its archives, a folder of files, `system`, `namespace:NAME`, or a log store as
    /// logs+http://HOST:PORT; runs of several are merged. @FROM..TO behind one selects a time range, such as
    /// @13:05..13:10 (UTC), @-10m.. or @mark:2..mark:3 [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<OsString>,
    /// The run, by its id (TLSDASH_RUN); or the first characters of it [default: the newest of each host]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<RunPrefix>,
    /// The newest run of the host of this name only (_HOSTNAME)
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    pub(crate) host: Option<String>,
    /// This service only, of a run of `wire`: its name, its port or its process, such as :443 or nginx
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Start of the time range: 13:05 or 2026-01-31T13:05:00Z (UTC), or -1h for an hour ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) since: Option<ParsedValue<Moment>>,
    /// End of the time range
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<ParsedValue<Moment>>,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
    #[command(flatten)]
    pub(crate) records: RecordsArg,
}

/// How exactly long times are read.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct RecordsArg {
    /// Records to read one by one, or `all`; if there are more, their minutes or hours are read in their place
    /// [default: 250000]
    #[arg(long, help_heading = RUNS, value_name = "N")]
    pub(crate) records: Option<RecordLimit>,
}

impl RecordsArg {
    pub(crate) fn limit(self) -> RecordLimit {
        self.records.unwrap_or_default()
    }
}

impl RunsArgs {
    /// The query of a command, which keeps the latest `history` intervals of each series.
    pub(crate) fn query<'a>(&'a self, mode: &'a str, history: usize) -> RunQuery<'a> {
        let (run, since, until) = (self.run.as_deref(), self.since.as_ref(), self.until.as_ref());
        let (host, records) = (self.host.as_deref(), self.records.limit());
        let choice = RunChoice { mode, run, host, writers: &self.writers, records };
        RunQuery { choice, history, service: self.service.as_deref(), since, until }
    }
}
