//! The words for TLS, of the command line and of the configuration file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use proxy_core::{Certificate, ClientAuth, ClientCa, Resumption, TicketKeyFile, Tls, TlsSettings};
use serde::{Deserialize, Deserializer, Serialize};
use telemetry::Value;

use crate::cli::{time, usage};
use crate::commands::proxy::generated;

/// How the proxy speaks TLS, and with what.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct TlsWords {
    /// Certificate chain in PEM; may be repeated, each with its --key: the name that a client asks for chooses, else
    /// the first. Without it one for localhost and this host's name is made in memory
    #[arg(long, value_name = "PEM")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) cert: Vec<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "PEM")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) key: Vec<PathBuf>,
    /// Authorities that vouch for clients, in PEM; without it clients are not asked for certificates
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether a client needs a certificate: optional or required [default: required with --client-ca]
    #[arg(long, value_name = "WHICH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_auth: Option<String>,
    /// Oldest version of TLS: 1.2 or 1.3 [default: 1.2]
    #[arg(long, value_name = "VERSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_min: Option<String>,
    /// Newest version of TLS: 1.2 or 1.3 [default: 1.3]
    #[arg(long, value_name = "VERSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_max: Option<String>,
    /// Cipher suites by IANA name, separated by commas, most preferred first [default: all, AES-128 first]
    #[arg(long, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ciphers: Option<String>,
    /// Whose preference counts among them: proxy or client [default: proxy]
    #[arg(long, value_name = "WHOSE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cipher_order: Option<String>,
    /// Key exchange groups that a client may choose from [default: x25519,secp256r1,secp384r1,x25519mlkem768]
    #[arg(long, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<String>,
    /// Application protocols that the upstream speaks, most preferred first, such as h2,http/1.1 [default: ALPN is left
    /// out]
    #[arg(long, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alpn: Option<String>,
    /// How clients resume: tickets, cache (sessions in memory) or off [default: tickets]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumption: Option<String>,
    /// Sessions kept with --resumption cache [default: 20000]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_cache: Option<NonZeroUsize>,
    /// TLS 1.3 tickets after each handshake, 0 to 8 [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tickets: Option<u8>,
    /// When they are sent: with the first answer, or at-once [default: answer]
    #[arg(long, value_name = "WHEN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_send: Option<String>,
    /// How long a ticket is good for, 1m to 7d [default: 12h]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_lifetime: Option<String>,
    /// How long a key seals tickets before another is made, without --ticket-keys [default: 6h]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_rotation: Option<String>,
    /// Keys of tickets that other proxies share: 80 random bytes each, the first seals and all open
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_keys: Option<PathBuf>,
}

/// A path, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a path or a list of paths")]
    enum Paths {
        One(PathBuf),
        Many(Vec<PathBuf>),
    }
    Ok(match Paths::deserialize(from)? {
        Paths::One(path) => vec![path],
        Paths::Many(paths) => paths,
    })
}

impl TlsWords {
    /// These words, and where they are silent the others.
    pub(crate) fn or(self, other: Self) -> Self {
        // Pairs come from one place.
        let (cert, key) =
            if self.is_without_certificate() { (other.cert, other.key) } else { (self.cert, self.key) };
        Self {
            cert,
            key,
            client_ca: self.client_ca.or(other.client_ca),
            client_auth: self.client_auth.or(other.client_auth),
            tls_min: self.tls_min.or(other.tls_min),
            tls_max: self.tls_max.or(other.tls_max),
            ciphers: self.ciphers.or(other.ciphers),
            cipher_order: self.cipher_order.or(other.cipher_order),
            groups: self.groups.or(other.groups),
            alpn: self.alpn.or(other.alpn),
            resumption: self.resumption.or(other.resumption),
            session_cache: self.session_cache.or(other.session_cache),
            tickets: self.tickets.or(other.tickets),
            ticket_send: self.ticket_send.or(other.ticket_send),
            ticket_lifetime: self.ticket_lifetime.or(other.ticket_lifetime),
            ticket_rotation: self.ticket_rotation.or(other.ticket_rotation),
            ticket_keys: self.ticket_keys.or(other.ticket_keys),
        }
    }

    /// What holds where nothing else is said.
    pub(crate) fn defaults() -> Self {
        let text = |text: &str| Some(text.to_owned());
        Self {
            tls_min: text("1.2"),
            tls_max: text("1.3"),
            cipher_order: text("proxy"),
            groups: text("x25519,secp256r1,secp384r1,x25519mlkem768"),
            resumption: text("tickets"),
            session_cache: NonZeroUsize::new(20_000),
            tickets: Some(1),
            ticket_send: text("answer"),
            ticket_lifetime: text("12h"),
            ticket_rotation: text("6h"),
            ..Self::default()
        }
    }

    /// True if none of them names a certificate: one is made then.
    pub(crate) fn is_without_certificate(&self) -> bool {
        self.cert.is_empty() && self.key.is_empty()
    }

    /// Loads what the words name. `is_loaded`: the built-in load, which has no
    /// certificate of its own, is a client.
    pub(crate) fn resolve(&self, is_loaded: bool) -> anyhow::Result<Tls> {
        let settings = self.settings()?;
        let client_ca = self.client_ca.as_deref().map(ClientCa::load).transpose().map_err(usage)?;
        if client_ca.is_none() && self.client_auth.is_some() {
            return Err(usage("--client-auth needs --client-ca: the authorities that vouch for clients"));
        }
        if client_ca.is_some() && settings.client_auth == ClientAuth::Required && is_loaded {
            return Err(usage(
                "--load has no certificate to present: give --client-auth optional, or no --load",
            ));
        }
        if self.ticket_keys.is_some() && settings.resumption != Resumption::Tickets {
            return Err(usage("--ticket-keys goes with --resumption tickets only"));
        }
        let ticket_keys = self.ticket_keys.as_deref().map(TicketKeyFile::load).transpose().map_err(usage)?;
        let certificates = self.certificates()?;
        Ok(Tls { certificates, client_ca, ticket_keys, settings })
    }

    fn certificates(&self) -> anyhow::Result<Vec<Certificate>> {
        match (self.cert.len(), self.key.len()) {
            (0, 0) => Ok(vec![generated()?]),
            (_, 0) => Err(usage("--cert needs --key: the file with its private key")),
            (0, _) => Err(usage("--key needs --cert: the file with its certificate")),
            (certs, keys) if certs != keys => Err(usage(format!(
                "--cert and --key come in pairs, and there are {certs} and {keys} of them"
            ))),
            _ => {
                let pairs = self.cert.iter().zip(&self.key);
                pairs.map(|(cert, key)| Certificate::load(cert, key).map_err(usage)).collect()
            }
        }
    }

    pub(crate) fn settings(&self) -> anyhow::Result<TlsSettings> {
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let span = |name, text: &Option<String>| {
            let span = text.as_deref().map(|text| time(name, text)).transpose()?;
            anyhow::Ok(span.map(|span| Value::Number(span.as_secs_f64())))
        };
        let mut settings = TlsSettings::default();
        for (name, value) in [
            ("tls-min", text(&self.tls_min)),
            ("tls-max", text(&self.tls_max)),
            ("ciphers", text(&self.ciphers)),
            ("cipher-order", text(&self.cipher_order)),
            ("groups", text(&self.groups)),
            ("alpn", text(&self.alpn)),
            ("client-auth", text(&self.client_auth)),
            ("resumption", text(&self.resumption)),
            ("session-cache", self.session_cache.map(|n| Value::Number(n.get() as f64))),
            ("tickets", self.tickets.map(|n| Value::Number(n.into()))),
            ("ticket-send", text(&self.ticket_send)),
            ("ticket-lifetime", span("ticket-lifetime", &self.ticket_lifetime)?),
            ("ticket-rotation", span("ticket-rotation", &self.ticket_rotation)?),
        ] {
            if let Some(value) = value {
                settings.set(name, &value).map_err(|error| usage(format!("--{name} {value}: {error}")))?;
            }
        }
        settings.check().map_err(usage)?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_proxy() {
        let written = TlsWords::defaults().settings().unwrap();
        assert!(written.list().eq(TlsSettings::default().list()));
        assert!(TlsWords::default().settings().unwrap().list().eq(TlsSettings::default().list()));
    }

    #[test]
    fn a_file_may_name_one_certificate_or_many() {
        let one: TlsWords = toml::from_str("cert = \"a.pem\"\nkey = \"a.key\"").unwrap();
        let many: TlsWords =
            toml::from_str("cert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]").unwrap();
        assert_eq!((one.cert.len(), many.cert.len()), (1, 2));
        // Those of the command line replace them, both at once.
        let flags = TlsWords { cert: vec!["c.pem".into()], ..TlsWords::default() };
        let words = flags.or(many);
        assert_eq!((words.cert.len(), words.key.len()), (1, 0));
    }
}
