//! How an authority is shown that a domain is ours: TLS-ALPN-01 (RFC 8737), HTTP-01 and DNS-01 (RFC 8555, 8.3 and 8.4).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use instant_acme::{ChallengeType, KeyAuthorization};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::process::Command;
use tokio::time::timeout;

/// The time of a call of the command for DNS, which may wait until servers have the record.
const HOOK_TIMEOUT: Duration = Duration::from_secs(300);
/// Bytes of what it says that a failure tells, and how long these are awaited after its end.
const SAID_BYTES_MAX: u64 = 512;
const SAID_PATIENCE: Duration = Duration::from_millis(100);
/// Variables of the service manager for this process, which a command shall not speak for.
const NOT_FOR_HOOKS: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    TlsAlpn01,
    Http01,
    Dns01,
}

impl ChallengeKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Http01 => "http-01",
            Self::Dns01 => "dns-01",
        }
    }

    pub(crate) fn of_protocol(self) -> ChallengeType {
        match self {
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Self::Http01 => ChallengeType::Http01,
            Self::Dns01 => ChallengeType::Dns01,
        }
    }
}

/// The answers to the challenges of an order under way, at most one for each domain. Clones share them.
///
/// A server asks for them by the domain (TLS-ALPN-01: the digest for the certificate), or by the token (HTTP-01: the
/// response). Written by the thread that renews; it holds the lock for one insertion.
#[derive(Clone, Debug, Default)]
pub struct ChallengeAnswers(Arc<RwLock<BTreeMap<String, Vec<u8>>>>);

impl ChallengeAnswers {
    /// The answer for a domain or a token.
    pub fn find(&self, key: &str) -> Option<Vec<u8>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn insert(&self, key: String, answer: Vec<u8>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, answer);
    }

    fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A command that publishes TXT records: `COMMAND present|cleanup NAME VALUE`.
#[derive(Clone, Debug)]
pub struct DnsHook {
    pub command: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("cannot run {}: {source}", .command.display())]
    Start { command: PathBuf, source: io::Error },
    #[error("{} {verb} {name} failed with {status}{said}", .command.display())]
    Failed { command: PathBuf, verb: &'static str, name: String, status: ExitStatus, said: String },
    #[error("{} {verb} {name} has not ended for {} s", .command.display(), HOOK_TIMEOUT.as_secs())]
    Stuck { command: PathBuf, verb: &'static str, name: String },
}

impl DnsHook {
    pub fn new(command: &Path) -> Self {
        Self { command: command.to_owned() }
    }

    async fn run(&self, verb: &'static str, name: &str, value: &str) -> Result<(), HookError> {
        let command = || self.command.clone();
        let mut hook = Command::new(&self.command);
        // The terminal is the dashboard's.
        hook.args([verb, name, value]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // What belongs to the service itself.
        for name in NOT_FOR_HOOKS {
            hook.env_remove(name);
        }
        let ended = timeout(HOOK_TIMEOUT, ended(hook)).await;
        let ended =
            ended.map_err(|_| HookError::Stuck { command: command(), verb, name: name.to_owned() })?;
        let (status, said) = ended.map_err(|source| HookError::Start { command: command(), source })?;
        if status.success() {
            return Ok(());
        }
        Err(HookError::Failed { command: command(), verb, name: name.to_owned(), status, said })
    }
}

/// The processes of a command, which are killed if they are not awaited to their end.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a command to its end. Returns its status, and the beginning of what it said on standard error, behind a colon.
async fn ended(mut hook: Command) -> io::Result<(ExitStatus, String)> {
    let mut child = hook.process_group(0).kill_on_drop(true).spawn()?;
    let mut group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (mut said, stderr) = (Vec::new(), child.stderr.take());
    let status = {
        let reading = async {
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(SAID_BYTES_MAX).read_to_end(&mut said).await;
                let _ = copy(&mut stderr, &mut sink()).await;
            }
        };
        let mut reading = pin!(reading);
        tokio::select! {
            status = child.wait() => {
                // What a process that it left behind says is not awaited.
                let _ = timeout(SAID_PATIENCE, reading).await;
                status?
            }
            () = &mut reading => child.wait().await?,
        }
    };
    // What it left behind on purpose lives on.
    group.0 = None;
    let said = String::from_utf8_lossy(&said);
    let said = said.trim();
    Ok((status, if said.is_empty() { String::new() } else { format!(": {said}") }))
}

/// Who answers the challenges.
#[derive(Clone, Debug)]
pub enum Responder {
    /// The proxy, in handshakes for `acme-tls/1`; answers by domain.
    TlsAlpn01(ChallengeAnswers),
    /// The listener for redirects; answers by token.
    Http01(ChallengeAnswers),
    Dns01(DnsHook),
}

/// An answer as a TXT record.
#[derive(Clone, Debug)]
pub(crate) struct TxtRecord {
    name: String,
    value: String,
}

impl TxtRecord {
    pub(crate) fn new(domain: &str, key: &KeyAuthorization) -> Self {
        Self { name: format!("_acme-challenge.{domain}"), value: key.dns_value() }
    }
}

impl Responder {
    pub fn kind(&self) -> ChallengeKind {
        match self {
            Self::TlsAlpn01(_) => ChallengeKind::TlsAlpn01,
            Self::Http01(_) => ChallengeKind::Http01,
            Self::Dns01(_) => ChallengeKind::Dns01,
        }
    }

    /// Publishes the answer for a domain, which may then be asked for.
    pub(crate) async fn publish(
        &self,
        domain: &str,
        token: &str,
        key: &KeyAuthorization,
        record: &TxtRecord,
    ) -> Result<(), HookError> {
        match self {
            Self::TlsAlpn01(answers) => answers.insert(domain.to_owned(), key.digest().as_ref().to_vec()),
            Self::Http01(answers) => answers.insert(token.to_owned(), key.as_str().as_bytes().to_vec()),
            Self::Dns01(hook) => hook.run("present", &record.name, &record.value).await?,
        }
        Ok(())
    }

    /// Removes all answers of an order. Returns why one of them stays.
    pub(crate) async fn remove(&self, all: &[TxtRecord]) -> Option<HookError> {
        match self {
            Self::TlsAlpn01(answers) | Self::Http01(answers) => {
                answers.clear();
                None
            }
            Self::Dns01(hook) => {
                let mut failure = None;
                for TxtRecord { name, value } in all {
                    failure = hook.run("cleanup", name, value).await.err().or(failure);
                }
                failure
            }
        }
    }
}
