//! TLS to upstreams, by flags and by the configuration file.

use std::path::{Path, PathBuf};

use clap::Args;
use proxy_core::{Authorities, Certificate, UpstreamName, UpstreamTls};
use serde::{Deserialize, Serialize};

use crate::error::usage;
use crate::value::ParsedValue;

/// How TLS is spoken with upstreams.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(clippy::struct_field_names, reason = "the names of the flags")]
pub(crate) struct UpstreamTlsOptions {
    /// Authorities of upstreams that speak TLS; in PEM, or an upstream's own certificate [default: the system's
    /// authorities]
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// Certificate chain for upstreams that ask for one; in PEM
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_key: Option<PathBuf>,
    /// Name in the certificates of upstreams; those without ,name=NAME are asked for it by TLS [default: the host of
    /// each, and localhost for a path]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_name: Option<ParsedValue<UpstreamName>>,
    /// Accept any certificate of upstreams; without proof that they have its key, whoever is in between can read and
    /// change everything
    #[arg(long)]
    pub(crate) upstream_tls_insecure: bool,
}

impl UpstreamTlsOptions {
    /// The files that it names.
    pub(crate) fn files(&self) -> [Option<&Path>; 3] {
        [&self.upstream_ca, &self.upstream_cert, &self.upstream_key].map(Option::as_deref)
    }

    /// Checks whether the options fit together, without reading a file. `is_used`: whether any upstream speaks TLS.
    ///
    /// # Errors
    /// If they conflict, or one has nothing to act on.
    pub(crate) fn check(&self, is_used: bool) -> anyhow::Result<()> {
        let given = [
            ("--upstream-ca", self.upstream_ca.is_some()),
            ("--upstream-cert", self.upstream_cert.is_some()),
            ("--upstream-key", self.upstream_key.is_some()),
            ("--upstream-name", self.upstream_name.is_some()),
            ("--upstream-tls-insecure", self.upstream_tls_insecure),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given && !is_used) {
            return Err(usage(format!("{flag} goes with an upstream that speaks TLS: tls://HOST:PORT")));
        }
        if self.upstream_ca.is_some() && self.upstream_tls_insecure {
            return Err(usage(
                "--upstream-ca verifies upstreams, and --upstream-tls-insecure does not: give one",
            ));
        }
        match (&self.upstream_cert, &self.upstream_key) {
            (None, None) | (Some(_), Some(_)) => Ok(()),
            (Some(_), None) => {
                Err(usage("--upstream-cert needs --upstream-key: the file with its private key"))
            }
            (None, Some(_)) => {
                Err(usage("--upstream-key needs --upstream-cert: the file with its certificate"))
            }
        }
    }

    /// Loads the files. `is_used`: whether any upstream speaks TLS.
    ///
    /// # Errors
    /// If options conflict, or a file cannot be used.
    pub(crate) fn load(&self, is_used: bool) -> anyhow::Result<UpstreamTls> {
        self.check(is_used)?;
        let certificate = self.upstream_cert.as_ref().zip(self.upstream_key.as_ref());
        let certificate = certificate.map(|(cert, key)| Certificate::load(cert, key)).transpose();
        Ok(UpstreamTls {
            ca: self.upstream_ca.as_deref().map(Authorities::load).transpose().map_err(usage)?,
            certificate: certificate.map_err(usage)?,
            server_name: self.upstream_name.as_deref().cloned(),
            is_insecure: self.upstream_tls_insecure,
        })
    }
}
