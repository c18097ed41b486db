//! Measures the cost of handshakes on this machine, on a separate thread with the lowest priority.

use std::thread::{self, JoinHandle};

use journal::Timestamps;
use proxy_core::{CALIBRATION_CPU, CalibrationError, calibrate};
use records::kinds::{HandshakeCosts, Level};

use super::RunController;

/// The niceness of the thread: it gets otherwise unused CPU time.
const NICENESS: i32 = 19;

/// The calibration that is under way, if one is.
#[derive(Debug, Default)]
pub(super) struct Calibration(Option<JoinHandle<Result<HandshakeCosts, CalibrationError>>>);

impl RunController {
    /// Begins a calibration, and returns its duration in words.
    ///
    /// # Errors
    /// With the reason, if one is in progress or the thread cannot be started.
    pub(super) fn begin_calibration(&mut self) -> Result<String, String> {
        if self.calibration.0.is_some() {
            return Err("a calibration is under way".to_owned());
        }
        let thread = thread::Builder::new().name("calibration".to_owned()).spawn(calibrate_nicely);
        let thread = thread.map_err(|error| format!("cannot start the calibration's thread: {error}"))?;
        self.calibration.0 = Some(thread);
        let seconds = CALIBRATION_CPU.as_secs_f64().ceil();
        Ok(format!("measuring the costs of handshakes: {seconds} s of CPU time at most"))
    }

    /// Records the costs once they are measured.
    pub(super) fn check_calibration(&mut self) {
        let Some(thread) = self.calibration.0.take_if(|thread| thread.is_finished()) else { return };
        match thread.join() {
            Ok(Ok(costs)) => self.publisher.calibration(costs, Timestamps::now()),
            Ok(Err(error)) => self.console.say(Level::Warning, &error.to_string()),
            Err(_) => self.console.say(Level::Warning, "the calibration panicked"),
        }
    }
}

fn calibrate_nicely() -> Result<HandshakeCosts, CalibrationError> {
    // Without it the measurement takes time from the proxy, and is as good.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    calibrate()
}
