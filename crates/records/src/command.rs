//! Commands: what a front end asks of a run.

use std::path::PathBuf;

use crate::kinds::NoticeRecord;
use crate::setting::Value;

/// A command to the running program; commands travel against the stream of records.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Set {
        /// The setting's dotted name.
        name: String,
        value: Value,
    },
    /// Leave a note in the time line.
    Mark(String),
    /// Begin an experiment, in the words of `--ab`, such as `proxy.workers=1..2,pairs=12`.
    Experiment(String),
    /// End the experiment that is under way before its time.
    EndExperiment,
    /// Measure the cost of the parts of a handshake on this machine.
    Calibrate,
    /// Take an upstream out of service, or return it.
    Upstream {
        name: String,
        drained: bool,
    },
    /// Begin to record into this new file.
    Record(PathBuf),
    EndRecording,
    /// Write the options, with the settings in force, to a new configuration file.
    WriteConfiguration,
    /// Record an event of the front end.
    Notice(NoticeRecord),
}
