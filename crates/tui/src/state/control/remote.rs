//! Whether the shown run can be changed, if it is that of another process, and what is asked of that process.

use std::path::Path;

use model::runs::{Level, Run};
use records::command::Command;
use records::ids::RunId;

use crate::clock::ClockReading;
use crate::options::remote::{RemoteAction, RemoteRequest};
use crate::state::State;

const ONLY_WATCHES: &str = "no control: this dashboard only watches";

impl State {
    /// Why keys cannot change the shown run; `None` if they can, as far as is known.
    pub(crate) fn obstacle(&self) -> Option<String> {
        if !self.options.watches {
            return None;
        }
        if self.options.remote.is_none() {
            return Some(ONLY_WATCHES.to_owned());
        }
        let Some(run) = self.run() else { return Some("there is no run yet".to_owned()) };
        if let Err(why) = self.socket_of(run) {
            return Some(why);
        }
        self.access.refusal(run.id()).map(|why| format!("no control: {why}"))
    }

    /// The control socket of a run on this host.
    fn socket_of<'r>(&self, run: &'r Run) -> Result<&'r Path, String> {
        let host = self.options.remote.as_ref().map_or("", |remote| &remote.host);
        let Some(began) = run.began() else {
            return Err(
                "no control: the run's first record, which names its control socket, was not read".to_owned()
            );
        };
        if run.stopped().is_some() {
            return Err("the run has ended".to_owned());
        }
        if began.host != host || run.writer().is_remote {
            return Err(format!(
                "no control: the run is on another host, {}; `tlsdash watch` changes it there",
                began.host
            ));
        }
        if began.control_socket.is_empty() {
            return Err("no control: the run has no control socket; --control gives a proxy one".to_owned());
        }
        Ok(Path::new(&began.control_socket))
    }

    /// Returns what has to be asked about the shown run, once.
    pub(crate) fn access_request(&mut self) -> Option<RemoteRequest> {
        if !self.caught_up || self.options.remote.is_none() {
            return None;
        }
        let run = self.run()?;
        if !self.access.is_unknown(run.id()) {
            return None;
        }
        let (run, socket) = (run.id(), self.socket_of(run).ok()?.to_owned());
        self.access.ask(run);
        Some(RemoteRequest { run, socket, action: RemoteAction::CheckAccess })
    }

    /// Stores whether a run can be changed.
    pub(crate) fn note_access(&mut self, run: RunId, access: Result<(), String>, now: ClockReading) {
        if !self.access.is_of(run) {
            return;
        }
        let refusal = access.as_ref().err().cloned();
        let before = self.access.store(access);
        // A key that was refused before has said why; only news is worth a line.
        match (before, self.obstacle()) {
            (Some(_), None) => {
                let text = "the run can be changed now: press the key again".to_owned();
                self.answer(Level::Notice, text, now);
            }
            (before @ Some(_), Some(why)) if refusal != before => {
                self.answer(Level::Warning, why, now);
            }
            _ => {}
        }
    }

    /// The command for the process of the shown run.
    pub(crate) fn remote_command(&self, command: Command) -> Option<RemoteRequest> {
        let run = self.run()?;
        let socket = self.socket_of(run).ok()?.to_owned();
        Some(RemoteRequest { run: run.id(), socket, action: RemoteAction::Command(command) })
    }

    pub(crate) fn shown_run_id(&self) -> Option<RunId> {
        self.run().map(Run::id)
    }

    /// Why nothing can be recorded, or a recording not be ended; `None` if it can.
    pub(crate) fn recording_obstacle(&self) -> Option<&'static str> {
        if !self.options.watches || self.recorded.progress().is_some() {
            return None;
        }
        if self.options.remote.is_none() {
            return Some(ONLY_WATCHES);
        }
        match self.run() {
            None => Some("there is no run yet"),
            Some(run) if run.stopped().is_some() => Some("nothing to record: the run has ended"),
            Some(_) => None,
        }
    }
}
