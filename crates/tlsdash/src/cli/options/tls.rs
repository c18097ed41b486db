//! The proxy's certificates and keys, by flags and by the configuration file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use proxy_core::{
    Authorities, Certificate, ClientAuth, Resumption, RevocationLists, TicketKeyFile, Tls, TlsSettings,
    UpstreamTls,
};
use serde::{Deserialize, Serialize};

use crate::error::usage;
use crate::service::environment;
use crate::value::one_or_many;
use crate::value::options::OptionValues;

/// The files that TLS is spoken with.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct TlsFileOptions {
    /// Certificate chain in PEM; may be repeated, each with its --key: the client's server name selects one, else
    /// the first. Without it one for localhost and this host's name is made in memory
    #[arg(long, value_name = "PEM")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) cert: Vec<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "PEM")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) key: Vec<PathBuf>,
    /// Authorities of client certificates, in PEM; without it clients are not asked for certificates
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Lists of revoked client certificates; CRLs of --client-ca, in PEM or DER; may be repeated
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) client_crl: Vec<PathBuf>,
    /// Ticket keys shared with other proxies: 80 random bytes each; the first encrypts, all decrypt
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_keys: Option<PathBuf>,
}

impl TlsFileOptions {
    /// True if none of them names a certificate: one is made then.
    pub(crate) fn is_without_certificate(&self) -> bool {
        self.cert.is_empty() && self.key.is_empty()
    }

    /// Checks whether files and settings fit together, without reading a file. With `is_loaded` the built-in load, which
    /// has no certificate, is a client.
    ///
    /// # Errors
    /// If they conflict.
    pub(crate) fn check(&self, settings: &OptionValues<TlsSettings>, is_loaded: bool) -> anyhow::Result<()> {
        let TlsSettings { client_auth, resumption, .. } = settings.values();
        let is_required = self.client_ca.is_some() && client_auth.strictest() == ClientAuth::Required;
        if self.client_ca.is_none() && settings.is_given("client-auth") {
            return Err(usage("--client-auth needs --client-ca: the authorities that vouch for clients"));
        }
        if self.client_ca.is_none() && !self.client_crl.is_empty() {
            return Err(usage("--client-crl needs --client-ca: the authorities that vouch for clients"));
        }
        if self.client_crl.is_empty() && settings.is_given("client-crl-expired") {
            return Err(usage("--client-crl-expired needs --client-crl: the lists of revoked certificates"));
        }
        if is_required && is_loaded {
            return Err(usage(
                "--load has no certificate to present: give --client-auth optional or off, or no --load",
            ));
        }
        if self.ticket_keys.is_some() && *resumption != Resumption::Tickets {
            return Err(usage("--ticket-keys goes with --resumption tickets only"));
        }
        match (self.cert.len(), self.key.len()) {
            (certs, keys) if certs == keys => Ok(()),
            (_, 0) => Err(usage("--cert needs --key: the file with its private key")),
            (0, _) => Err(usage("--key needs --cert: the file with its certificate")),
            (certs, keys) => Err(usage(format!(
                "--cert and --key come in pairs, and there are {certs} and {keys} of them"
            ))),
        }
    }

    /// Loads them.
    ///
    /// # Errors
    /// If they conflict, or a file cannot be used.
    pub(crate) fn load(&self, settings: &OptionValues<TlsSettings>, is_loaded: bool) -> anyhow::Result<Tls> {
        self.check(settings, is_loaded)?;
        let mut settings = settings.values().clone();
        settings.check().map_err(usage)?;
        let client_ca = self.client_ca.as_deref().map(Authorities::load).transpose().map_err(usage)?;
        if client_ca.is_none() {
            // Nobody is asked for one, whatever the default says.
            settings.client_auth = ClientAuth::Off.into();
        }
        let lists = Some(&self.client_crl).filter(|paths| !paths.is_empty());
        let client_crl = lists.map(|paths| RevocationLists::load(paths)).transpose().map_err(usage)?;
        let ticket_keys = self.ticket_keys.as_deref().map(TicketKeyFile::load).transpose().map_err(usage)?;
        let certificates = self.certificates()?;
        Ok(Tls {
            client_ca,
            client_crl,
            ticket_keys,
            settings,
            certificates,
            upstream: UpstreamTls::default(),
            challenges: None,
        })
    }

    fn certificates(&self) -> anyhow::Result<Vec<Certificate>> {
        if self.is_without_certificate() {
            return Ok(vec![generated()?]);
        }
        let pairs = self.cert.iter().zip(&self.key);
        pairs.map(|(cert, key)| Certificate::load(cert, key).map_err(usage)).collect()
    }
}

/// Makes a certificate for this host, in memory.
fn generated() -> anyhow::Result<Certificate> {
    Certificate::generate(&["localhost".to_owned(), environment::host_name()])
        .context("cannot make a certificate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_name_one_certificate_or_many() {
        let one: TlsFileOptions = toml::from_str("cert = \"a.pem\"\nkey = \"a.key\"").unwrap();
        let many: TlsFileOptions =
            toml::from_str("cert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]").unwrap();
        assert_eq!((one.cert.len(), many.cert.len()), (1, 2));
    }
}
