//! A real Prometheus evaluates the alert rules and the dashboard of docs over what `--metrics` serves.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use crate::common::{TlsdashProcess, tlsdash, until};
use crate::prometheus_program::Prometheus;
use serde_json::Value;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tlsdash-alerts.yml");
const DASHBOARD: &str = include_str!("../../../../docs/tlsdash-grafana.json");

/// A service with metrics, and their address.
fn service(folder: &Path, name: &str, args: &[&str]) -> (TlsdashProcess, String) {
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    let mut command = tlsdash(&folder);
    command.args(args).args(["--headless", "--metrics", "127.0.0.1:0", "--journal"]);
    command.arg(format!("file:{}", folder.join("own.journal").display()));
    let mut running = TlsdashProcess::start(command);
    let line = running.line_with("metrics on http://");
    (running, line.split("http://").nth(1).unwrap().trim_end_matches("/metrics").to_owned())
}

/// The expressions of all panels, for all instances.
fn expressions(panel: &Value, found: &mut Vec<String>) {
    match panel {
        Value::Object(map) => {
            let expression = map.get("expr").and_then(Value::as_str);
            found.extend(
                expression.map(|text| text.replace("$instance", ".*").replace("$__rate_interval", "1m")),
            );
            map.values().for_each(|value| expressions(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn prometheus_evaluates_every_rule_and_every_panel() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["demo", "--load", "rate=50,connections=4,resume=50%"];
    let (_tcp, tcp) = service(folder.path(), "tcp", &demo);
    let (_http, http) = service(folder.path(), "http", &[&demo[..], &["--mode", "http"]].concat());
    let broken = ["--listen", "127.0.0.1:0", "--upstream", "unix:/nowhere"];
    let (mut broken, metrics) = service(folder.path(), "broken", &broken);
    let dead = "127.0.0.1:1".to_string();
    let prometheus = Prometheus::start(folder.path(), &[tcp, http, metrics, dead.clone()], &[RULES], &[]);

    let mut all = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut all);
    assert!(all.len() >= 15, "{all:?}");
    let broken = broken.address();
    let mut rules = Value::Null;
    until("Prometheus has evaluated the rules", || {
        // A handshake that fails, and more of them while rates need two samples.
        let _ = TcpStream::connect(broken).and_then(|mut stream| stream.write_all(b"GET / HTTP/1.1\r\n\r\n"));
        let answer = prometheus.ask("rules", "").and_then(Result::ok).unwrap_or_default();
        rules = answer.pointer("/groups/0/rules").cloned().unwrap_or_default();
        rules.as_array().is_some_and(|rules| rules.iter().all(|rule| rule["health"] == "ok"))
            && prometheus
                .value("sum(rate(tlsdash_handshakes_failed_total[1m]))")
                .is_some_and(|rate| rate > 0.0)
    });
    let rules = rules.as_array().unwrap();
    assert_eq!(rules.len(), fs::read_to_string(RULES).unwrap().matches("- alert:").count());
    // An alert without a case is empty, unless its comparisons give 0 or 1.
    all.extend(rules.iter().map(|rule| {
        let expression = rule["query"].as_str().unwrap();
        [" > ", " < ", " == "]
            .iter()
            .fold(expression.to_owned(), |text, operator| text.replace(operator, &format!("{operator}bool ")))
    }));
    for expression in all {
        let mut answer = Value::Null;
        until(&expression, || {
            answer = prometheus
                .ask("query", &expression)
                .unwrap()
                .unwrap_or_else(|error| panic!("{expression}: {error}"));
            answer["result"].as_array().is_some_and(|result| !result.is_empty())
        });
    }
    let down = prometheus.ask("query", "ALERTS{alertname=\"TlsdashDown\"}").unwrap().unwrap();
    let down = down["result"].as_array().unwrap();
    assert_eq!(
        down.iter().map(|alert| &alert["metric"]["instance"]).collect::<Vec<_>>(),
        [&Value::from(dead)]
    );
}
