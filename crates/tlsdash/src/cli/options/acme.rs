//! Certificates by ACME, by flags and by the configuration file.

use std::path::PathBuf;

use acme::{AcmeConfig, ChallengeAnswers, DnsHook, LETS_ENCRYPT, Responder, Trust};
use bench::run::is_program;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::error::usage;
use crate::value::one_or_many;

/// What is ordered, from whom, and how the domains are proved to be ours.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(clippy::struct_field_names, reason = "the names of the flags")]
pub(crate) struct AcmeOptions {
    /// Domain of an ordered certificate; ACME orders and renews it (docs/certificates.md). May be repeated: all are in
    /// one certificate. It agrees to the authority's terms of service
    #[arg(long, value_name = "DOMAIN")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) acme_domain: Vec<String>,
    /// Mail address that the authority may write to; needed with --acme-domain, may be repeated
    #[arg(long, value_name = "ADDRESS")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub(crate) acme_contact: Vec<String>,
    /// URL of the authority's directory [default: Let's Encrypt]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acme_directory: Option<String>,
    /// Authorities of the directory itself, in PEM [default: the system's authorities]
    #[arg(long, value_name = "PEM")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acme_ca: Option<PathBuf>,
    /// Profile of the authority, such as shortlived [default: the authority's]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acme_profile: Option<String>,
    /// How domains are validated: by a handshake on port 443, by a request on port 80 (--redirect-http), or by a DNS record
    /// [default: dns-01 with --acme-dns-hook, else tls-alpn-01]
    #[arg(long, value_name = "CHALLENGE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acme_challenge: Option<ChallengeOption>,
    /// Command that publishes TXT records: it gets `present NAME VALUE`, later `cleanup NAME VALUE`
    #[arg(long, value_name = "COMMAND")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acme_dns_hook: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum ChallengeOption {
    #[value(name = "tls-alpn-01")]
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    #[value(name = "http-01")]
    #[serde(rename = "http-01")]
    Http01,
    #[value(name = "dns-01")]
    #[serde(rename = "dns-01")]
    Dns01,
}

impl AcmeOptions {
    pub(crate) fn is_used(&self) -> bool {
        !self.acme_domain.is_empty()
    }

    /// What is ordered, and who answers the challenges; `None` without a domain.
    ///
    /// # Errors
    /// If a value cannot be used, or an option has nothing to act on.
    pub(crate) fn order(&self, redirects: bool) -> anyhow::Result<Option<(AcmeConfig, Responder)>> {
        if !self.is_used() {
            return self.forbid_others().map(|()| None);
        }
        let responder = self.responder(redirects)?;
        let config = AcmeConfig {
            domains: self.acme_domain.iter().map(|domain| domain.to_ascii_lowercase()).collect(),
            contacts: self.acme_contact.clone(),
            directory: self.acme_directory.clone().unwrap_or_else(|| LETS_ENCRYPT.to_owned()),
            trust: self.acme_ca.clone().map_or(Trust::Roots, Trust::CaFile),
            profile: self.acme_profile.clone(),
        };
        config.check(responder.kind()).map_err(|error| usage(format!("--{error}")))?;
        Ok(Some((config, responder)))
    }

    fn forbid_others(&self) -> anyhow::Result<()> {
        let given = [
            ("--acme-contact", !self.acme_contact.is_empty()),
            ("--acme-directory", self.acme_directory.is_some()),
            ("--acme-ca", self.acme_ca.is_some()),
            ("--acme-profile", self.acme_profile.is_some()),
            ("--acme-challenge", self.acme_challenge.is_some()),
            ("--acme-dns-hook", self.acme_dns_hook.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => {
                Err(usage(format!("{flag} needs --acme-domain: the domain of the certificate")))
            }
            None => Ok(()),
        }
    }

    fn responder(&self, redirects: bool) -> anyhow::Result<Responder> {
        use ChallengeOption::{Dns01, Http01, TlsAlpn01};
        match (self.acme_challenge, &self.acme_dns_hook) {
            (None | Some(Dns01), Some(hook)) if is_program(&hook.to_string_lossy()) => {
                Ok(Responder::Dns01(DnsHook::new(hook)))
            }
            (None | Some(Dns01), Some(hook)) => Err(usage(format!(
                "--acme-dns-hook {}: there is no such program, or it is not executable",
                hook.display()
            ))),
            (Some(Dns01), None) => Err(usage(
                "--acme-challenge dns-01 needs --acme-dns-hook: the command that publishes TXT records",
            )),
            (Some(TlsAlpn01 | Http01), Some(_)) => {
                Err(usage("--acme-dns-hook goes with --acme-challenge dns-01 only"))
            }
            (Some(Http01), None) if !redirects => {
                Err(usage("--acme-challenge http-01 needs --redirect-http: the authority asks on port 80"))
            }
            (Some(Http01), None) => Ok(Responder::Http01(ChallengeAnswers::default())),
            (None | Some(TlsAlpn01), None) => Ok(Responder::TlsAlpn01(ChallengeAnswers::default())),
        }
    }
}
