//! Compares what the estimates say that a change saves with what the change saves: `just savings`, or `just savings 100`
//! for so many rounds.
//!
//! A proxy with one worker serves clients of this process. In each round they come as they did before the change, and as
//! they do after it. The estimate is made from the records of the first kind alone, and from a calibration. It is compared
//! with what the change saves inside the TLS library, which is all that an estimate claims. What the worker's thread saves as
//! a whole, kernel included, is printed beside it.
//!
//! Resumption is compared with an RSA-2048 certificate, as with an ECDSA one it saves hardly anything; and without any resumed
//! handshake before the change, with either.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use model::insight::{HandshakeMix, SavingChange};
use model::runs::Model;
use proxy_core::{Certificate, Proxy, ProxyConfig, Upstream, calibrate};
use recorder::host::HostSampler;
use recorder::publish::Publisher;
use records::delta::{Delta, ProxyDelta};
use records::ids::RunId;
use records::kinds::{Record, RunRecord, Timestamps};
use records::metrics::{CpuGroup, ProxyCounter, ProxyLatency};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConnection, RootCertStore, StreamOwned};

type Failure = Box<dyn Error + Send + Sync>;

/// Connections of each kind in a round.
const CONNECTIONS: u64 = 300;
/// An estimate may be off by this share of what was measured.
const TOLERANCE: f64 = 0.15;

/// Clients: their group, and the share of them that resume.
#[derive(Clone, Copy)]
struct ClientMix {
    group: &'static dyn SupportedKxGroup,
    resumed: f64,
}

/// What the worker spent on handshakes.
#[derive(Default)]
struct HandshakeCost {
    cpu_us: u64,
    compute_ns: u64,
    handshakes: u64,
}

struct SavingsBench {
    proxy: Proxy,
    roots: RootCertStore,
    host: HostSampler,
    _folder: tempfile::TempDir,
}

fn main() -> Result<(), Failure> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(40), |text| text.parse())?;
    let classical = ClientMix { group: kx_group::X25519, resumed: 0.4 };
    let hybrid = ClientMix { group: kx_group::X25519MLKEM768, ..classical };
    let [none, more] = [0.0, 0.8].map(|resumed| ClientMix { resumed, ..classical });
    let (resume, group) = (SavingChange::ResumeMore, SavingChange::ClassicalGroup);
    let cases = [
        (true, resume, classical, more),
        (true, resume, none, more),
        (false, resume, none, more),
        (false, group, hybrid, classical),
    ];
    let mut all_near = true;
    for (is_rsa, change, before, after) in cases {
        let certificate = if is_rsa { rsa_certificate()? } else { Certificate::generate(&[])? };
        all_near &= SavingsBench::start(certificate)?.compare(change, before, after, rounds)?;
    }
    let verdict = if all_near { "yes" } else { "NO" };
    writeln!(io::stdout(), "within {:.0} % of what the TLS library saves: {verdict}", TOLERANCE * 100.0)?;
    Ok(())
}

/// Answers one byte with one byte, for a connection after the other.
fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut byte = [0];
    if stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn rsa_certificate() -> Result<Certificate, Failure> {
    let folder = tempfile::tempdir()?;
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)?;
    let made = rcgen::CertificateParams::new(["localhost".to_owned()])?.self_signed(&pair)?;
    std::fs::write(&cert, made.pem())?;
    std::fs::write(&key, pair.serialize_pem())?;
    Ok(Certificate::load(&cert, &key)?)
}

impl SavingsBench {
    fn start(certificate: Certificate) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("app.sock");
        let upstream = UnixListener::bind(&path)?;
        std::thread::spawn(move || upstream.incoming().flatten().try_for_each(echo));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
        let mut config = ProxyConfig::new(vec!["127.0.0.1:0".parse()?], Upstream::unix(path), certificate);
        config.workers = std::num::NonZeroUsize::MIN;
        let proxy = Proxy::start(config)?;
        Ok(Self { proxy, roots, host: HostSampler::default(), _folder: folder })
    }

    /// Returns whether the estimate is near what was measured.
    fn compare(
        &mut self,
        change: SavingChange,
        before: ClientMix,
        after: ClientMix,
        rounds: u32,
    ) -> Result<bool, Failure> {
        let mut publisher = Publisher::new(RunId::random()?, Vec::<Record>::new(), 1_000, Timestamps::now());
        publisher.start(RunRecord::default(), Timestamps::now());
        publisher.calibration(calibrate()?, Timestamps::now());
        let (mut spent_before, mut spent_after) = (HandshakeCost::default(), HandshakeCost::default());
        for _ in 0..rounds {
            let delta = self.run(before, &mut spent_before)?;
            publisher.interval(Some(&delta), None, None, Timestamps::now());
            self.run(after, &mut spent_after)?;
        }
        let mut model = Model::default();
        publisher.sink().drain(..).for_each(|record| model.apply(record, None));
        let run = &model.runs_and_parts()[0];
        let mix = HandshakeMix::of(run, u64::MAX).ok_or("nothing was recorded")?;
        let costs = run.handshake_costs().ok_or("nothing was calibrated")?;
        let saved_us = |ns: f64| ns / 1e3 / mix.handshakes() as f64;
        let saved = change.saved_ns(&mix, costs).ok_or("there is no estimate")?;
        let (before_us, after_us) = (spent_before.each_us(), spent_after.each_us());
        let in_library_us = spent_before.compute_each_us() - spent_after.compute_each_us();
        let error = saved_us(saved.mid) / in_library_us - 1.0;
        writeln!(
            io::stdout(),
            "{change}: {before_us:.1} -> {after_us:.1} µs of CPU time for each of {} handshakes, saved {:.1}, of that \
             in the TLS library {in_library_us:.1}; estimated {:.1} ({:.1} to {:.1}), off by {:+.1} %",
            spent_before.handshakes,
            before_us - after_us,
            saved_us(saved.mid),
            saved_us(saved.low),
            saved_us(saved.high),
            error * 100.0,
        )?;
        Ok(error.abs() <= TOLERANCE)
    }

    fn run(&mut self, clients: ClientMix, spent: &mut HandshakeCost) -> Result<ProxyDelta, Failure> {
        let mut delta = ProxyDelta::default();
        self.proxy.collect(&mut delta, Duration::from_secs(1));
        delta.clear();
        let before_us = self.host.sample().cpu[CpuGroup::Proxy];
        connect_all(self.proxy.local_addrs()[0], clients, &self.roots)?;
        self.proxy.collect(&mut delta, Duration::from_secs(1));
        spent.cpu_us += self.host.sample().cpu[CpuGroup::Proxy] - before_us;
        let compute = |latency| delta.latencies[latency].sum_ns();
        spent.compute_ns += compute(ProxyLatency::ComputeFull) + compute(ProxyLatency::ComputeResumed);
        let count = |counter| delta.counters[counter];
        spent.handshakes += count(ProxyCounter::HandshakesFull) + count(ProxyCounter::HandshakesResumed);
        Ok(delta)
    }
}

impl HandshakeCost {
    fn each_us(&self) -> f64 {
        self.cpu_us as f64 / self.handshakes as f64
    }

    fn compute_each_us(&self) -> f64 {
        self.compute_ns as f64 / 1e3 / self.handshakes as f64
    }
}

fn connect_all(to: SocketAddr, clients: ClientMix, roots: &RootCertStore) -> Result<(), Failure> {
    let provider = CryptoProvider { kx_groups: vec![clients.group], ..default_provider() };
    let resuming = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let mut full = resuming.clone();
    full.resumption = Resumption::disabled();
    let (resuming, full) = (Arc::new(resuming), Arc::new(full));
    for n in 0..CONNECTIONS {
        let is_due = (n + 1) as f64 * clients.resumed;
        let resumes = is_due.floor() > (n as f64 * clients.resumed).floor();
        let config = if resumes { &resuming } else { &full };
        let connection = ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost")?)?;
        let mut tls = StreamOwned::new(connection, TcpStream::connect(to)?);
        tls.sock.set_nodelay(true)?;
        tls.write_all(b"x")?;
        tls.read_exact(&mut [0])?;
        tls.conn.send_close_notify();
        tls.flush()?;
    }
    Ok(())
}
