//! TLS to the upstreams of a running proxy, and how it changes with its files.

use records::setting::Setting;

use crate::tls::certificates::authorities::Authorities;
use crate::tls::client::config::{UpstreamTls, UpstreamTlsConfig};
use crate::tls::server::refresh::fixed;
use crate::tls::{Certificate, TlsConfigError, TlsRefresh};

const CA: &str = "proxy.upstream-ca";
const CERTIFICATE: &str = "proxy.upstream-cert";
const VERIFICATION: &str = "proxy.upstream-tls-insecure";

#[derive(Debug)]
pub(in crate::tls) struct LiveUpstreamTls {
    inputs: UpstreamTls,
    client: UpstreamTlsConfig,
}

impl LiveUpstreamTls {
    pub(in crate::tls) fn new(inputs: UpstreamTls) -> Result<Self, TlsConfigError> {
        let client = UpstreamTlsConfig::new(&inputs)?;
        Ok(Self { inputs, client })
    }

    pub(in crate::tls) fn inputs(&self) -> &UpstreamTls {
        &self.inputs
    }

    pub(in crate::tls) fn config(&self) -> UpstreamTlsConfig {
        self.client.clone()
    }

    /// Takes over the contents of changed files; true if there are any. Sessions of before are forgotten then.
    pub(in crate::tls) fn take(
        &mut self,
        ca: Option<Authorities>,
        certificate: Option<Certificate>,
        refreshed: &mut TlsRefresh,
    ) -> bool {
        if ca.is_none() && certificate.is_none() {
            return false;
        }
        let mut inputs = self.inputs.clone();
        inputs.ca = ca.or(inputs.ca);
        inputs.certificate = certificate.or(inputs.certificate);
        refreshed.warnings.extend(inputs.certificate.iter().flat_map(Certificate::warnings).cloned());
        match Self::new(inputs) {
            Ok(new) => {
                for (before, after) in self.settings().iter().zip(new.settings()) {
                    refreshed.note(before, after);
                }
                *self = new;
                true
            }
            Err(error) => {
                refreshed.refusals.push(error.into());
                false
            }
        }
    }

    /// What it follows, which changes with the files alone.
    pub(in crate::tls) fn settings(&self) -> Vec<Setting> {
        let UpstreamTls { ca, certificate, is_insecure, .. } = &self.inputs;
        let ca = ca.iter().map(|ca| fixed(CA, ca.summary()));
        let certificate = certificate.iter().map(|one| fixed(CERTIFICATE, one.summary()));
        let insecure = is_insecure.then(|| fixed(VERIFICATION, "any certificate is accepted".to_owned()));
        ca.chain(certificate).chain(insecure).collect()
    }

    pub(in crate::tls) fn has_setting(name: &str) -> bool {
        [CA, CERTIFICATE, VERIFICATION].contains(&name)
    }
}
