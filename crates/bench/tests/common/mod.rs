//! Scenarios and cells that were made up, whose figures are known.

#![allow(dead_code, reason = "each test uses its part")]

use bench::results::{CellResult, NegotiatedParameters, ResourceUsage};
use bench::scenario::{
    BenchCase, BenchTarget, BenchTlsConfig, ExternalServer, KeyKind, Placement, Question, Scenario, Server,
};
use std::time::Duration;

/// A scenario of these targets, of which the first is the baseline, and these cases.
pub(crate) fn scenario(targets: &[&str], cases: &[(&str, Question)]) -> Scenario {
    let target = |(at, name): (usize, &&str)| BenchTarget {
        name: (*name).to_owned(),
        line: 10 + at,
        certificate: KeyKind::Ecdsa,
        workers: 1,
        descriptors: None,
        start_timeout: None,
        server: Server::Address(ExternalServer {
            url: "https://127.0.0.1:8443".to_owned(),
            pid: None,
            unit: None,
            ca: None,
        }),
    };
    let case = |(at, (name, question)): (usize, &(&str, Question))| BenchCase {
        name: (*name).to_owned(),
        line: 30 + at,
        question: *question,
        only: Vec::new(),
        path: "/bytes/13".to_owned(),
        flags: Vec::new(),
        duration: Some(Duration::from_secs(5)),
        warmup: Duration::from_secs(1),
        turns: None,
        bound: None,
        quick: None,
        primary: true,
    };
    Scenario {
        name: "proxies".to_owned(),
        title: "terminators of TLS before one upstream".to_owned(),
        notes: Vec::new(),
        baseline: targets[0].to_owned(),
        rounds: 6,
        cpus: Some(Placement {
            target: Some("0".to_owned()),
            load: Some("1".to_owned()),
            upstream: Some("1".to_owned()),
        }),
        certificate: None,
        upstream: None,
        tls: BenchTlsConfig {
            key: KeyKind::Ecdsa,
            cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
            group: "X25519".to_owned(),
        },
        targets: targets.iter().enumerate().map(target).collect(),
        cases: cases.iter().enumerate().map(case).collect(),
        assertions: Vec::new(),
        published: Vec::new(),
    }
}

/// A cell of 1,000 requests in 5 s: at `cpu_us` of CPU time a request, and latencies of so many microseconds.
pub(crate) fn cell(round: u32, target: &str, case: &str, cpu_us: f64, p99_us: f64) -> CellResult {
    let figures = [
        ("requests.answered", 1_000.0),
        ("rate.achieved", 200.0),
        ("errors", 0.0),
        ("response.n", 1_000.0),
        ("response.p50", p99_us / 4.0),
        ("response.p99", p99_us),
        ("service.p99", p99_us * 0.9),
        ("handshake_full.p50", p99_us / 5.0),
    ];
    let user_us = (cpu_us * 700.0).round() as u64;
    let all_us = (cpu_us * 1_000.0).round() as u64;
    let usage = ResourceUsage {
        user_us,
        system_us: all_us - user_us,
        wall_us: 5_000_000,
        pss_at_rest: 10_000_000,
        pss_peak: 20_000_000,
        threads_max: 3,
        ..ResourceUsage::default()
    };
    CellResult {
        round,
        position: 1,
        target: target.to_owned(),
        case: case.to_owned(),
        began_us: 1_700_000_000_000_000 + u64::from(round) * 60_000_000,
        rate: Some(200.0),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        target_usage: Some(usage),
        load_usage: ResourceUsage {
            user_us: 40_000,
            system_us: 10_000,
            wall_us: 5_000_000,
            ..ResourceUsage::default()
        },
        negotiated: Some(NegotiatedParameters {
            version: "TLSv1.3".to_owned(),
            cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
            group: "X25519".to_owned(),
            alpn: String::new(),
        }),
        response_curve: vec![(50.0, (p99_us / 4.0) as u64), (99.0, p99_us as u64)],
        ..CellResult::default()
    }
}

/// Six rounds of a case, in which the second target needs 10 % less CPU time, in some rounds 1 % more or less of that, and
/// the third as much as the first by turns 2 % more and less.
pub(crate) fn six_rounds(case: &str) -> Vec<CellResult> {
    let of_round = |round: u32| {
        let noise = [1.01, 0.99, 1.0][round as usize % 3];
        let level = 100.0 + 10.0 * f64::from(round);
        let around = if round.is_multiple_of(2) { 1.02 } else { 1.0 / 1.02 };
        [
            cell(round, "base", case, level, 4_000.0),
            cell(round, "lean", case, level * 0.9 * noise, 3_000.0),
            cell(round, "same", case, level * around, 4_000.0),
        ]
    };
    (1..=6).flat_map(of_round).collect()
}
