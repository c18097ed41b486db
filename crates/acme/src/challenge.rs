//! How an authority is shown that a domain is ours: TLS-ALPN-01 (RFC 8737), HTTP-01 and DNS-01 (RFC 8555, 8.3 and 8.4).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use instant_acme::{ChallengeType, KeyAuthorization};
use tokio::process::Command;
use tokio::time::timeout;

/// The time of a call of the command for DNS, which may wait until servers have the record.
const HOOK_TIMEOUT: Duration = Duration::from_secs(300);

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
    Start { command: PathBuf, source: std::io::Error },
    #[error("{} {verb} {name} failed with {status}", .command.display())]
    Failed { command: PathBuf, verb: &'static str, name: String, status: std::process::ExitStatus },
    #[error("{} {verb} {name} has not ended for {} s", .command.display(), HOOK_TIMEOUT.as_secs())]
    Stuck { command: PathBuf, verb: &'static str, name: String },
}

impl DnsHook {
    pub fn new(command: &Path) -> Self {
        Self { command: command.to_owned() }
    }

    async fn run(&self, verb: &'static str, name: &str, value: &str) -> Result<(), HookError> {
        let command = || self.command.clone();
        let mut child = Command::new(&self.command);
        child.args([verb, name, value]).stdin(Stdio::null()).kill_on_drop(true);
        let status = timeout(HOOK_TIMEOUT, child.status()).await;
        let status =
            status.map_err(|_| HookError::Stuck { command: command(), verb, name: name.to_owned() })?;
        let status = status.map_err(|source| HookError::Start { command: command(), source })?;
        if status.success() {
            return Ok(());
        }
        Err(HookError::Failed { command: command(), verb, name: name.to_owned(), status })
    }
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

/// An answer that has been published.
pub(crate) struct PublishedAnswer {
    name: String,
    value: String,
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
    ) -> Result<PublishedAnswer, HookError> {
        let published = PublishedAnswer { name: format!("_acme-challenge.{domain}"), value: key.dns_value() };
        match self {
            Self::TlsAlpn01(answers) => answers.insert(domain.to_owned(), key.digest().as_ref().to_vec()),
            Self::Http01(answers) => answers.insert(token.to_owned(), key.as_str().as_bytes().to_vec()),
            Self::Dns01(hook) => hook.run("present", &published.name, &published.value).await?,
        }
        Ok(published)
    }

    /// Removes all answers of an order. Returns why one of them stays.
    pub(crate) async fn remove(&self, all: &[PublishedAnswer]) -> Option<HookError> {
        match self {
            Self::TlsAlpn01(answers) | Self::Http01(answers) => {
                answers.clear();
                None
            }
            Self::Dns01(hook) => {
                let mut failure = None;
                for PublishedAnswer { name, value } in all {
                    failure = hook.run("cleanup", name, value).await.err().or(failure);
                }
                failure
            }
        }
    }
}
