//! The words of the proxy, and the file in which they can stand.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;

use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Format, RunWords, usage};
use crate::cli::look::{LookTables, LookWords};
use crate::cli::tls_words::TlsWords;

/// Largest configuration file that is read, in bytes.
const CONFIGURATION_BYTES_MAX: u64 = 1 << 20;

/// The words that have no default, with what they may be.
const WITHOUT_DEFAULT: &[(&str, &str)] = &[
    ("upstream", "[\"unix:/run/app.sock\"]"),
    ("user", "\"tlsdash\""),
    ("proxy-protocol", "\"v2\""),
    ("accept-proxy", "\"10.0.0.0/8,2001:db8::1\""),
    ("cert", "[\"/etc/ssl/chain.pem\"]"),
    ("key", "[\"/etc/ssl/key.pem\"]"),
    ("client-ca", "\"/etc/ssl/clients.pem\""),
    ("client-auth", "\"required\""),
    ("ciphers", "\"TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\""),
    ("alpn", "\"h2,http/1.1\""),
    ("ticket-keys", "\"/etc/tlsdash/ticket.keys\""),
    ("load", "\"rate=500,connections=64,resume=80%\""),
    ("workers", "2"),
    ("cpus", "\"0-3,8\""),
    ("connections-max", "10000"),
    ("handshakes-max", "1000"),
    ("connections-per-client", "100"),
    ("duration", "\"10s\""),
    ("record", "\"/var/tmp/session.journal\""),
    ("ab", "\"workers=1..2,metric=exchange.p99,pairs=12\""),
];

/// What the proxy takes, on the command line and in the configuration file.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ProxyWords {
    /// Address to listen on, such as :8443 (dual stack), 127.0.0.1:8443 or [::1]:8443; may be repeated
    /// [default: :8443]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<String>,
    /// Where plaintext goes: unix:/path or host:port; of several, to the one with the least connections
    #[arg(long, value_name = "TARGET")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) upstream: Vec<String>,
    /// Give up root for this user, NAME or NAME:GROUP, once addresses are bound and keys are read
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Tell the upstream who the client is, by a header in front of its first byte: v1, or v2 with what TLS
    /// negotiated [default: none]
    #[arg(long, value_name = "VERSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proxy_protocol: Option<String>,
    /// Peers that must send such a header and are believed, such as 10.0.0.0/8,2001:db8::1 [default: none]
    #[arg(long, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_proxy: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) tls: TlsWords,
    /// Run the built-in load beside the proxy, such as rate=500,connections=64,resume=80%; the other words are
    /// arrivals, keepalive, lifetime, sources, threads, duration, warmup and requests; without rate it is a closed
    /// loop, and rate may be stages such as 100..1000/30s+1000/60s
    #[arg(long, value_name = "PLAN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<String>,
    /// Worker threads, each with its own event loop [default: one a core]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<NonZeroUsize>,
    /// Cores that the workers run on, such as 0-3,8; then there is a worker a core unless --workers says more
    /// [default: wherever the kernel puts them]
    #[arg(long, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<String>,
    /// Connections served at once; more wait in the backlog [default: what descriptors allow]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connections_max: Option<NonZeroUsize>,
    /// Handshakes under way at once; more wait in the backlog [default: no bound]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handshakes_max: Option<NonZeroUsize>,
    /// Connections of one client address at once, IPv6 by /64; more are closed [default: no bound]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connections_per_client: Option<NonZeroUsize>,
    /// Deadline of a handshake [default: 10s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handshake_timeout: Option<String>,
    /// Deadline for reaching the upstream [default: 5s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connect_timeout: Option<String>,
    /// Close a connection on which nothing moved for so long [default: 10m]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout: Option<String>,
    /// Cut a client that takes nothing of what waits for it for so long [default: 60s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send_timeout: Option<String>,
    /// Memory for what waits to be sent on all connections together; beyond it the connection whose bytes have waited
    /// longest is cut [default: 512MiB]
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending_max: Option<String>,
    /// How long connections may go on once the program ends [default: 30s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drain_timeout: Option<String>,
    /// End by itself after so long and print a summary
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunWords,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) look: LookWords,
    #[arg(skip)]
    #[serde(flatten, skip_serializing)]
    pub(crate) tables: LookTables,
}

impl ProxyWords {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let cannot = |error: std::io::Error| usage(format!("cannot read configuration {name}: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let mut text = String::new();
        file.take(CONFIGURATION_BYTES_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
        if text.len() as u64 > CONFIGURATION_BYTES_MAX {
            return Err(usage(format!("configuration {name} has more than {CONFIGURATION_BYTES_MAX} bytes")));
        }
        Self::parse(&text).map_err(|(line, what)| usage(format!("configuration {name} line {line}: {what}")))
    }

    /// Reads the text of one; an error comes with the number of its line.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let refuse = |line: usize, what: &str| (line, what.replace('\n', " "));
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.char_indices().take_while(|(place, _)| *place < at);
            let before = before.filter(|(_, c)| *c == '\n').count();
            refuse(before + 1, error.message())
        })?;
        // Word by word, so that an error names its word.
        for (word, value) in &table {
            let alone = toml::Table::from_iter([(word.clone(), value.clone())]);
            if let Err(error) = Self::deserialize(alone) {
                let line = text.lines().position(|line| line.trim_start().starts_with(word.as_str()));
                return Err(refuse(line.map_or(1, |line| line + 1), &format!("{word}: {}", error.message())));
            }
        }
        Self::deserialize(table).map_err(|error| refuse(1, error.message()))
    }

    /// These words, and where they are silent the others.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            listen: if self.listen.is_empty() { other.listen } else { self.listen },
            upstream: if self.upstream.is_empty() { other.upstream } else { self.upstream },
            user: self.user.or(other.user),
            proxy_protocol: self.proxy_protocol.or(other.proxy_protocol),
            accept_proxy: self.accept_proxy.or(other.accept_proxy),
            tls: self.tls.or(other.tls),
            load: self.load.or(other.load),
            workers: self.workers.or(other.workers),
            cpus: self.cpus.or(other.cpus),
            connections_max: self.connections_max.or(other.connections_max),
            handshakes_max: self.handshakes_max.or(other.handshakes_max),
            connections_per_client: self.connections_per_client.or(other.connections_per_client),
            handshake_timeout: self.handshake_timeout.or(other.handshake_timeout),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            send_timeout: self.send_timeout.or(other.send_timeout),
            pending_max: self.pending_max.or(other.pending_max),
            drain_timeout: self.drain_timeout.or(other.drain_timeout),
            duration: self.duration.or(other.duration),
            run: self.run.or(other.run),
            look: self.look.or(other.look),
            tables: if self.tables.is_empty() { other.tables } else { self.tables },
        }
    }

    /// What holds where nothing else is said.
    pub(crate) fn defaults() -> Self {
        let text = |text: &str| Some(text.to_owned());
        Self {
            listen: vec![":8443".to_owned()],
            tls: TlsWords::defaults(),
            handshake_timeout: text("10s"),
            connect_timeout: text("5s"),
            idle_timeout: text("10m"),
            send_timeout: text("60s"),
            pending_max: text("512MiB"),
            drain_timeout: text("30s"),
            run: RunWords {
                journal: text("auto"),
                interval: text("1s"),
                format: Some(Format::Text),
                ..RunWords::default()
            },
            look: LookWords { theme: text("auto"), ..LookWords::default() },
            ..Self::default()
        }
    }

    /// The words as a configuration file; those that are not set stand in it as comments.
    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        let mut text = toml::to_string(self)?;
        for (word, example) in WITHOUT_DEFAULT {
            if !text.lines().any(|line| line.starts_with(&format!("{word} = "))) {
                let _ = writeln!(text, "# {word} = {example}");
            }
        }
        text.push_str(&self.tables.to_toml()?);
        Ok(text)
    }
}

/// Takes a single word where there may be several.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Words::deserialize(deserializer)? {
        Words::One(word) => vec![word],
        Words::Many(words) => words,
    })
}

/// Reads the text of a configuration file, and looks whether its words can be what they are, as far as that needs neither
/// a file nor a name to be looked up. Returns it as `--print-config` prints it.
///
/// # Errors
/// With the line that says what is wrong.
pub fn read_configuration(text: &str) -> Result<String, String> {
    let words = ProxyWords::parse(text).map_err(|(line, what)| format!("line {line}: {what}"))?;
    let printed = words.clone().or(ProxyWords::defaults()).to_toml();
    let checked = printed.and_then(|printed| crate::commands::proxy::check(&words).map(|()| printed));
    checked.map_err(|error| crate::line(&error))
}
