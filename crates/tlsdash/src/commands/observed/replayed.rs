//! Counts what is whole, a log or a capture, into a recording in its own time, and shows that.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use recorder::observer::Intervals;
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, RecordWriter};
use records::ids::RunId;
use records::kinds::RunRecord;

use crate::cli::appearance::Appearance;
use crate::cli::{Flags, RecordsArg};
use crate::commands::observed::session::ObservingOptions;
use crate::commands::watch::{self, WatchArgs};
use crate::error::usage;
use crate::journals::state_directory;
use crate::journals::writers::WriterArgs;
use crate::session::recording;

/// The file of `--file`, or standard input for `-`, with its name.
pub(crate) fn open(path: &Path) -> anyhow::Result<(Box<dyn Read + Send>, String)> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(stdin()), "standard input".to_owned()));
    }
    let file = File::open(path).with_context(|| format!("cannot read --file {}", path.display()))?;
    Ok((Box::new(file), path.display().to_string()))
}

/// Makes the recording in intervals of this length: `count` publishes the intervals, and gives back their sink. Then shows it.
pub(crate) fn run(
    options: &ObservingOptions,
    flags: &Flags,
    header: RunRecord,
    interval: Duration,
    count: impl FnOnce(Intervals<RecordWriter>) -> anyhow::Result<RecordWriter>,
) -> anyhow::Result<()> {
    // What is wrong with the configuration is said before a long log is counted.
    Appearance::with_file(options.config.as_deref(), flags)?;
    let run = &options.run;
    if let Some(record) = &run.record {
        recording::check_new("--record", record)?;
    }
    // Removed at the end, with the recording, unless it was asked for.
    let folder = tempfile::Builder::new().prefix("tlsdash-").tempdir().context("cannot make a folder")?;
    let record = run.record.clone().unwrap_or_else(|| folder.path().join("observe.journal"));
    let file =
        state_directory::create_named(&record).with_context(|| format!("--record {}", record.display()))?;
    let id = RunId::random().context("cannot draw a run id")?;
    // The publisher starts with the first event.
    let start = journal::Timestamps { realtime_us: 0, monotonic_us: 0 };
    let publisher = Publisher::new(id, RecordWriter::new(file), RECORDS_PER_SECOND_OWN, start);
    let writer = count(Intervals::new(publisher, interval, header)).inspect_err(|_| {
        // An empty recording is useless.
        let _ = std::fs::remove_file(&record);
    })?;
    writer.close().with_context(|| format!("--record {}", record.display()))?;
    let shown = WatchArgs {
        source: Some(record.into_os_string()),
        play: None,
        from: None,
        run: None,
        writers: WriterArgs::default(),
        records: RecordsArg::default(),
        headless: run.headless,
        format: run.format,
        config: options.config.clone(),
        appearance: options.appearance.clone(),
    };
    watch::run(&shown, flags)
}

/// Options that only mean something while records are being made.
const LIVE_OPTIONS: [&str; 13] = [
    "pid",
    "unit",
    "outgoing",
    "certificate-of",
    "duration",
    "journal",
    "upload",
    "append",
    "keep-running",
    "alert",
    "metrics",
    "metrics-clients",
    "ab",
];

/// # Errors
/// If an option is given that goes with a running source, which are `sources`.
pub(crate) fn refuse_live_options(flags: &Flags, sources: &str) -> anyhow::Result<()> {
    match LIVE_OPTIONS.iter().find(|word| flags.is_given(word)) {
        Some(word) => Err(usage(format!(
            "--{word} goes with {sources}: --file counts what is over, and --record keeps its records"
        ))),
        None => Ok(()),
    }
}
