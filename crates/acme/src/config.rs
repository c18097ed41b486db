//! What is ordered, and from whom.

use std::net::IpAddr;

use tls_client::Trust;

use crate::challenge::ChallengeKind;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Names in one certificate at most, as Let's Encrypt has it.
const DOMAINS_MAX: usize = 100;
/// Bytes of a name, and of a label of it, at most (RFC 1035, 2.3.4).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

#[derive(Clone, Debug)]
pub struct AcmeConfig {
    /// The names of the certificate, in lower case.
    pub domains: Vec<String>,
    /// Mail addresses that the authority may write to.
    pub contacts: Vec<String>,
    /// The URL of the authority's directory.
    pub directory: String,
    /// Whom the directory's own certificate must be from.
    pub trust: Trust,
    /// A profile of the authority, such as `shortlived`; `None` for its default.
    pub profile: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcmeConfigError {
    #[error("acme-domain {0}: an address gets no certificate by its name; name a domain")]
    Address(String),
    #[error("acme-domain {0}: a wildcard needs the challenge dns-01: give --acme-dns-hook")]
    Wildcard(String),
    #[error("acme-domain {0}: expected a domain, such as www.example.org")]
    Domain(String),
    #[error("acme-domain {0} is given twice")]
    Twice(String),
    #[error("acme-domain: there are {0} domains; a certificate has at most {DOMAINS_MAX}")]
    TooMany(usize),
    #[error("acme-contact is missing: a mail address for the authority, such as admin@example.org")]
    NoContact,
    #[error("acme-contact {0}: expected a mail address, such as admin@example.org")]
    Contact(String),
    #[error("acme-directory {0}: expected a URL that begins with https://")]
    Directory(String),
}

impl AcmeConfig {
    /// Checks everything that needs no network.
    ///
    /// # Errors
    /// With the first value that cannot be used.
    pub fn check(&self, challenge: ChallengeKind) -> Result<(), AcmeConfigError> {
        for (place, domain) in self.domains.iter().enumerate() {
            check_domain(domain, challenge)?;
            if self.domains[..place].contains(domain) {
                return Err(AcmeConfigError::Twice(domain.clone()));
            }
        }
        if self.domains.len() > DOMAINS_MAX {
            return Err(AcmeConfigError::TooMany(self.domains.len()));
        }
        if self.contacts.is_empty() {
            return Err(AcmeConfigError::NoContact);
        }
        if let Some(bad) = self.contacts.iter().find(|contact| !is_mail(contact)) {
            return Err(AcmeConfigError::Contact(bad.clone()));
        }
        if !self.directory.starts_with("https://") {
            return Err(AcmeConfigError::Directory(self.directory.clone()));
        }
        Ok(())
    }
}

fn check_domain(domain: &str, challenge: ChallengeKind) -> Result<(), AcmeConfigError> {
    if domain.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Err(AcmeConfigError::Address(domain.to_owned()));
    }
    let name = match domain.strip_prefix("*.") {
        Some(_) if challenge != ChallengeKind::Dns01 => {
            return Err(AcmeConfigError::Wildcard(domain.to_owned()));
        }
        Some(parent) => parent,
        None => domain,
    };
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.len() <= NAME_BYTES_MAX && name.contains('.') && name.split('.').all(is_label);
    if is_name { Ok(()) } else { Err(AcmeConfigError::Domain(domain.to_owned())) }
}

/// Whether a text may be a mail address without a header of mail in it (RFC 6068).
fn is_mail(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !b",?&:<>\"".contains(&byte);
    text.bytes().all(allowed)
        && text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(domains: &[&str], contact: &str, directory: &str) -> AcmeConfig {
        AcmeConfig {
            domains: domains.iter().map(|&name| name.to_owned()).collect(),
            contacts: Some(contact.to_owned()).filter(|contact| !contact.is_empty()).into_iter().collect(),
            directory: directory.to_owned(),
            trust: Trust::Roots,
            profile: None,
        }
    }

    #[test]
    fn bad_values_are_refused_with_what_is_expected() {
        let long = format!("{}.test", "a".repeat(64));
        let mail = "a@b.test";
        for (domains, contact, directory, part) in [
            (&["192.0.2.1"][..], mail, LETS_ENCRYPT, "192.0.2.1: an address"),
            (&["[2001:db8::1]"], mail, LETS_ENCRYPT, "an address"),
            (&["*.a.test"], mail, LETS_ENCRYPT, "*.a.test: a wildcard needs the challenge dns-01"),
            (&["a"], mail, LETS_ENCRYPT, "expected a domain"),
            (&["a..test"], mail, LETS_ENCRYPT, "expected a domain"),
            (&["-a.test"], mail, LETS_ENCRYPT, "expected a domain"),
            (&["a.test/x"], mail, LETS_ENCRYPT, "expected a domain"),
            (&[&long], mail, LETS_ENCRYPT, "expected a domain"),
            (&["a.test", "a.test"], mail, LETS_ENCRYPT, "a.test is given twice"),
            (&["a.test"], "", LETS_ENCRYPT, "acme-contact is missing"),
            (&["a.test"], "a", LETS_ENCRYPT, "expected a mail address"),
            (&["a.test"], "a@b.test,c@d.test", LETS_ENCRYPT, "expected a mail address"),
            (&["a.test"], mail, "http://ca.test", "begins with https://"),
        ] {
            let refused = config(domains, contact, directory).check(ChallengeKind::Http01).unwrap_err();
            assert!(refused.to_string().contains(part), "{refused}");
        }
        let many: Vec<String> = (0..=DOMAINS_MAX).map(|n| format!("a{n}.test")).collect();
        let many = AcmeConfig { domains: many, ..config(&[], mail, LETS_ENCRYPT) };
        assert_eq!(many.check(ChallengeKind::Dns01), Err(AcmeConfigError::TooMany(DOMAINS_MAX + 1)));
        let wildcard = config(&["*.a.test", "a.test"], mail, LETS_ENCRYPT);
        assert_eq!(wildcard.check(ChallengeKind::Dns01), Ok(()));
    }
}
