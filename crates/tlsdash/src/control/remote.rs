//! Sends the requests of keys in `tlsdash watch` to the process of the shown run, over its control socket.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use model::history::Update;
use records::command::Command;
use records::ids::RunId;
use records::kinds::Level;
use serde::Deserialize;
use tui::{DashboardSender, Event, RemoteAction, RemoteRequest};

use super::client::ControlClient;
use super::protocol::{AccessData, ControlRequest, ControlResponse};
use crate::service::thread::spawn;

/// Requests that wait; a person does not press keys faster.
const REQUESTS_MAX: usize = 64;

/// Starts the thread that sends requests in succession, until the dashboard has ended. Results go to the dashboard,
/// unless the run's records show them.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn start(events: DashboardSender) -> anyhow::Result<SyncSender<RemoteRequest>> {
    let (sender, requests) = sync_channel(REQUESTS_MAX);
    // Not joined: a service that does not answer must not delay the exit.
    spawn("dashboard-control", move || serve(&requests, &events))?;
    Ok(sender)
}

fn serve(requests: &Receiver<RemoteRequest>, events: &DashboardSender) {
    for request in requests {
        let run = request.run;
        let (access, told) = match carry_out(&request) {
            Ok(told) => (Ok(()), told),
            Err(RemoteRefusal::Access(why)) => {
                // A key that was pressed gets an answer, a mere question none.
                let is_key = matches!(request.action, RemoteAction::Command(_));
                let told = is_key.then(|| (Level::Warning, format!("nothing was changed: {why}")));
                (Err(why), told)
            }
            Err(RemoteRefusal::Command(why)) => (Ok(()), Some((Level::Warning, why))),
        };
        let told = told.map(|(level, text)| Event::Update(Update::Notice(level, text)));
        for event in [Some(Event::Access(run, access)), told].into_iter().flatten() {
            if events.send(event).is_err() {
                return;
            }
        }
    }
}

enum RemoteRefusal {
    /// No service listens, or this user has no access.
    Access(String),
    /// The service refused the command, for this reason.
    Command(String),
}

impl From<anyhow::Error> for RemoteRefusal {
    fn from(error: anyhow::Error) -> Self {
        Self::Access(crate::error::line(&error))
    }
}

/// Returns the message to show, if the run's records do not show the result.
fn carry_out(request: &RemoteRequest) -> Result<Option<(Level, String)>, RemoteRefusal> {
    let RemoteRequest { run, socket, action } = request;
    let mut client = ControlClient::connect(socket)?;
    // On the same connection: the socket's file may be another service's at any time.
    check_access(*run, client.ask(&ControlRequest::Access {})?)?;
    let RemoteAction::Command(command) = action else { return Ok(None) };
    let request = request_of(command).ok_or_else(|| {
        RemoteRefusal::Command("only the dashboard beside the proxy can do this".to_owned())
    })?;
    let ControlResponse { ok, text, .. } = client.ask(&request)?;
    if !ok {
        return Err(RemoteRefusal::Command(text));
    }
    Ok(is_worth_telling(&request).then_some((Level::Notice, text)))
}

fn check_access(run: RunId, response: ControlResponse) -> Result<(), RemoteRefusal> {
    if !response.ok {
        return Err(RemoteRefusal::Access(response.text));
    }
    let data = response.data.and_then(|data| AccessData::deserialize(data).ok());
    let data =
        data.ok_or_else(|| RemoteRefusal::Access("the service does not say who may change it".to_owned()))?;
    if data.run != run.to_string() {
        let text = "its control socket serves another run by now: this one was replaced or killed";
        return Err(RemoteRefusal::Access(text.to_owned()));
    }
    if !data.write {
        return Err(RemoteRefusal::Access(format!(
            "{} may read and not change anything: --control-group names who may",
            data.client
        )));
    }
    Ok(())
}

/// The request for a command; `None` for commands that only the run's own process executes.
fn request_of(command: &Command) -> Option<ControlRequest> {
    Some(match command {
        Command::Set { name, value } => {
            ControlRequest::Set { name: name.clone(), value: value.to_string(), for_s: None }
        }
        Command::Mark(text) => ControlRequest::Mark { text: text.clone() },
        Command::Experiment(words) => ControlRequest::Experiment { words: words.clone() },
        Command::EndExperiment => ControlRequest::EndExperiment {},
        Command::Calibrate => ControlRequest::Calibrate {},
        Command::Upstream { name, drained } => {
            ControlRequest::Upstream { name: name.clone(), drained: *drained }
        }
        Command::Record(_) | Command::EndRecording | Command::WriteConfiguration | Command::Notice(_) => {
            return None;
        }
    })
}

/// True if no record shows the result at once.
fn is_worth_telling(request: &ControlRequest) -> bool {
    !matches!(
        request,
        ControlRequest::Set { .. } | ControlRequest::Mark { .. } | ControlRequest::EndExperiment {}
    )
}
