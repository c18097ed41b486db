//! Measures the cost of handshakes on this machine, on a separate thread with the lowest priority.

use std::thread::{self, JoinHandle};

use proxy_core::{CALIBRATION_CPU, CalibrationError, calibrate};
use records::kinds::HandshakeCosts;

/// The niceness of the thread: it gets otherwise unused CPU time.
const NICENESS: i32 = 19;

/// The calibration that is under way, if one is.
#[derive(Debug, Default)]
pub(super) struct Calibration(Option<JoinHandle<Result<HandshakeCosts, CalibrationError>>>);

impl Calibration {
    /// Begins a calibration, and returns its duration in words.
    ///
    /// # Errors
    /// With the reason, if one is in progress or the thread cannot be started.
    pub(super) fn begin(&mut self) -> Result<String, String> {
        if self.0.is_some() {
            return Err("a calibration is under way".to_owned());
        }
        let thread = thread::Builder::new().name("calibration".to_owned()).spawn(calibrate_nicely);
        let thread = thread.map_err(|error| format!("cannot start the calibration's thread: {error}"))?;
        self.0 = Some(thread);
        let seconds = CALIBRATION_CPU.as_secs_f64().ceil();
        Ok(format!(
            "measuring the costs of handshakes: {seconds} s of CPU time at most; `tlsdash explain` lists \
             what a change would save"
        ))
    }

    /// The costs once they are measured, or why they are not.
    pub(super) fn poll(&mut self) -> Option<Result<HandshakeCosts, String>> {
        let thread = self.0.take_if(|thread| thread.is_finished())?;
        Some(match thread.join() {
            Ok(measured) => measured.map_err(|error| error.to_string()),
            Err(_) => Err("the calibration panicked".to_owned()),
        })
    }
}

fn calibrate_nicely() -> Result<HandshakeCosts, CalibrationError> {
    // Without it the measurement takes time from the proxy, and is as good.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    calibrate()
}
