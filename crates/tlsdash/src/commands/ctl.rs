//! `tlsdash ctl`: one request to a running service.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use records::setting::SettingInfo;
use records::text::quantity::{grouped, moment, three_digits};
use records::text::table::TextTable;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::cli::Format;
use crate::cli::configuration::setting_infos;
use crate::control::client::{ask, find_socket};
use crate::control::protocol::{ControlRequest, ControlResponse, RECENT, SettingData, recent_time};
use crate::summary::{self, bytes};
use crate::value::{ParsedValue, PositiveDuration, time, whole};

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash ctl status
  tlsdash ctl set proxy.idle-timeout 30s --for 10m
  tlsdash ctl mark before the deployment
  tlsdash ctl clients --last 1m  # who uses most
  tlsdash ctl upstream app:80 drain";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CtlArgs {
    /// Socket of the service's --control [default: control.sock in $RUNTIME_DIRECTORY or /run/tlsdash]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) control: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub(crate) format: Format,
    #[command(subcommand)]
    pub(crate) request: CtlRequest,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlRequest {
    /// What runs, and its headline figures
    Status,
    /// Every setting with its value and when a change acts
    Settings,
    /// Change a setting, such as load.rate 200 or proxy.idle-timeout 30s
    Set {
        /// Its dotted name
        name: String,
        /// Its new value, with or without the unit
        value: String,
        /// Put the former value back after this time; even if this program is gone
        #[arg(long, value_name = "TIME")]
        r#for: Option<ParsedValue<PositiveDuration>>,
    },
    /// Leave a note in the time line
    Mark {
        /// The note
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Read the configuration file, certificates and keys again; as SIGHUP does
    Reload,
    /// Start the program anew and leave the clients to it; as SIGUSR2 does
    Upgrade,
    /// Serve open connections to their end, then end; as SIGTERM does
    Drain,
    /// Forget sessions and ticket keys: the next handshake of every client is full
    ForgetSessions,
    /// Make a new ticket key; tickets of the former keys are still accepted
    RotateTickets,
    /// Start or stop the built-in load; of a service that was started with one
    Load {
        /// What it shall do
        switch: LoadSwitch,
    },
    /// Drain an upstream, or return it to service, such as upstream app:80 drain
    Upstream {
        /// The upstream, as it was configured
        #[arg(value_name = "UPSTREAM")]
        name: String,
        /// What it shall do
        action: UpstreamAction,
    },
    /// Compare two values of a setting; in the words of --ab, such as workers=1..2,pairs=12
    Ab {
        /// The plan; `end` ends the experiment that is under way
        #[arg(value_name = "WORDS")]
        words: String,
    },
    /// The clients with rates and totals; those with most bytes first
    Clients {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(1..=1_000_000))]
        limit: usize,
        /// Sort by the bytes of this time, and tell its rates: up to 5m, rounded up to steps of 10 s; without it, by
        /// those since the start, and rates of a minute
        #[arg(long, value_name = "TIME", value_parser = recent)]
        last: Option<Duration>,
    },
    /// The certificates, the one that ends first at the top
    Certificates,
    /// Measure what handshakes cost on this machine
    Calibrate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadSwitch {
    /// Send requests.
    Start,
    /// Send no more.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpstreamAction {
    /// Get no new connections.
    Drain,
    /// Get new connections again.
    Return,
}

fn recent(text: &str) -> Result<Duration, String> {
    let last = time(text).map_err(|error| error.to_string())?;
    recent_time(last.as_secs_f64())
}

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
        CtlRequest::Clients { limit, last } => {
            ControlRequest::Clients { limit: *limit, last_s: last.map(|time| time.as_secs_f64()) }
        }
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
        ControlRequest::Clients { last_s, .. } => {
            clients(data, last_s.unwrap_or(RECENT.as_secs_f64()), &mut text);
        }
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
        let value = setting.in_words(&setting.value, SettingInfo::find(setting_infos::all(), &setting.name));
        let origin = origin.map_or_else(String::new, |origin| format!(", {origin}"));
        let _ = writeln!(text, "{:width$}  {value}  ({}{origin})", setting.name, setting.applies);
    }
}

fn clients(data: &Json, asked_s: f64, text: &mut String) {
    let clients: Vec<_> = data.as_array().into_iter().flatten().collect();
    let Some(span_s) = clients.first().and_then(|client| client["last"]["span_s"].as_f64()) else { return };
    let number = |value: &Json| value.as_f64().unwrap_or(0.0);
    let row = |client: &&Json| {
        let rate = |name: &str| number(&client["last"][name]);
        let total = |name: &str| number(&client[name]);
        let size = |number: f64| bytes(number.round() as u64);
        let count = |name: &str| grouped(total(name));
        [
            word(&client["client"]).to_owned(),
            size(rate("bytes_in_per_s")) + "/s",
            size(rate("bytes_out_per_s")) + "/s",
            three_digits(rate("connections_per_s")),
            size(total("bytes_in")),
            size(total("bytes_out")),
            count("connections"),
            count("handshakes_full"),
            count("handshakes_resumed"),
            count("errors"),
        ]
    };
    let headings =
        ["client", "in/s", "out/s", "conn/s", "in", "out", "connections", "full", "resumed", "errors"];
    let rows: Vec<_> = clients.iter().map(row).collect();
    let steps = if span_s > asked_s { " (clients are counted in steps of 10 s)" } else { "" };
    let _ = writeln!(text, "rates of the last {span_s:.0} s{steps}, totals since the start");
    text.push_str(&TextTable::of_rows(headings, &(1..10), &rows).text());
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
    let requests = &data["requests"];
    if !requests.is_null() {
        let _ = writeln!(text, "requests {}, {} failed", requests["total"], requests["failed"]);
    }
    if let Some(experiment) = data["experiment"].as_str() {
        let _ = writeln!(text, "experiment: {experiment}");
    }
    for finding in data["findings"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "finding {}: tlsdash explain says more", word(finding));
    }
}

fn word(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_clients_have_their_time_and_a_unit_that_fits() {
        let data = serde_json::json!([{
            "client": "10.0.0.7",
            "bytes_in": 18_000, "bytes_out": 61_206_000,
            "connections": 31, "handshakes_full": 31, "handshakes_resumed": 0, "errors": 0,
            "last": {"span_s": 14.2, "connections_per_s": 0.156, "bytes_in_per_s": 90.4, "bytes_out_per_s": 4_120.0},
        }]);
        let told = |asked_s| {
            let mut text = String::new();
            clients(&data, asked_s, &mut text);
            text
        };
        let steps = told(10.0);
        assert!(
            steps.starts_with("rates of the last 14 s (clients are counted in steps of 10 s), totals"),
            "{steps}"
        );
        assert!(steps.contains("  90 B/s  4.12 kB/s   0.156  18.00 kB  61.21 MB  "), "{steps}");
        assert!(told(60.0).starts_with("rates of the last 14 s, totals since the start\n"), "a young run");
    }
}
