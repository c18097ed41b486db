//! What tshark reads in the committed captures, connection by connection, is what is counted of them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::recorded::{CAPTURES, Capture, PORTS, records, totals, usage};
use hello::{alert_words, group_name, suite_name, version_name};
use records::kinds::ConnectionOutcome;
use records::metrics::{Dimension, ProxyCounter, TlsCounter, UsageCounter};
use sha2::{Digest as _, Sha256};

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
const EARLY_DATA: u32 = 42;
/// A client that comes back has the fingerprint of its first visit: these are left out.
const OFFERS: [u32; 2] = [PRE_SHARED_KEY, EARLY_DATA];
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
fn the_first_end_to_close_is_the_one_that_tshark_reads() {
    use ProxyCounter as P;
    for capture in CAPTURES {
        let mut of_tshark = [0; 4];
        let mut streams = BTreeSet::new();
        let fields = ["tcp.stream", "tcp.dstport", "tcp.flags"];
        for fields in tshark(capture, "tcp.flags.fin == 1 || tcp.flags.reset == 1", &fields) {
            let [stream, port, flags] = [0, 1, 2].map(|at| numbers(&fields[at])[0]);
            if streams.insert(stream) {
                let is_server = !PORTS.contains(&(port as u16));
                of_tshark[2 * usize::from(flags & 4 != 0) + usize::from(is_server)] += 1;
            }
        }
        let (counted, _) = totals(&capture.pieces());
        let counters = [P::ClosedByClient, P::ClosedByServer, P::ResetByClient, P::ResetByServer];
        assert_eq!(counters.map(|counter| counted[counter]), of_tshark, "{}", capture.name);
        assert_eq!(of_tshark.iter().sum::<u64>(), capture.counts.accepted);
    }
}

#[test]
fn early_data_is_offered_where_tshark_reads_it() {
    let filter = format!("tls.handshake.type == 1 && tls.handshake.extension.type == {EARLY_DATA}");
    let of_tshark = tshark(CAPTURES[1], &filter, &["tcp.stream"]).len() as u64;
    let (_, counted) = totals(&CAPTURES[1].pieces());
    assert_eq!((counted[TlsCounter::EarlyDataOffered], of_tshark), (1, 1));
}

/// Fields of a `ClientHello` of which JA4 is made.
const HELLO_FIELDS: [&str; 8] = [
    "tcp.stream",
    "tls.handshake.version",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.extensions_server_name",
    "tls.handshake.ciphersuite",
    "tls.handshake.extension.type",
    "tls.handshake.extensions_alpn_str",
    "tls.handshake.sig_hash_alg",
];

/// JA4 of fields that tshark reads, as of a client that does not offer to resume, by <https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md>.
fn ja4(fields: &[String]) -> String {
    let [_, version, supported, name, suites, extensions, alpn, algorithms] = fields else {
        panic!("{fields:?}")
    };
    let is_grease = |number: &u32| number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff;
    let list =
        |field: &str| numbers(field).into_iter().filter(|number| !is_grease(number)).collect::<Vec<_>>();
    let [versions, mut suites, mut extensions, algorithms] =
        [supported, suites, extensions, algorithms].map(|field| list(field));
    extensions.retain(|extension| !OFFERS.contains(extension));
    let version = versions.into_iter().max().unwrap_or_else(|| numbers(version)[0]);
    let version = match version & 0xff {
        4 => "13",
        3 => "12",
        2 => "11",
        other => panic!("version {other}"),
    };
    let domain = if name.is_empty() { 'i' } else { 'd' };
    let first = alpn.split(',').next().unwrap_or_default();
    let ends: String = first.chars().next().into_iter().chain(first.chars().last()).collect();
    let ends = if ends.is_empty() { "00" } else { &ends };
    let counts = [suites.len(), extensions.len()].map(|count| format!("{:02}", count.min(99)));
    suites.sort_unstable();
    extensions.retain(|extension| ![0, 16].contains(extension));
    extensions.sort_unstable();
    let hex = |list: &[u32]| list.iter().map(|number| format!("{number:04x}")).collect::<Vec<_>>().join(",");
    let hash = |text: &str| {
        let digest = Sha256::digest(text);
        // Its first 48 bits.
        format!("{:012x}", u64::from_be_bytes(digest[..8].try_into().unwrap()) >> 16)
    };
    let rest = if algorithms.is_empty() { vec![extensions] } else { vec![extensions, algorithms] };
    let rest = rest.iter().map(|list| hex(list)).collect::<Vec<_>>().join("_");
    format!("t{version}{domain}{}{ends}_{}_{}", counts.concat(), hash(&hex(&suites)), hash(&rest))
}

#[test]
fn fingerprints_are_those_of_the_fields_that_tshark_reads() {
    let known = Command::new("tshark").args(["-G", "fields"]).output();
    let known = known.expect("this test needs tshark: install Debian's package tshark (.ci/setup does)");
    // Tshark computes them itself since 4.2.
    let has_own = String::from_utf8_lossy(&known.stdout).contains(&format!("\t{FINGERPRINT}\t"));
    let counters =
        [UsageCounter::HandshakesFull, UsageCounter::HandshakesResumed, UsageCounter::HandshakesFailed];
    for capture in CAPTURES {
        let fields = [&HELLO_FIELDS[..], if has_own { &[FINGERPRINT] } else { &[] }].concat();
        let mut of_tshark = BTreeMap::<String, u64>::new();
        let mut streams = BTreeSet::new();
        for fields in tshark(capture, "tls.handshake.type == 1", &fields) {
            // A second ClientHello of a connection answers a HelloRetryRequest.
            if streams.insert(fields[0].clone()) {
                let computed = ja4(&fields[..HELLO_FIELDS.len()]);
                let offers = numbers(&fields[5]).iter().any(|extension| OFFERS.contains(extension));
                let own = fields.get(HELLO_FIELDS.len()).filter(|_| !offers);
                assert_eq!(own.unwrap_or(&computed), &computed);
                *of_tshark.entry(computed).or_default() += 1;
            }
        }
        let counted: BTreeMap<_, _> = usage(&capture.pieces(), Dimension::Fingerprint)
            .into_iter()
            .map(|(value, row)| (value, counters.iter().map(|counter| row[*counter]).sum()))
            .collect();
        assert_eq!(counted, of_tshark, "{}", capture.name);
    }
}
