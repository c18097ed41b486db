//! What the traffic of a recorded run was like.

use std::ffi::OsStr;

use mix::{MixReader, Shares, TrafficMix};
use model::runs::Model;
use records::kinds::Record;

use crate::error::usage;
use crate::journals::reading::{RecordLimit, RunChoice, SourcePart};
use crate::journals::source::shown;
use crate::journals::writers::WriterArgs;

/// Reads the mix of a run, or of a time range of it; it names the routes only `with_paths`.
///
/// # Errors
/// When the journal cannot be read, or holds no such run, or no traffic of it, or no routes `with_paths`.
pub(crate) fn read(
    mode: &str,
    source: &OsStr,
    writers: &WriterArgs,
    run: Option<&str>,
    with_paths: bool,
) -> anyhow::Result<TrafficMix> {
    let mut part = SourcePart::parse(
        Some(source),
        RunChoice { mode, run, host: None, writers, records: RecordLimit::NONE },
    )?;
    let chosen = part.read(1)?.run(run)?.id();
    // Again, as only this run is kept.
    part.filter.id_prefix = chosen.to_string();
    let mut reader = MixReader::default();
    let inspect = |record: &Record| {
        if record.stamp.run == chosen {
            reader.take(record);
        }
    };
    part.read_into(Model::for_merging(1), inspect)?.report_ignored();
    // No name of a file or host: plans are passed on.
    let refuse = |problem: String| usage(format!("{mode} {}: {problem}", shown(source)));
    let mut mix =
        reader.finish(format!("run {}", chosen.short())).map_err(|error| refuse(error.to_string()))?;
    if !with_paths {
        mix.routes = Shares::default();
    } else if mix.routes.is_empty() {
        return Err(refuse(
            "it has no routes to keep; those of a proxy in HTTP mode are recorded".to_owned(),
        ));
    }
    Ok(mix)
}
