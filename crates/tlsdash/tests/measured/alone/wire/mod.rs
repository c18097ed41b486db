//! `tlsdash wire` beside real servers: what it counts of packets is what the clients did, exactly.
//!
//! | module | purpose |
//! |---|---|
//! | `servers` | servers whose packets are counted |
//! | `clients` | clients that know what they did |
//!
//! With `TLSDASH_WIRE_CONNECTIONS` the load makes so many connections instead of 200, and `--nocapture` shows a table:
//! `just wire-truth`.

mod clients;
mod servers;

use std::time::Instant;

use serde_json::Value;

use self::clients::{Counts, Plan, VERSIONS, Version};
use self::servers::Server;
use super::observe::test_bed::ObserveTestBed;
use crate::common::not_run::say_not_run;
use crate::common::{TlsdashProcess, journalctl, number, tlsdash};

/// What the fields of failed handshakes in a journal begin with.
const FAILED: &str = "TLSDASH_HANDSHAKES_FAILED_";

/// By what share quantiles of handshakes may differ from those of the proxy, which takes its times in its own process.
const TIMES_OFF: [(&str, f64); 2] = [("p50", 0.05), ("p99", 0.1)];
/// Runs of which one must have all times.
const RUNS_MAX: usize = 3;
/// Plaintext of a `close_notify`.
const GOODBYE_BYTES: u64 = 2;
/// More than the session tickets of a connection take.
const TICKETS_BYTES_MAX: u64 = 1_000;

/// A `tlsdash wire` that counts the packets of a server.
struct Wire(TlsdashProcess);

/// What it counted.
struct Counted {
    counts: Counts,
    /// Its last record of the counters.
    entry: Value,
    summary: Value,
}

impl Wire {
    fn start(site: &ObserveTestBed) -> Self {
        let mut command = tlsdash(site.folder.path());
        command.args(["wire", "--interface", "lo", "--headless", "--format", "json", "--port"]);
        command.arg(site.listen.port().to_string()).args(["--journal", "file:wire.journal"]);
        let mut process = TlsdashProcess::start({
            command.current_dir(site.folder.path());
            command
        });
        process.line_with("reading packets of lo");
        Self(process)
    }

    /// Ends it: it reads what was captured first.
    fn finish(self, site: &ObserveTestBed) -> Counted {
        let (code, printed, said) = self.0.end_and_tell();
        assert_eq!(code, 0, "{said}");
        let summary: Value = serde_json::from_str(&printed).unwrap();
        let entry = last_entry(site, "wire.journal");
        let refused = summary.pointer("/proxy/handshakes/full_by_reason/refused").and_then(Value::as_u64);
        let counts = Counts { refused: refused.unwrap(), ..Counts::of_entry(&entry) };
        std::fs::remove_file(site.path("wire.journal")).unwrap();
        Counted { counts, entry, summary }
    }
}

fn last_entry(site: &ObserveTestBed, journal: &str) -> Value {
    journalctl(&site.path(journal), &["TLSDASH_KIND=proxy"]).pop().expect("a record of the counters")
}

fn connections() -> u32 {
    std::env::var("TLSDASH_WIRE_CONNECTIONS")
        .map_or(200, |text| text.parse().expect("a number of connections"))
}

fn plan(requests_per_connection: u32) -> Plan {
    let connections = connections();
    Plan { connections, others: (connections / 40).clamp(5, 50), requests_per_connection }
}

/// Whether this test can read packets. It says so if it cannot.
fn can_capture(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        say_not_run(test, "only root can read packets");
    }
    is_root
}

/// Prints a row of the table.
fn show(server: &str, version: Version, begun: Instant, counts: Counts) {
    let Counts { connections, full, resumed, failed, refused, retried, .. } = counts;
    println!(
        "{server:17} TLS {} {connections:6} connections {full:6} full {resumed:6} resumed {refused:4} refused {retried:4} \
         retried {failed:4} failed, equal, in {:.1} s",
        version.name,
        begun.elapsed().as_secs_f64()
    );
}

/// Counts what clients do to a server, with both versions.
fn count_equally(test: &str, server: Server) {
    if !can_capture(test) {
        return;
    }
    let site = ObserveTestBed::new();
    let running = server.start(&site);
    for version in VERSIONS {
        let (begun, (_other, session)) = (Instant::now(), clients::session_of_another_server(version));
        let wire = Wire::start(&site);
        let plan = plan(server.requests_per_connection.unwrap_or(3));
        let made = clients::run(&site, version, plan, &session);
        let Counted { counts, summary, .. } = wire.finish(&site);
        assert_eq!(counts, made, "{} with TLS {}: {summary:#}", server.name, version.name);
        assert!(counts.retried > 0 || version.name == "1.2");
        show(server.name, version, begun, counts);
    }
    servers::end(running);
}

#[test]
fn handshakes_of_nginx_are_counted_exactly() {
    count_equally("handshakes_of_nginx_are_counted_exactly", servers::NGINX);
}

#[test]
fn handshakes_of_haproxy_are_counted_exactly() {
    count_equally("handshakes_of_haproxy_are_counted_exactly", servers::HAPROXY);
}

#[test]
fn handshakes_of_hitch_are_counted_exactly() {
    count_equally("handshakes_of_hitch_are_counted_exactly", servers::HITCH);
}

#[test]
fn handshakes_of_stunnel_are_counted_exactly() {
    count_equally("handshakes_of_stunnel_are_counted_exactly", servers::STUNNEL);
}

#[test]
fn handshakes_of_caddy_are_counted_exactly() {
    count_equally("handshakes_of_caddy_are_counted_exactly", servers::CADDY);
}

#[test]
fn handshakes_of_a_go_server_are_counted_exactly() {
    count_equally("handshakes_of_a_go_server_are_counted_exactly", servers::GO);
}

#[test]
fn handshakes_of_openssls_server_are_counted_exactly() {
    count_equally("handshakes_of_openssls_server_are_counted_exactly", servers::OPENSSL);
}

#[test]
fn handshakes_of_tlsdash_are_counted_as_it_counts_itself() {
    if !can_capture("handshakes_of_tlsdash_are_counted_as_it_counts_itself") {
        return;
    }
    for version in VERSIONS {
        let (begun, (_other, session)) = (Instant::now(), clients::session_of_another_server(version));
        let site = ObserveTestBed::new();
        let wire = Wire::start(&site);
        let mut proxy = TlsdashProcess::start(servers::tlsdash_proxy(&site, "1500ms"));
        proxy.address();
        let mut made = clients::run(&site, version, plan(3), &session);
        let silent = clients::stay_silent(&site);
        made.connections += silent.connections;
        made.failed += silent.failed;
        assert_eq!(proxy.end().0, 0);
        let Counted { counts, entry, summary } = wire.finish(&site);
        assert_eq!(counts, made, "TLS {}: {summary:#}", version.name);
        let own = last_entry(&site, "proxy.journal");
        assert_eq!(Counts { refused: made.refused, ..Counts::of_entry(&own) }, made);
        assert_causes_equal(&entry, &own);
        show("tlsdash", version, begun, counts);
    }
}

#[test]
fn times_and_bytes_of_tlsdash_are_those_that_it_says_itself() {
    if !can_capture("times_and_bytes_of_tlsdash_are_those_that_it_says_itself") {
        return;
    }
    for version in VERSIONS {
        // On a busy machine a worker may wake up late, which is in its own times and in no packet's.
        let mut off = times_off_of_run(version);
        for _ in 1..RUNS_MAX {
            if !off.is_empty() {
                off = times_off_of_run(version);
            }
        }
        assert!(off.is_empty(), "TLS {}: {off:?}", version.name);
    }
}

/// Compares counts and bytes, and gives the times that differ.
fn times_off_of_run(version: Version) -> Vec<String> {
    let mut site = ObserveTestBed::new();
    let wire = Wire::start(&site);
    let mut proxy = TlsdashProcess::start(servers::tlsdash_proxy(&site, "10s"));
    let server = proxy.address();
    let network = clients::slow_network(server);
    site.listen = network.address;
    let plan = Plan { connections: 200, others: 0, requests_per_connection: 1 };
    let made = clients::load(&site, version, plan);
    site.listen = server;
    let (code, printed) = proxy.end();
    assert_eq!(code, 0);
    let Counted { counts, entry, summary } = wire.finish(&site);
    assert_eq!(counts, made);
    let tls_bytes = ["TLSDASH_WIRE_BYTES_IN_TOTAL", "TLSDASH_WIRE_BYTES_OUT_TOTAL"];
    let tls_bytes = tls_bytes.map(|field| number(&entry, field));
    println!("TLS {}: {tls_bytes:?} TLS bytes in and out", version.name);
    assert_eq!(tls_bytes, network.forwarded(), "TLS bytes, by packets and as they were forwarded");
    let own = serde_json::from_str(&printed).unwrap();
    assert_plaintext_equal(&summary, &own, version, counts.connections);
    times_off(&summary, &own)
}

/// Compares failed handshakes by cause.
fn assert_causes_equal(counted: &Value, own: &Value) {
    let causes: Vec<_> = own.as_object().unwrap().keys().filter(|field| field.starts_with(FAILED)).collect();
    let of = |entry: &Value| causes.iter().map(|field| number(entry, field)).collect::<Vec<_>>();
    assert_eq!(of(counted), of(own), "{causes:?}");
    assert!(of(own).iter().filter(|count| **count > 0).count() > 5, "{own:#}");
}

/// Compares plaintext. In TLS 1.3 packets show neither what is a goodbye nor what is a session ticket: they count too.
fn assert_plaintext_equal(counted: &Value, own: &Value, version: Version, connections: u64) {
    let of = |summary: &Value| {
        ["/proxy/bytes/in", "/proxy/bytes/out"]
            .map(|pointer| summary.pointer(pointer).and_then(Value::as_u64).unwrap())
    };
    let ([counted_in, counted_out], [own_in, own_out]) = (of(counted), of(own));
    println!("plaintext in {counted_in} by packets, {own_in} by the proxy; out {counted_out}, {own_out}");
    assert!(own_in > 0 && own_out > 0);
    if version.name == "1.2" {
        assert_eq!([counted_in, counted_out], [own_in, own_out]);
    } else {
        assert_eq!(counted_in, own_in + connections * GOODBYE_BYTES);
        let more = counted_out - own_out;
        assert!(more <= connections * TICKETS_BYTES_MAX, "{more} for {connections} connections");
    }
}

/// The times of full and of resumed handshakes that differ.
fn times_off(counted: &Value, own: &Value) -> Vec<String> {
    let mut off = Vec::new();
    for class in ["handshake_full", "handshake_resumed"] {
        for (quantile, off_max) in TIMES_OFF {
            let pointer = format!("/proxy/latency_us/{class}/{quantile}");
            let [counted, own] =
                [counted, own].map(|summary| summary.pointer(&pointer).and_then(Value::as_f64).unwrap());
            let text = format!("{class}: {quantile} {counted} us by packets, {own} us by the proxy");
            println!("{text}");
            if (counted / own - 1.0).abs() > off_max {
                off.push(text);
            }
        }
    }
    off
}
