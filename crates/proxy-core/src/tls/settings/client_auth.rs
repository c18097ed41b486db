//! Whether clients must have certificates, by the name that they ask for.

use std::fmt;

use rustls::pki_types::DnsName;

use crate::config::options::OptionError;
use crate::tls::settings::options::{choose, word};
use crate::upstream::host::{HostPattern, HostTable};

/// Whether a client must have a certificate, where authorities for them are given. The strictest is the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientAuth {
    /// A client is not asked for one.
    Off,
    /// A client may have no certificate, but not an invalid one.
    Optional,
    /// The handshake fails without one.
    #[default]
    Required,
}

const WORDS: &[(ClientAuth, &str)] =
    &[(ClientAuth::Off, "off"), (ClientAuth::Optional, "optional"), (ClientAuth::Required, "required")];

/// What holds for each server name, such as `off,admin.example=required`.
#[derive(Clone, Debug, Default)]
pub struct ClientAuthPolicy {
    /// For names that have no rule.
    other: ClientAuth,
    rules: Vec<(HostPattern, ClientAuth)>,
    table: HostTable<Option<ClientAuth>>,
}

impl ClientAuthPolicy {
    /// # Errors
    /// If a word is not known, or a host is no DNS name or is given twice.
    pub(in crate::tls) fn parse(text: &str) -> Result<Self, OptionError> {
        let mut parts = text.split(',').map(str::trim);
        let mut policy = Self::from(choose(WORDS, parts.next().unwrap_or_default())?);
        for rule in parts {
            let (host, auth) =
                rule.split_once('=').ok_or_else(|| OptionError::ServerName(rule.to_owned()))?;
            let (host, auth) = (host_pattern(host)?, choose(WORDS, auth)?);
            if policy.table.entry(&host).replace(auth).is_some() {
                return Err(OptionError::Twice(host.to_string()));
            }
            policy.rules.push((host, auth));
        }
        Ok(policy)
    }

    /// What holds for a client that asks for this name. Without a name it may want any of them: the strictest.
    pub(in crate::tls) fn of(&self, name: Option<&str>) -> ClientAuth {
        let of_name = |name| self.table.find_map(name, |auth| *auth).unwrap_or(self.other);
        name.map_or_else(|| self.strictest(), of_name)
    }

    /// What holds for some name, or all of them.
    pub fn strictest(&self) -> ClientAuth {
        self.rules.iter().map(|(_, auth)| *auth).fold(self.other, ClientAuth::max)
    }

    /// Whether it depends on the name.
    pub(in crate::tls) fn is_by_name(&self) -> bool {
        !self.rules.is_empty()
    }
}

impl From<ClientAuth> for ClientAuthPolicy {
    /// The same for all names.
    fn from(other: ClientAuth) -> Self {
        Self { other, ..Self::default() }
    }
}

impl fmt::Display for ClientAuthPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(WORDS, self.other))?;
        self.rules.iter().try_for_each(|(host, auth)| write!(f, ",{host}={}", word(WORDS, *auth)))
    }
}

/// Clients do not send an address as a server name: a rule for one would never hold.
fn host_pattern(text: &str) -> Result<HostPattern, OptionError> {
    let malformed = || OptionError::ServerName(text.to_owned());
    let pattern = text.parse::<HostPattern>().map_err(|_| malformed())?;
    let is_name = match &pattern {
        HostPattern::Any => false,
        HostPattern::Exact(name) | HostPattern::Below(name) => {
            DnsName::try_from(name.as_str()).is_ok() && !name.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        }
    };
    if is_name { Ok(pattern) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_policy_of_its_closest_rule_and_no_name_the_strictest() {
        use ClientAuth::{Off, Optional, Required};
        let policy = ClientAuthPolicy::parse("off, admin.example=required,*.Example=optional").unwrap();
        assert_eq!(policy.to_string(), "off,admin.example=required,*.example=optional");
        for (name, auth) in [
            (Some("admin.example"), Required),
            (Some("ADMIN.example."), Required),
            (Some("a.example"), Optional),
            (Some("example"), Off),
            (Some("a.admin.example"), Optional),
            (None, Required),
        ] {
            assert_eq!(policy.of(name), auth, "{name:?}");
        }
        assert!(policy.is_by_name() && !ClientAuthPolicy::from(Optional).is_by_name());
        assert_eq!(ClientAuthPolicy::from(Optional).of(None), Optional);
    }

    #[test]
    fn what_could_not_hold_is_refused() {
        for (text, part) in [
            ("", "known: off, optional, required"),
            ("admin.example=required", "known: off, optional, required"),
            ("off,admin.example=no", "known: off, optional, required"),
            ("off,", "DNS name"),
            ("off,admin.example", "DNS name"),
            ("off,=required", "DNS name"),
            ("off,10.0.0.1=required", "DNS name"),
            ("off,[::1]=required", "DNS name"),
            ("off,a.example:443=required", "DNS name"),
            ("off,a.example=required,A.example=optional", "a.example is given twice"),
        ] {
            let error = ClientAuthPolicy::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
