//! What all targets of a run share: certificates, the upstream, folders.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::certificate::{CertificateFiles, SERVER_NAME};
use super::error::RunError;
use crate::scenario::{Endpoint, KeyKind, Placement, Scenario, core_count};
use crate::target::{SupervisedCommand, Supervisor, wait_until_ready};

/// How long the upstream may take until it listens.
const UPSTREAM_PATIENCE: Duration = Duration::from_secs(10);
/// How long the user's upstream may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Other users may enter, and open files whose name they know.
const FOLDER_MODE: u32 = 0o711;
const PUBLIC_FOLDER_MODE: u32 = 0o755;
pub(super) const FILE_MODE: u32 = 0o644;
/// Who connects must be allowed to write.
const SOCKET_MODE: u32 = 0o666;
const FILE_BYTES_MAX: usize = 1 << 28;

/// What all targets of a run share. Dropping it ends the upstream and removes the files.
#[derive(Debug)]
pub(super) struct BenchSetup {
    /// This program.
    pub(super) tlsdash: PathBuf,
    /// The cores of target, generator and upstream.
    pub(super) placement: Placement,
    pub(super) upstream: SharedUpstream,
    /// True if the certificates are the user's, whose name and issuer are unknown.
    has_given_certificate: bool,
    certificates: Vec<(KeyKind, CertificateFiles)>,
    folder: TempDir,
}

/// The upstream of all targets: a separate process, or the user's, which has one endpoint.
#[derive(Debug)]
pub(super) struct SharedUpstream {
    /// `None` of the user's.
    pub(super) supervisor: Option<Supervisor>,
    pub(super) unix: Endpoint,
    pub(super) tcp: Endpoint,
    pub(super) threads: u32,
}

impl BenchSetup {
    /// Creates the files and starts the upstream. Workers that run as another user can access both, whatever the
    /// umask.
    ///
    /// # Errors
    /// If files cannot be written, or the upstream does not start.
    pub(super) fn prepare(
        tlsdash: &Path,
        scenario: &Scenario,
        placement: Placement,
    ) -> Result<Self, RunError> {
        // Short: the path of a Unix socket has at most 108 bytes.
        let folder = tempfile::Builder::new().prefix("tlsdash-bench-").tempdir();
        let folder = folder.map_err(RunError::files("a temporary folder"))?;
        let path = folder.path();
        set_mode(path, FOLDER_MODE).map_err(RunError::files("the temporary folder"))?;
        let mut certificates = Vec::new();
        for kind in scenario.targets.iter().map(|target| target.certificate) {
            if certificates.iter().all(|(known, _)| *known != kind) {
                let own = path.join(format!("{kind:?}").to_lowercase());
                let made = make_folder(&own).and_then(|()| match &scenario.certificate {
                    Some(paths) => CertificateFiles::copy(&own, paths),
                    None => CertificateFiles::write(&own, kind),
                });
                let what = if scenario.certificate.is_some() {
                    "a copy of the certificate"
                } else {
                    "the certificate"
                };
                certificates.push((kind, made.map_err(RunError::files(what))?));
            }
        }
        for name in ["build", "www", "www/bytes"] {
            make_folder(&path.join(name)).map_err(RunError::files("the temporary folder"))?;
        }
        write_static_files(scenario, &path.join("www/bytes")).map_err(RunError::files("the static files"))?;
        let upstream = match &scenario.upstream {
            Some(given) => SharedUpstream::given(given)?,
            None => SharedUpstream::start(tlsdash, path, &placement)?,
        };
        let has_given_certificate = scenario.certificate.is_some();
        let tlsdash = tlsdash.to_owned();
        Ok(Self { tlsdash, placement, upstream, has_given_certificate, certificates, folder })
    }

    pub(super) fn certificate(&self, kind: KeyKind) -> &CertificateFiles {
        let found = self.certificates.iter().find(|(known, _)| *known == kind);
        &found.expect("each target's kind has one").1
    }

    /// The flags with which the generator trusts a certificate, and the name that it asks for.
    pub(super) fn trust_flags(&self, kind: KeyKind) -> [String; 2] {
        let ca = || format!("--ca={}", self.certificate(kind).chain.display());
        let trust = if self.has_given_certificate { "--insecure".to_owned() } else { ca() };
        [trust, format!("--sni={SERVER_NAME}")]
    }

    /// The folder for the output of the `prepare` command with this fingerprint. It is created if necessary.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn build_folder(&self, fingerprint: u64) -> io::Result<PathBuf> {
        let folder = self.folder.path().join("build").join(format!("{fingerprint:016x}"));
        make_folder(&folder)?;
        Ok(folder)
    }

    /// The folder of static files.
    pub(super) fn www(&self) -> PathBuf {
        self.folder.path().join("www")
    }

    /// A new folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn new_folder(&self, name: &str) -> io::Result<TempDir> {
        let made = tempfile::Builder::new().prefix(name).tempdir_in(self.folder.path())?;
        set_mode(made.path(), FOLDER_MODE)?;
        Ok(made)
    }

    /// A file that the next call replaces.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl SharedUpstream {
    fn given(endpoint: &Endpoint) -> Result<Self, RunError> {
        let connected = match endpoint {
            Endpoint::Unix(path) => UnixStream::connect(path).map(drop),
            Endpoint::Tcp(address) => TcpStream::connect_timeout(address, CONNECT_PATIENCE).map(drop),
        };
        connected.map_err(|error| RunError::Unreachable { endpoint: endpoint.clone(), error })?;
        Ok(Self { supervisor: None, unix: endpoint.clone(), tcp: endpoint.clone(), threads: 0 })
    }

    fn start(tlsdash: &Path, folder: &Path, placement: &Placement) -> Result<Self, RunError> {
        let socket = folder.join("upstream.sock");
        let tcp = free_address().map_err(RunError::files("a free port"))?;
        let threads = core_count(placement.upstream.as_deref());
        let argv = [
            tlsdash.display().to_string(),
            "bench-upstream".to_owned(),
            format!("--unix={}", socket.display()),
            format!("--tcp={}", tcp.port()),
            format!("--threads={threads}"),
        ];
        let mut command =
            SupervisedCommand::new(argv.to_vec(), folder.to_owned(), folder.join("upstream.output"));
        command.cpus.clone_from(&placement.upstream);
        let failed = |error: &dyn std::fmt::Display| RunError::Upstream(error.to_string());
        let mut supervisor = Supervisor::start(tlsdash, &command).map_err(|error| failed(&error))?;
        let (unix, tcp) = (Endpoint::Unix(socket.clone()), Endpoint::Tcp(tcp));
        for endpoint in [&unix, &tcp] {
            wait_until_ready(&mut supervisor, endpoint, UPSTREAM_PATIENCE, &|| false)
                .map_err(|error| failed(&error))?;
        }
        set_mode(&socket, SOCKET_MODE).map_err(RunError::files("the upstream's socket"))?;
        Ok(Self { supervisor: Some(supervisor), unix, tcp, threads })
    }
}

/// A free address of the loopback interface.
///
/// # Errors
/// If the kernel gives none.
pub(super) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Makes a folder that every user may read.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    set_mode(path, PUBLIC_FOLDER_MODE)
}

/// Sets permissions, whatever the umask.
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The first folder on the way to the temporary folder that other users may not enter.
pub(super) fn closed_folder(temporary: &Path) -> Option<PathBuf> {
    let is_closed =
        |path: &&Path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
    temporary.ancestors().filter(is_closed).last().map(Path::to_owned)
}

/// Writes a file for each `/bytes/N` that a case asks for, for servers that answer themselves.
fn write_static_files(scenario: &Scenario, folder: &Path) -> io::Result<()> {
    if !scenario.targets.iter().any(|target| target.needs_upstream() == Some(false)) {
        return Ok(());
    }
    let sizes: BTreeSet<usize> =
        scenario.cases.iter().filter_map(|case| case.path.strip_prefix("/bytes/")?.parse().ok()).collect();
    // The same body as the upstream's.
    let block: Vec<u8> = (b'a'..=b'z').cycle().take(64 * 1024).collect();
    for size in sizes.into_iter().filter(|size| *size <= FILE_BYTES_MAX) {
        let body: Vec<u8> = block.iter().copied().cycle().take(size).collect();
        let file = folder.join(size.to_string());
        fs::write(&file, body)?;
        set_mode(&file, FILE_MODE)?;
    }
    Ok(())
}
