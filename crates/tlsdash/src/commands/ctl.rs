//! `tlsdash ctl`: one request to a running service.

use std::fmt::Write as _;
use std::path::Path;

use records::text::quantity::{self, moment};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::cli::Format;
use crate::cli::ctl::{CtlArgs, CtlRequest, LoadSwitch, UpstreamAction};
use crate::control::client::{ask, find_socket};
use crate::control::protocol::{ControlRequest, ControlResponse, SettingData};
use crate::summary;

pub(crate) fn run(args: &CtlArgs) -> anyhow::Result<()> {
    send(args.control.as_deref(), &request(&args.request), args.format)
}

/// Sends a request to the socket, else the usual one, and prints the answer.
pub(super) fn send(socket: Option<&Path>, request: &ControlRequest, format: Format) -> anyhow::Result<()> {
    let socket = socket.map(Path::to_owned).map_or_else(find_socket, Ok)?;
    let response = ask(&socket, request)?;
    if format == Format::Json {
        summary::print_text(&(serde_json::to_string_pretty(&response)? + "\n"))?;
        anyhow::ensure!(response.ok, "refused: {}", response.text);
        return Ok(());
    }
    anyhow::ensure!(response.ok, "{}", response.text);
    summary::print_text(&text(request, &response))
}

fn request(args: &CtlRequest) -> ControlRequest {
    match args {
        CtlRequest::Status => ControlRequest::Status {},
        CtlRequest::Settings => ControlRequest::Settings {},
        CtlRequest::Set { name, value, r#for } => ControlRequest::Set {
            name: name.clone(),
            value: value.clone(),
            for_s: r#for.as_ref().map(|time| time.0.as_secs_f64()),
        },
        CtlRequest::Mark { text } => ControlRequest::Mark { text: text.join(" ") },
        CtlRequest::Reload => ControlRequest::Reload {},
        CtlRequest::Upgrade => ControlRequest::Upgrade {},
        CtlRequest::Drain => ControlRequest::Drain {},
        CtlRequest::ForgetSessions => ControlRequest::ForgetSessions {},
        CtlRequest::RotateTickets => ControlRequest::RotateTickets {},
        CtlRequest::Load { switch } => ControlRequest::Load { running: *switch == LoadSwitch::Start },
        CtlRequest::Upstream { name, action } => {
            ControlRequest::Upstream { name: name.clone(), drained: *action == UpstreamAction::Drain }
        }
        CtlRequest::Ab { words } if words == "end" => ControlRequest::EndExperiment {},
        CtlRequest::Ab { words } => ControlRequest::Experiment { words: words.clone() },
        CtlRequest::Clients { limit } => ControlRequest::Clients { limit: *limit },
        CtlRequest::Certificates => ControlRequest::Certificates {},
        CtlRequest::Calibrate => ControlRequest::Calibrate {},
    }
}

/// The answer for people.
fn text(request: &ControlRequest, response: &ControlResponse) -> String {
    let mut text = format!("{}\n", response.text);
    let Some(data) = &response.data else { return text };
    match request {
        ControlRequest::Settings {} => settings(data, &mut text),
        ControlRequest::Clients { .. } => clients(data, &mut text),
        ControlRequest::Certificates {} => certificates(data, &mut text),
        ControlRequest::Status {} => status(data, &mut text),
        _ => {}
    }
    text
}

fn settings(data: &Json, text: &mut String) {
    let settings = Vec::<SettingData>::deserialize(data).unwrap_or_default();
    let width = settings.iter().map(|described| described.setting.name.len()).max().unwrap_or(0);
    for SettingData { setting, origin } in settings {
        let value = setting.shown(&setting.value);
        let origin = origin.map_or_else(String::new, |origin| format!(", {origin}"));
        let _ = writeln!(text, "{:width$}  {value}  ({}{origin})", setting.name, setting.applies);
    }
}

fn clients(data: &Json, text: &mut String) {
    for client in data.as_array().into_iter().flatten() {
        let number = |name: &str| client[name].as_u64().unwrap_or(0);
        let bytes = |name: &str| quantity::shown(client[name].as_f64().unwrap_or(0.0), "B");
        let _ = writeln!(
            text,
            "{:<20} {:>8} connections  {:>8} full  {:>8} resumed  {:>10} in  {:>10} out  {:>6} errors",
            client["client"].as_str().unwrap_or_default(),
            number("connections"),
            number("handshakes_full"),
            number("handshakes_resumed"),
            bytes("bytes_in"),
            bytes("bytes_out"),
            number("errors"),
        );
    }
}

fn certificates(data: &Json, text: &mut String) {
    for one in data.as_array().into_iter().flatten() {
        let names = one["names"].as_array().into_iter().flatten().map(word);
        let number = |name: &str| one[name].as_u64().unwrap_or(0);
        let is = |name: &str| one[name].as_bool().unwrap_or(false);
        let marks = [("default", "default"), ("replaced", "replaced"), ("must_staple", "must-staple")];
        let marks: Vec<_> = marks.into_iter().filter(|(key, _)| is(key)).map(|(_, mark)| mark).collect();
        let _ = writeln!(
            text,
            "{:>5} days  {:<12} {:>2} in chain, {:>6} B  {:>8} full  {}  {}",
            one["days_left"].as_i64().unwrap_or(0),
            word(&one["key"]),
            number("chain"),
            number("chain_bytes"),
            number("handshakes"),
            names.collect::<Vec<_>>().join(" "),
            marks.join(", "),
        );
        let _ = writeln!(
            text,
            "            serial {} of {}  {}",
            word(&one["serial"]),
            word(&one["issuer"]),
            word(&one["file"])
        );
        if number("stapled_until") > 0 {
            let _ = writeln!(text, "            OCSP stapled until {}", moment(number("stapled_until")));
        }
        if number("renewal_at") > 0 {
            let _ = writeln!(text, "            ordered by ACME after {}", moment(number("renewal_at")));
        }
        for problem in ["faults", "refusal", "renewal_error"]
            .map(|name| word(&one[name]))
            .into_iter()
            .filter(|it| !it.is_empty())
        {
            let _ = writeln!(text, "            {problem}");
        }
    }
}

fn status(data: &Json, text: &mut String) {
    let (connections, handshakes) = (&data["connections"], &data["handshakes"]);
    let _ = writeln!(
        text,
        "version {}, pid {}, host {}",
        word(&data["version"]),
        data["pid"],
        word(&data["host"])
    );
    if !connections.is_null() {
        let _ = writeln!(
            text,
            "connections {} accepted, {} open, {} failed; handshakes {} full, {} resumed, {} failed; {} clients",
            connections["accepted"],
            connections["open"],
            connections["failed"],
            handshakes["full"],
            handshakes["resumed"],
            handshakes["failed"],
            data["clients"],
        );
    }
    for finding in data["findings"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "finding {}: tlsdash explain says more", word(finding));
    }
}

fn word(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}
