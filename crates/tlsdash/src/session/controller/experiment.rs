//! The controller's part in an experiment: it passes each interval to the experiment, and executes its steps.

use experiment::Step;
use journal::Timestamps;
use loadgen::Load;
use proxy_core::{Proxy, TicketKeyError};
use records::kinds::Level;
use records::metrics::{Counters, CpuGroup};
use records::setting::{SettingError, Value};

use super::RunController;
use crate::session::experiments::Tick;

impl RunController {
    /// Passes the last interval to the experiment, and executes its steps.
    pub(super) fn advance_experiment(&mut self, now: Timestamps, cpu: &Counters<CpuGroup>) {
        let tick = Tick {
            now_us: now.monotonic_us,
            interval: self.setup.interval,
            proxy: self.workload.counts_traffic().then_some(&self.proxy_delta),
            load: self.workload.load_state().map(|state| (&self.load_delta, state)),
            cpu: *cpu,
        };
        let settings = self.workload.settings();
        match self.experiments.tick(&tick, &settings) {
            Ok(steps) => self.execute_steps(steps),
            Err(error) => self.console.say(Level::Warning, &format!("no experiment: {error}")),
        }
    }

    pub(super) fn end_experiment(&mut self) {
        let steps = self.experiments.stop();
        self.execute_steps(steps);
    }

    fn execute_steps(&mut self, steps: Vec<Step>) {
        for step in steps {
            let refusal = match &step {
                Step::Switch { value, flush, .. } | Step::End { value, flush } => {
                    let name = self.experiments.setting().to_owned();
                    self.switch(&name, value, *flush).err()
                }
                Step::Begin | Step::Pair { .. } | Step::Verdict { .. } => None,
            };
            for record in self.experiments.records(&step) {
                self.publisher.experiment(record, Timestamps::now());
            }
            if let Some(refusal) = refusal.map(|error| error.to_string()) {
                self.console.say(Level::Warning, &format!("the experiment cannot go on: {refusal}"));
                self.experiments.disturb(&refusal);
                // The last steps restore the setting. None of them stops the experiment again.
                return self.end_experiment();
            }
        }
    }

    fn switch(&mut self, name: &str, value: &Value, flush: bool) -> Result<(), SwitchError> {
        self.change_setting(name, value, "")?;
        if flush {
            self.forget_sessions()?;
        }
        Ok(())
    }

    /// Forgets sessions and ticket keys, in the load too: no client offers a session that the proxy has forgotten.
    pub(super) fn forget_sessions(&self) -> Result<(), TicketKeyError> {
        self.workload.load.iter().for_each(Load::forget_sessions);
        self.workload.proxy.as_ref().map_or(Ok(()), Proxy::forget_sessions)
    }
}

#[derive(Debug, thiserror::Error)]
enum SwitchError {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Forget(#[from] TicketKeyError),
}
