//! `observe TERMINATOR --file LOG`: a complete log, as a recording in the log's own time.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::Context;
use observe::{LogKind, LogReplay, ReplayedLog};
use recorder::observer::Intervals;
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, RecordWriter};
use records::ids::RunId;

use super::{ObserveArgs, cannot_read, header};
use crate::cli::{Flags, WatchArgs, usage};
use crate::commands::watch;
use crate::journals::state_directory;
use crate::journals::writers::WriterArgs;
use crate::session::recording;

/// Counts the log into a recording, and shows that.
pub(super) fn run(args: &ObserveArgs, kind: LogKind, path: &Path, flags: &Flags) -> anyhow::Result<()> {
    refuse_live_options(flags)?;
    if let Some(record) = &args.run.record {
        recording::check_new("--record", record)?;
    }
    // Removed at the end, with the recording, unless it was asked for.
    let folder = tempfile::Builder::new().prefix("tlsdash-").tempdir().context("cannot make a folder")?;
    let record = args.run.record.clone().unwrap_or_else(|| folder.path().join("observe.journal"));
    let mut log: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| cannot_read(path))?)
    };
    let file =
        state_directory::create_named(&record).with_context(|| format!("--record {}", record.display()))?;
    let run = RunId::random().context("cannot draw a run id")?;
    // The publisher starts with the log's first line.
    let start = journal::Timestamps { realtime_us: 0, monotonic_us: 0 };
    let publisher = Publisher::new(run, RecordWriter::new(file), RECORDS_PER_SECOND_OWN, start);
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let replay = LogReplay::new(Intervals::new(publisher, args.run.interval.0, header(kind, &name)));
    let replayed = match replay.run(&mut kind.parser(), &mut log) {
        Ok(ended) => ended,
        Err(error) => {
            // An empty recording is useless.
            let _ = std::fs::remove_file(&record);
            return Err(error).with_context(|| format!("observe {kind} --file {name}"));
        }
    };
    let ReplayedLog { sink: writer, lines, bad, lost, notices } = replayed;
    writer.close().with_context(|| format!("--record {}", record.display()))?;
    crate::say(format_args!("{lines} lines of {name}, {bad} not readable, {lost} lost"));
    for notice in &notices {
        crate::say(format_args!("{}", notice.text));
    }
    let shown = WatchArgs {
        source: Some(record.into_os_string()),
        play: None,
        from: None,
        run: None,
        writers: WriterArgs::default(),
        headless: args.run.headless,
        format: args.run.format,
        config: args.config.clone(),
        appearance: args.appearance.clone(),
    };
    watch::run(&shown, flags)
}

/// Options that only mean something while records are being made.
const LIVE_OPTIONS: [&str; 11] = [
    "pid",
    "unit",
    "certificate-of",
    "duration",
    "journal",
    "append",
    "keep-running",
    "alert",
    "metrics",
    "metrics-clients",
    "ab",
];

fn refuse_live_options(flags: &Flags) -> anyhow::Result<()> {
    match LIVE_OPTIONS.iter().find(|word| flags.is_given(word)) {
        Some(word) => Err(usage(format!(
            "--{word} goes with --syslog, --journal-unit or --follow: the log of --file is whole, and --record keeps its records"
        ))),
        None => Ok(()),
    }
}
