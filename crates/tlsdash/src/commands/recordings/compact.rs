//! `tlsdash compact`: a recording in fewer records, with the same totals and latencies.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use journal::{Entry, EntryBuf, EntrySource, FileOptions, FileWriter, Start, Timestamps};
use model::history::{EntryFilter, RunFilter, SeenRecords};
use model::runs::{Model, Run};
use records::codec::Writer;
use records::downsample::Downsampler;
use records::kinds::{Body, Record};
use records::metrics::{LoadLatency, Metric, ProxyLatency};
use records::text::quantity::counted;
use tempfile::TempPath;

use crate::cli::help::RUNS;
use crate::error::usage;
use crate::journals::bar::Bar;
use crate::journals::contents::JournalContents;
use crate::journals::reading::place_and_window;
use crate::journals::source::JournalSource;
use crate::journals::writers::WriterArgs;
use crate::session::recording::check_new;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash compact run.journal small.journal
  tlsdash compact /var/lib/tlsdash/tlsdash.journal service.journal";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    /// Journal to read: a file with its archives, a folder of files, `system`, `namespace:NAME`, or a log store as
    /// logs+http://HOST:PORT; it is not changed
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// File to write, which must not exist
    #[arg(value_name = "FILE.journal")]
    pub(crate) out: PathBuf,
    #[command(flatten, next_help_heading = RUNS)]
    pub(crate) writers: WriterArgs,
}

/// The length of the merged intervals.
const STRETCH: Duration = Duration::from_secs(10);
/// Size at which the copy's file is archived, as for the program's own files.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Writes the copy, reads it back, and keeps it only if it gives the same figures.
pub(crate) fn run(args: &CompactArgs) -> anyhow::Result<()> {
    check_new("compact", &args.out)?;
    let beside = files_of(&args.out)?;
    if let Some(file) = beside.first() {
        return Err(usage(format!(
            "compact: {} would be taken for a part of it; name another file",
            file.display()
        )));
    }
    let (source, range) = place_and_window("compact", Some(&args.source), &args.writers)?;
    if range.is_some() {
        return Err(usage("compact copies whole runs: name the source without @FROM..TO"));
    }
    let filter = RunFilter { writers: args.writers.filter(&source), ..RunFilter::default() };
    let whole = CopySource { source: &source, filter: &filter, writers: &args.writers };
    // In a separate folder, so the final name never has an unfinished copy, and cleaning up removes only our files.
    let folder = tempfile::Builder::new().prefix(".tlsdash-").tempdir_in(folder_of(&args.out));
    let folder = folder.with_context(|| cannot_write(&args.out))?;
    let made = folder.path().join(args.out.file_name().unwrap_or_default());
    write(&whole, &made)?;
    let same = compare(&whole, &made)?;
    put_in_place(&made, &args.out)?;
    crate::say(format_args!("{} {same}", args.out.display()));
    Ok(())
}

/// Moves the copy to its place, archives first. Replaces nothing.
fn put_in_place(made: &Path, out: &Path) -> anyhow::Result<()> {
    let mut files = files_of(made)?;
    files.sort_unstable_by_key(|file| file == made);
    let mut placed = Vec::new();
    for file in files {
        let place = out.with_file_name(file.file_name().unwrap_or_default());
        let moved = TempPath::try_from_path(file)
            .and_then(|file| file.persist_noclobber(&place).map_err(|error| error.error));
        if let Err(error) = moved {
            for file in placed {
                let _ = std::fs::remove_file(file);
            }
            return Err(error).with_context(|| cannot_write(&place));
        }
        placed.push(place);
    }
    Ok(())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// The file, if it exists, and its archives.
fn files_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = folder_of(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let archive = format!("{}@", path.file_stem().unwrap_or_default().display());
    let entries = folder.read_dir().with_context(|| format!("cannot look into {}", folder.display()))?;
    let is_of_it = |entry: &std::fs::DirEntry| {
        let found = entry.file_name().to_string_lossy().into_owned();
        found == name || found.starts_with(&archive)
    };
    Ok(entries.flatten().filter(is_of_it).map(|entry| entry.path()).collect())
}

/// The writers of the records, each with its trusted fields.
type Writers = HashMap<records::codec::Origin, (Writer, EntryBuf)>;

struct CopySource<'a> {
    source: &'a JournalSource,
    filter: &'a RunFilter,
    writers: &'a WriterArgs,
}

fn write(whole: &CopySource<'_>, out: &Path) -> anyhow::Result<()> {
    let source = whole.source;
    let mut original = source.opener(Start::Oldest, "")()?;
    if let Some(why) = original.refusal() {
        bail!("{source} cannot be read completely, and the copy would lack records: {why}");
    }
    // The trusted fields are those of the original's process.
    let options = FileOptions { size_max: FILE_BYTES_MAX, common: EntryBuf::new(), ..FileOptions::default() };
    let file = FileWriter::create(out, options)?;
    let mut copy = CompactCopy {
        file,
        downsampler: Downsampler::new(STRETCH),
        entry: EntryBuf::new(),
        thin: Vec::new(),
        seen: SeenRecords::default(),
    };
    let mut writers = Writers::new();
    let mut filter = EntryFilter::new(whole.filter.clone());
    read(&mut *original, source, |entry| {
        let is_record = entry.text("TLSDASH_KIND").is_some();
        if is_record && !filter.admits(entry) { Ok(()) } else { copy.take(entry, &mut writers) }
    })?;
    for (writer, trusted) in writers.values() {
        copy.downsampler.finish(writer, &mut copy.thin);
        copy.flush(trusted)?;
    }
    Ok(copy.file.close()?)
}

/// Passes every entry to `take`.
fn read(
    original: &mut dyn EntrySource,
    source: &JournalSource,
    mut take: impl FnMut(&Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut bar = Bar::new(|| source.size_bytes());
    let (mut walked, mut failed) = (0, Ok(()));
    loop {
        let mut each = |entry: &Entry| {
            if failed.is_ok() {
                failed = take(entry);
            }
        };
        let progress = original.poll(&mut each)?;
        if !progress.more {
            original.finish(&mut each);
        }
        walked += progress.walked_bytes;
        bar.show(walked);
        let is_whole = progress.skipped_bytes == 0;
        if failed.is_err() || !progress.more || !is_whole {
            bar.clear();
            ensure!(
                is_whole,
                "{source} is damaged, and what is left of it is not to be lost: it stays as it is"
            );
            return failed;
        }
    }
}

struct CompactCopy {
    file: FileWriter,
    downsampler: Downsampler,
    entry: EntryBuf,
    thin: Vec<Record>,
    seen: SeenRecords,
}

impl CompactCopy {
    fn take(&mut self, entry: &Entry, writers: &mut Writers) -> anyhow::Result<()> {
        let record =
            records::codec::decode(entry).context("a record cannot be read, and is not to be lost")?;
        let Some(record) = record else { return self.keep(entry) };
        ensure!(
            record.body != Body::Unknown,
            "it has records that only a newer tlsdash knows; update this one"
        );
        let writer = Writer::of_entry(entry);
        if !self.seen.insert(&writer.origin, &record.stamp) {
            return Ok(());
        }
        let (writer, trusted) = writers.entry(writer.origin).or_insert_with(|| {
            let trusted = trusted(entry);
            (writer, trusted)
        });
        self.downsampler.take(writer, record, &mut self.thin);
        self.flush(trusted)
    }

    /// Writes the completed records.
    fn flush(&mut self, trusted: &EntryBuf) -> anyhow::Result<()> {
        for record in self.thin.drain(..) {
            records::codec::encode(&record, &mut self.entry);
            for (name, value) in trusted.iter() {
                self.entry.push_trusted(name, value);
            }
            self.file.append(&self.entry, record.stamp.timestamps())?;
        }
        Ok(())
    }

    /// Copies an entry that is not a record: journald's message about dropped messages.
    fn keep(&mut self, entry: &Entry) -> anyhow::Result<()> {
        self.entry.clear();
        for (name, value) in entry.iter() {
            if name.starts_with('_') {
                self.entry.push_trusted(name, value);
            } else {
                self.entry.push(name, value);
            }
        }
        let at = Timestamps { realtime_us: entry.realtime_us(), monotonic_us: entry.monotonic_us() };
        Ok(self.file.append(&self.entry, at)?)
    }
}

fn trusted(entry: &Entry) -> EntryBuf {
    let mut fields: Vec<(&str, &[u8])> = entry.iter().filter(|(name, _)| name.starts_with('_')).collect();
    fields.retain(|(name, _)| !name.starts_with("_SOURCE") && !name.starts_with("__"));
    fields.sort_unstable();
    let mut trusted = EntryBuf::new();
    for (name, value) in fields {
        trusted.push_trusted(name, value);
    }
    trusted
}

/// Reads both, and refuses a copy with other figures. Returns a line about both.
fn compare(whole: &CopySource<'_>, out: &Path) -> anyhow::Result<String> {
    let copy = JournalSource::Path(out.to_owned());
    let before = JournalContents::read(whole.source, whole.filter, whole.writers, 1)?;
    before.newest()?;
    before.report_ignored();
    let after = JournalContents::read(&copy, &RunFilter::default(), whole.writers, 1)?.model;
    let before = before.model;
    for run in before.runs_and_parts() {
        let same = after.run(run.id()).is_some_and(|copied| figures(&before, run) == figures(&after, copied));
        ensure!(same, "the copy of run {} would not say the same, and was not kept", run.id().short());
    }
    let original = match whole.source.size_bytes() {
        0 => String::new(),
        bytes => format!(" in place of {:.1} MB", bytes as f64 / 1e6),
    };
    Ok(format!(
        "of {:.1} MB{original}, with the same totals and latencies of {}",
        copy.size_bytes() as f64 / 1e6,
        counted(before.runs().count() as u64, "run")
    ))
}

/// The figures that must be equal: totals, clients, losses, and every bucket of every latency.
fn figures(
    model: &Model,
    run: &Run,
) -> (Option<serde_json::Value>, Vec<records::histogram::SparseHistogram>) {
    let mut summary = model.summary(run, Some(""));
    if let Some(journal) = &mut summary.journal {
        (journal.made, journal.read) = (0, 0);
    }
    // Evaluated interval by interval, of which the copy has fewer.
    summary.findings.clear();
    let proxy = run
        .proxy()
        .into_iter()
        .flat_map(|series| ProxyLatency::ALL.iter().map(|&class| series.whole()[class].to_sparse()));
    let load = run
        .load()
        .into_iter()
        .flat_map(|series| LoadLatency::ALL.iter().map(|&class| series.whole()[class].to_sparse()));
    (serde_json::to_value(summary).ok(), proxy.chain(load).collect())
}
