//! Measures the cost of the parts of a handshake on this machine: key exchanges, signatures, and the rest of
//! handshakes between an in-memory client and the proxy's own engine.
//!
//! All costs are measured in rotation, in short slices, so a disturbance of the machine affects all of them and shows
//! in their spread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use records::kinds::{Cost, CostTable, FULL, HYBRID, HandshakeCosts, RESUMED};
use records::values::TlsVersion;
use rustix::time::{ClockId, clock_gettime};
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::crypto::aws_lc_rs::{self, sign::any_supported_type};
use rustls::crypto::{ActiveKeyExchange, CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::Signer;
use rustls::{NamedGroup, RootCertStore, SignatureScheme};

use crate::io::buffer::Buffer;
use crate::tls::Certificate;
use crate::tls::TlsConfigError;
use crate::tls::certificates::error::TlsFileError;
use crate::tls::engine::EngineError;
use crate::tls::provider::CryptoTime;
use crate::tls::server::config::TlsConfig;
use crate::tls::server::engine::Engine;
use crate::tls::server::live::{LiveTls, Tls};
use crate::tls::settings::{GROUPS, TlsSettings, supported_version};

/// CPU time that a calibration takes at most; on a slow machine the last slice may exceed it.
pub const CALIBRATION_CPU: Duration = Duration::from_millis(1_900);
/// Slices of each operation.
const ROUNDS: usize = 8;
/// Operations in a slice, at most.
const SLICE_MAX: usize = 32;
/// CPU time of a slice, which the last operation exceeds.
const SLICE: Duration = Duration::from_millis(12);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    #[error("cannot measure the costs of handshakes: {0}")]
    Certificate(#[from] TlsFileError),
    #[error("cannot measure the costs of handshakes: {0}")]
    Config(#[from] TlsConfigError),
    #[error("cannot measure the costs of handshakes: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot measure the costs of handshakes: {0}")]
    Handshake(String),
}

impl From<EngineError> for CalibrationError {
    fn from(error: EngineError) -> Self {
        Self::Handshake(error.to_string())
    }
}

/// Measures on the calling thread, which should have a low priority. It takes at most about [`CALIBRATION_CPU`] of CPU
/// time.
///
/// # Errors
/// When the library of cryptography fails.
pub fn calibrate() -> Result<HandshakeCosts, CalibrationError> {
    let began = thread_cpu();
    let mut operations = operations()?;
    for _ in 0..ROUNDS {
        if thread_cpu().saturating_sub(began) >= CALIBRATION_CPU * (ROUNDS as u32 - 1) / ROUNDS as u32 {
            break;
        }
        operations.iter_mut().try_for_each(MeasuredOperation::measure_slice)?;
    }
    let mut costs = HandshakeCosts::default();
    for MeasuredOperation { name, mut slices, operation } in operations {
        let Some(cost) = Cost::of_slices(&mut slices) else { continue };
        operation.table(&mut costs).insert(&name, cost);
    }
    costs.took_us = (thread_cpu().saturating_sub(began)).as_micros() as u64;
    Ok(costs)
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// One operation with its name, and the median of each slice in nanoseconds.
struct MeasuredOperation {
    name: String,
    operation: Operation,
    slices: Vec<u64>,
}

enum Operation {
    KeyExchange {
        group: &'static dyn SupportedKxGroup,
        client: Box<dyn ActiveKeyExchange>,
    },
    Signature(Box<dyn Signer>),
    /// A handshake without its key exchange and signature.
    Rest(Box<TestHandshake>),
}

impl MeasuredOperation {
    fn new(name: String, operation: Operation) -> Self {
        Self { name, operation, slices: Vec::with_capacity(ROUNDS) }
    }

    fn measure_slice(&mut self) -> Result<(), CalibrationError> {
        let began = thread_cpu();
        let mut times = Vec::with_capacity(SLICE_MAX);
        while times.len() < SLICE_MAX && thread_cpu().saturating_sub(began) < SLICE {
            times.push(self.operation.run()?.as_nanos() as u64);
        }
        times.sort_unstable();
        self.slices.extend(times.get(times.len() / 2));
        Ok(())
    }
}

impl Operation {
    /// Runs once, and returns the time that the proxy would have spent.
    fn run(&mut self) -> Result<Duration, CalibrationError> {
        match self {
            Self::KeyExchange { group, client } => {
                let _ = CryptoTime::take();
                group.start_and_complete(client.pub_key())?;
                Ok(Duration::from_nanos(CryptoTime::take().key_exchange_ns))
            }
            Self::Signature(signer) => {
                let began_at = Instant::now();
                // As long as what TLS 1.3 signs (RFC 8446, 4.4.3).
                signer.sign(&[b' '; 130])?;
                Ok(began_at.elapsed())
            }
            Self::Rest(handshake) => handshake.run(),
        }
    }

    fn table<'a>(&self, costs: &'a mut HandshakeCosts) -> &'a mut CostTable {
        match self {
            Self::KeyExchange { .. } => &mut costs.key_exchange,
            Self::Signature(_) => &mut costs.signature,
            Self::Rest(_) => &mut costs.rest,
        }
    }
}

fn operations() -> Result<Vec<MeasuredOperation>, CalibrationError> {
    let mut operations = Vec::new();
    for &(_, group) in GROUPS {
        let name = group_name(group.name());
        let operation = Operation::KeyExchange { group, client: group.start()? };
        operations.push(MeasuredOperation::new(name, operation));
    }
    for (kind, key) in keys()? {
        let key = any_supported_type(&key)?;
        if let Some(signer) = key.choose_scheme(SCHEMES) {
            operations.push(MeasuredOperation::new(kind.to_owned(), Operation::Signature(signer)));
        }
    }
    let (_, x25519) = GROUPS[0];
    let mut rest = |version, resumes, group, name: String| {
        let handshake = TestHandshake::new(version, resumes, group)?;
        operations.push(MeasuredOperation::new(name, Operation::Rest(Box::new(handshake))));
        Ok::<_, CalibrationError>(())
    };
    for (version, name) in [(TlsVersion::V13, "TLSv1.3"), (TlsVersion::V12, "TLSv1.2")] {
        rest(version, false, x25519, format!("{name} {FULL}"))?;
        rest(version, true, x25519, format!("{name} {RESUMED}"))?;
    }
    let hybrid = GROUPS.iter().find(|(_, group)| group_name(group.name()) == HYBRID);
    if let Some((_, hybrid)) = hybrid {
        rest(TlsVersion::V13, false, *hybrid, format!("TLSv1.3 {FULL} {HYBRID}"))?;
    }
    Ok(operations)
}

/// As connections record it.
fn group_name(group: NamedGroup) -> String {
    match group {
        NamedGroup::X25519 => "x25519".to_owned(),
        group => group.as_str().unwrap_or("other").to_owned(),
    }
}

/// Signature schemes that a client can verify; RSA by PSS, as TLS 1.3 demands.
const SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA256,
];

/// Keys by type of certificate. The RSA key is not secret and signs only noise, because generating one takes longer
/// than a calibration may.
fn keys() -> Result<Vec<(&'static str, PrivateKeyDer<'static>)>, CalibrationError> {
    let made = [
        ("ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256),
        ("ECDSA P-384", &rcgen::PKCS_ECDSA_P384_SHA384),
        ("Ed25519", &rcgen::PKCS_ED25519),
    ];
    let kept: [(_, &'static [u8]); 3] = [
        ("RSA-2048", include_bytes!("calibration/rsa-2048.der")),
        ("RSA-3072", include_bytes!("calibration/rsa-3072.der")),
        ("RSA-4096", include_bytes!("calibration/rsa-4096.der")),
    ];
    let mut keys = Vec::new();
    for (kind, algorithm) in made {
        let pair = rcgen::KeyPair::generate_for(algorithm);
        let pair = pair.map_err(|error| CalibrationError::Handshake(error.to_string()))?;
        keys.push((kind, PrivatePkcs8KeyDer::from(pair.serialize_der()).into()));
    }
    keys.extend(kept.into_iter().map(|(kind, der)| (kind, PrivatePkcs1KeyDer::from(der).into())));
    Ok(keys)
}

/// Handshakes of the proxy's engine with a client in memory.
struct TestHandshake {
    server: TlsConfig,
    client: Arc<ClientConfig>,
    resumes: bool,
}

impl TestHandshake {
    fn new(
        version: TlsVersion,
        resumes: bool,
        group: &'static dyn SupportedKxGroup,
    ) -> Result<Self, CalibrationError> {
        let certificate = Certificate::generate(&[])?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
        let provider = CryptoProvider { kx_groups: vec![group], ..aws_lc_rs::default_provider() };
        let mut client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[supported_version(version)])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        if !resumes {
            client.resumption = Resumption::disabled();
        }
        let settings = TlsSettings { groups: vec![group], ..TlsSettings::default() };
        let server = LiveTls::new(Tls { settings, ..Tls::new(certificate) }, false)?.config()?;
        let handshake = Self { server, client: Arc::new(client), resumes };
        // The first one is full, and brings the session that others resume.
        handshake.drive_handshake()?;
        Ok(handshake)
    }

    /// Shakes hands, and returns the time in the engine without key exchange and signature.
    fn run(&self) -> Result<Duration, CalibrationError> {
        let (engine, time) = self.drive_handshake()?;
        if engine.session().is_resumed() == self.resumes {
            Ok(time)
        } else {
            Err(CalibrationError::Handshake("a session was not resumed as it should be".to_owned()))
        }
    }

    fn drive_handshake(&self) -> Result<(Engine, Duration), CalibrationError> {
        let name = ServerName::try_from("localhost").expect("it is a name");
        let mut client = ClientConnection::new(Arc::clone(&self.client), name)?;
        let mut engine = Engine::new(&self.server)?;
        let (mut plaintext, mut time) = (Buffer::default(), Duration::ZERO);
        let in_memory = |error: std::io::Error| CalibrationError::Handshake(error.to_string());
        while client.wants_write() {
            let mut sent = vec![0; engine.partial_len()];
            while client.wants_write() {
                client.write_tls(&mut sent).map_err(in_memory)?;
            }
            let mut output = Buffer::default();
            let _ = CryptoTime::take();
            let began_at = Instant::now();
            engine.receive(&mut sent, &mut plaintext, &mut output)?;
            time += began_at.elapsed();
            let CryptoTime { key_exchange_ns, signature_ns } = CryptoTime::take();
            time = time.saturating_sub(Duration::from_nanos(key_exchange_ns + signature_ns));
            let mut answer = output.as_slice();
            while !answer.is_empty() {
                client.read_tls(&mut answer).map_err(in_memory)?;
                client.process_new_packets()?;
            }
        }
        Ok((engine, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_measures_every_part_in_bounded_time() {
        let costs = calibrate().unwrap();
        let names = |table: &CostTable| table.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&costs.key_exchange), ["X25519MLKEM768", "secp256r1", "secp384r1", "x25519"]);
        let kinds = ["ECDSA P-256", "ECDSA P-384", "Ed25519", "RSA-2048", "RSA-3072", "RSA-4096"];
        assert_eq!(names(&costs.signature), kinds);
        let rest = [
            "TLSv1.2 full",
            "TLSv1.2 resumed",
            "TLSv1.3 full",
            "TLSv1.3 full X25519MLKEM768",
            "TLSv1.3 resumed",
        ];
        assert_eq!(names(&costs.rest), rest);
        for table in [&costs.key_exchange, &costs.signature, &costs.rest] {
            for (name, Cost { low_ns, median_ns, high_ns }) in table.iter() {
                assert!(0 < low_ns && low_ns <= median_ns && median_ns <= high_ns, "{name}");
            }
        }
        let median = |name| costs.signature.of(name).unwrap().median_ns;
        assert!(median("RSA-4096") > 2 * median("RSA-2048"), "{costs:?}");
        // A build without optimisation takes longer than the bound in its last round.
        assert!(costs.took_us > 0 && costs.took_us < 20_000_000, "{} us", costs.took_us);
    }
}
