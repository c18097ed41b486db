//! The check of a target before its figures count: the negotiated parameters, and unchanged bodies.

use std::time::Duration;

use crate::results::NegotiatedParameters;
use crate::run::error::LoadFailure;
use crate::run::load::LoadRunner;
use crate::run::started::StartedTarget;
use crate::scenario::{BenchCase, BenchTarget, BenchTlsConfig};

/// The bodies that a target must give back byte for byte.
const ECHO_BYTES: usize = 10_000;
const ECHO_REQUESTS: u32 = 3;
/// The first request takes a JVM seconds on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The parameters that a target must negotiate in a case; `None` without TLS.
pub(super) fn expected(
    tls: &BenchTlsConfig,
    target: &BenchTarget,
    case: &BenchCase,
) -> Option<NegotiatedParameters> {
    if !target.has_tls() {
        return None;
    }
    let is_tls12 = case.flag("tls-version") == Some("1.2");
    Some(NegotiatedParameters {
        version: if is_tls12 { "TLSv1.2" } else { "TLSv1.3" }.to_owned(),
        // The suite of TLS 1.2 depends on the certificate, and no other is offered.
        cipher: if is_tls12 { String::new() } else { tls.cipher.clone() },
        group: tls.group.clone(),
        alpn: if case.is_http2() { "h2".to_owned() } else { String::new() },
    })
}

/// Requests echoes and the case's path, on one connection each, and returns the negotiated parameters.
///
/// # Errors
/// If an answer is wrong, or other parameters were negotiated.
pub(super) fn check(
    generator: &LoadRunner<'_>,
    tls: &BenchTlsConfig,
    target: &BenchTarget,
    started: &mut StartedTarget,
    case: &BenchCase,
) -> Result<Option<NegotiatedParameters>, LoadFailure> {
    let journal = generator.setup.scratch("check.journal");
    let mut negotiated = None;
    for request in requests(target, case) {
        let run = generator.run(target, started, &request, &journal);
        // The next check overwrites it.
        let _ = std::fs::remove_file(&journal);
        let recording = run?.recording;
        if !recording.failures.is_empty() || recording.figure("requests.ok") == 0.0 {
            let reasons = recording.failures.join(", ");
            return Err(LoadFailure::Failed(format!(
                "{} is not answered as it should be: {reasons}",
                request.path
            )));
        }
        negotiated = recording.negotiated.into_iter().next().or(negotiated);
    }
    match (expected(tls, target, case), &negotiated) {
        (Some(expected), Some(found)) if !found.agrees_with(&expected) => {
            Err(LoadFailure::Failed(format!("it negotiates {found} and not {expected}")))
        }
        _ => Ok(negotiated),
    }
}

/// An echo, if the target has one, and the case's own request.
fn requests(target: &BenchTarget, case: &BenchCase) -> Vec<BenchCase> {
    let is_of_protocol = |flag: &&String| {
        ["--http2", "--tls-version", "--header", "--source-addresses"]
            .iter()
            .any(|name| flag.starts_with(name))
    };
    let protocol: Vec<String> = case.flags.iter().filter(is_of_protocol).cloned().collect();
    let of = |path: &str, more: &[String]| {
        let mut flags = protocol.clone();
        flags.extend(more.iter().cloned());
        flags.extend(["--connections=1".to_owned(), format!("--timeout={}s", TIMEOUT.as_secs())]);
        let path = path.to_owned();
        BenchCase { path, flags, duration: None, warmup: Duration::ZERO, ..case.clone() }
    };
    let echo = [
        format!("--requests={ECHO_REQUESTS}"),
        format!("--body-bytes={ECHO_BYTES}"),
        "--expect-echo".to_owned(),
    ];
    let own: Vec<String> = case
        .flags
        .iter()
        .filter(|flag| ["--method", "--body", "--expect"].iter().any(|name| flag.starts_with(name)))
        .cloned()
        .chain(["--requests=1".to_owned()])
        .collect();
    let has_own = case.flag("targets").is_none();
    let has_echo = target.echoes();
    let echo = has_echo.then(|| of("/echo", &echo));
    // What stands for the bytes of each response.
    let path = case.path.replace("{bytes}", "13");
    let own = has_own.then(|| of(&path, &own));
    echo.into_iter().chain(own).collect()
}
