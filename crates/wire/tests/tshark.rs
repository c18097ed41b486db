//! What tshark reads in the committed captures, connection by connection, is what is counted of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../journal/tests/common/not_run.rs"]
mod not_run;
mod recorded;

use std::collections::BTreeMap;
use std::process::Command;

use hello::{alert_words, group_name, suite_name, version_name};
use recorded::{CAPTURES, Capture, PORTS, records, usage};
use records::kinds::ConnectionOutcome;
use records::metrics::{Dimension, UsageCounter};

/// Fields of tshark, in the order that [`Connection::add`] reads them.
const FIELDS: [&str; 10] = [
    "tcp.stream",
    "tls.handshake.type",
    "tls.handshake.extension.type",
    "tls.handshake.extensions_server_name",
    "tls.handshake.version",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.ciphersuite",
    "tls.handshake.extensions_key_share_group",
    "tls.handshake.server_named_curve",
    "tls.alert_message.desc",
];
const FINGERPRINT: &str = "tls.handshake.ja4";

const CLIENT_HELLO: u32 = 1;
const SERVER_HELLO: u32 = 2;
const CERTIFICATE: u32 = 11;
const PRE_SHARED_KEY: u32 = 41;
const TLS13: u32 = 0x0304;

/// What tshark reads of a connection.
#[derive(Clone, Debug, Default)]
struct Connection {
    server_name: String,
    version: u32,
    suite: u32,
    group: u32,
    offers_psk: bool,
    takes_psk: bool,
    has_certificate: bool,
    server_hellos: u32,
    alerts: Vec<u32>,
}

/// A connection as both say it: version, suite, group, server name, whether it resumed.
type Told = (String, String, String, String, bool);

fn tshark(capture: Capture, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture.path()).args(["-Y", filter, "-T", "fields", "-E", "separator=|"]);
    command.args(PORTS.iter().flat_map(|port| ["-d".to_owned(), format!("tcp.port=={port},tls")]));
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output =
        command.output().expect("this test needs tshark: install Debian's package tshark (.ci/setup does)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("fields are text");
    text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// The numbers in a field, which may be several.
fn numbers(field: &str) -> Vec<u32> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let texts = field.split(',').filter(|text| !text.is_empty());
    texts.map(|text| number(text).unwrap_or_else(|_| panic!("no number: {text}"))).collect()
}

impl Connection {
    fn add(&mut self, fields: &[String]) {
        let [_, kinds, extensions, name, version, supported, suite, key_share, curve, alerts] = fields else {
            panic!("{fields:?}")
        };
        let [kinds, extensions, key_share, curve] =
            [kinds, extensions, key_share, curve].map(|field| numbers(field));
        self.alerts.extend(numbers(alerts));
        self.has_certificate |= kinds.contains(&CERTIFICATE);
        let has_psk = extensions.contains(&PRE_SHARED_KEY);
        if kinds.contains(&CLIENT_HELLO) {
            self.server_name.clone_from(name);
            self.offers_psk |= has_psk;
        }
        if kinds.contains(&SERVER_HELLO) {
            self.server_hellos += 1;
            self.version = numbers(supported).first().copied().unwrap_or_else(|| numbers(version)[0]);
            self.suite = numbers(suite)[0];
            self.takes_psk = has_psk;
            self.group = key_share.first().copied().unwrap_or_default();
        }
        self.group = curve.first().copied().unwrap_or(self.group);
    }

    fn is_resumed(&self) -> bool {
        if self.version == TLS13 { self.takes_psk } else { !self.has_certificate }
    }

    fn told(&self) -> Told {
        let [version, suite, group] = [self.version, self.suite, self.group].map(|n| n as u16);
        let group = if group == 0 { "" } else { &group_name(group) };
        let name = self.server_name.clone();
        (
            version_name(version).to_owned(),
            suite_name(suite).to_string(),
            group.to_owned(),
            name,
            self.is_resumed(),
        )
    }
}

fn connections(capture: Capture) -> Vec<Connection> {
    let mut connections = BTreeMap::<u32, Connection>::new();
    for fields in tshark(capture, "tls.handshake || tls.alert_message", &FIELDS) {
        connections.entry(numbers(&fields[0])[0]).or_default().add(&fields);
    }
    connections.into_values().collect()
}

#[test]
fn complete_handshakes_are_those_that_tshark_reads() {
    for capture in [CAPTURES[0], CAPTURES[1]] {
        let read = connections(capture);
        let mut of_tshark: Vec<_> = read.iter().map(Connection::told).collect();
        let mut counted: Vec<Told> = records(&capture.pieces())
            .into_iter()
            .map(|record| (record.tls_version, record.cipher, record.group, record.sni, record.resumed))
            .collect();
        of_tshark.sort();
        counted.sort();
        assert_eq!(counted, of_tshark, "{}", capture.name);
        assert_eq!(of_tshark.len() as u64, capture.counts.accepted);
        let retried = read.iter().filter(|read| read.server_hellos == 2 && !read.is_resumed()).count();
        assert_eq!(retried as u64, capture.counts.retried, "{}", capture.name);
    }
}

#[test]
fn refused_keys_are_those_that_tshark_reads() {
    let is_refused = |read: &Connection| read.offers_psk && !read.takes_psk;
    let refused = connections(CAPTURES[1]).into_iter().filter(is_refused).count();
    assert_eq!(refused as u64, CAPTURES[1].counts.refused);
}

#[test]
fn alerts_in_the_clear_are_those_that_tshark_reads() {
    let words = |description: u32| alert_words(description as u8).into_owned();
    let mut of_tshark: Vec<_> =
        connections(CAPTURES[2]).iter().flat_map(|read| read.alerts.clone()).map(words).collect();
    let mut counted: Vec<_> = records(&CAPTURES[2].pieces())
        .into_iter()
        .filter(|record| record.outcome.is_error() && record.outcome != ConnectionOutcome::NotTls)
        .filter_map(|record| {
            Some(record.detail.split_once("alert of the ")?.1.split_once(": ")?.1.to_owned())
        })
        .filter(|words| words != "encrypted alert")
        .collect();
    of_tshark.sort();
    counted.sort();
    assert_eq!(counted, of_tshark);
    assert_eq!(counted.len(), 4, "an unknown authority twice, an old version, no common suite");
}

#[test]
fn fingerprints_are_those_that_tshark_computes() {
    let known =
        Command::new("tshark").args(["-G", "fields"]).output().expect("this test needs tshark (.ci/setup)");
    if !String::from_utf8_lossy(&known.stdout).contains(&format!("\t{FINGERPRINT}\t")) {
        let test = "fingerprints_are_those_that_tshark_computes";
        return not_run::say_not_run(test, "this tshark has no JA4: 4.2 has it");
    }
    for capture in CAPTURES {
        let mut of_tshark = BTreeMap::<_, (String, u64)>::new();
        for fields in tshark(capture, "tls.handshake.type == 1", &["tcp.stream", FINGERPRINT]) {
            // A second ClientHello of a connection answers a HelloRetryRequest.
            of_tshark.entry(fields[0].clone()).or_insert_with(|| (fields[1].clone(), 1));
        }
        let mut sums = BTreeMap::<String, u64>::new();
        for (fingerprint, count) in of_tshark.into_values() {
            *sums.entry(fingerprint).or_default() += count;
        }
        let counters =
            [UsageCounter::HandshakesFull, UsageCounter::HandshakesResumed, UsageCounter::HandshakesFailed];
        let counted: BTreeMap<_, _> = usage(&capture.pieces(), Dimension::Fingerprint)
            .into_iter()
            .map(|row| (row.value.to_string(), counters.iter().map(|counter| row.counters[*counter]).sum()))
            .collect();
        assert_eq!(counted, sums, "{}", capture.name);
    }
}
