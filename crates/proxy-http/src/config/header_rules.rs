//! Rules that set, add or remove fields of requests and responses.

use std::fmt;
use std::str::FromStr;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use records::ids::ClientId;

use crate::request::special_fields::SpecialField;
use crate::upstream::request_head::HeadWriter;

/// Most rules for requests, and most for responses.
const RULES_MAX: usize = 64;
/// Longest value of a rule, in bytes, before its variables have values.
const VALUE_BYTES_MAX: usize = 1024;
/// Fields that frame, route or authenticate a message, besides those that the proxy handles itself.
const PROTECTED: [&str; 9] = [
    "authorization",
    "proxy-authenticate",
    "proxy-authorization",
    "set-cookie",
    "trailer",
    "www-authenticate",
    "x-http-method-override",
    "x-original-url",
    "x-rewrite-url",
];
/// What a value may contain, by its name.
const VARIABLES: [(&str, Variable); 3] = [
    ("client", Variable::Client),
    ("tls_version", Variable::TlsVersion),
    ("server_name", Variable::ServerName),
];

/// A rule for one field, such as `set X-Env: prod`, `add X-Seen-By: %{client}` or `remove Server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    name: HeaderName,
    action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// Replaces what there is.
    Set(Vec<Part>),
    /// Comes behind what there is.
    Add(Vec<Part>),
    Remove,
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    /// The address of the client, as records name it.
    Client,
    TlsVersion,
    /// The server name of the handshake.
    ServerName,
}

/// What the variables of TLS stand for.
#[derive(Debug)]
pub(crate) struct TlsVariables {
    /// Such as `TLSv1.3`.
    pub(crate) version: &'static str,
    pub(crate) server_name: Box<str>,
}

/// The text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseHeaderRuleError {
    #[error("expected such as 'set X-Env: prod', 'add X-Env: prod' or 'remove X-Env'")]
    Syntax,
    #[error("{0:?} is not the name of a field")]
    Name(String),
    #[error(
        "{0} cannot be changed: it frames, routes or authenticates a message, or the proxy sets it itself"
    )]
    Protected(HeaderName),
    #[error("the value of {0} has more than {VALUE_BYTES_MAX} bytes, or other than visible ASCII characters")]
    Value(HeaderName),
    #[error("%{{{0}}} is not known; known: %{{client}}, %{{tls_version}}, %{{server_name}}")]
    Variable(String),
}

/// Rules that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderRulesError {
    #[error("two rules set or remove {0}")]
    Twice(HeaderName),
    #[error("{0} rules were given; at most {RULES_MAX} are possible")]
    TooMany(usize),
}

impl FromStr for HeaderRule {
    type Err = ParseHeaderRuleError;

    fn from_str(text: &str) -> Result<Self, ParseHeaderRuleError> {
        let (verb, rest) = text.trim().split_once(' ').ok_or(ParseHeaderRuleError::Syntax)?;
        if verb == "remove" {
            return Ok(Self { name: name(rest)?, action: Action::Remove });
        }
        let (field, value) = rest.split_once(':').ok_or(ParseHeaderRuleError::Syntax)?;
        let name = name(field)?;
        let value = value.trim();
        if value.len() > VALUE_BYTES_MAX || HeaderValue::from_str(value).is_err() {
            return Err(ParseHeaderRuleError::Value(name));
        }
        let value = parts(value)?;
        match verb {
            "set" => Ok(Self { name, action: Action::Set(value) }),
            "add" => Ok(Self { name, action: Action::Add(value) }),
            _ => Err(ParseHeaderRuleError::Syntax),
        }
    }
}

fn name(text: &str) -> Result<HeaderName, ParseHeaderRuleError> {
    let text = text.trim();
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| ParseHeaderRuleError::Name(records::text::clean::text(text)))?;
    if SpecialField::of(name.as_str()).is_some() || PROTECTED.contains(&&*name.as_str().replace('_', "-")) {
        return Err(ParseHeaderRuleError::Protected(name));
    }
    Ok(name)
}

/// Splits a value at its variables.
fn parts(mut text: &str) -> Result<Vec<Part>, ParseHeaderRuleError> {
    let mut parts = Vec::new();
    while let Some((before, rest)) = text.split_once("%{") {
        let unknown = || ParseHeaderRuleError::Variable(records::text::clean::text(rest));
        let (name, after) = rest.split_once('}').ok_or_else(unknown)?;
        let variable = VARIABLES
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| ParseHeaderRuleError::Variable(records::text::clean::text(name)))?;
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        parts.push(Part::Variable(variable.1));
        text = after;
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
    Ok(parts)
}

/// The action and the field, without the value, which may be a secret.
impl fmt::Display for HeaderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.action {
            Action::Set(_) => "set",
            Action::Add(_) => "add",
            Action::Remove => "remove",
        };
        write!(f, "{verb} {}", self.name)
    }
}

/// The rules for all requests, or for all responses.
#[derive(Clone, Debug, Default)]
pub struct HeaderRules(Vec<HeaderRule>);

impl HeaderRules {
    /// # Errors
    /// If there are too many, or two of them set or remove the same field.
    pub fn new(rules: Vec<HeaderRule>) -> Result<Self, HeaderRulesError> {
        if rules.len() > RULES_MAX {
            return Err(HeaderRulesError::TooMany(rules.len()));
        }
        for (n, rule) in rules.iter().enumerate() {
            if rules[..n].iter().any(|other| other.replaces(&rule.name) && rule.replaces(&other.name)) {
                return Err(HeaderRulesError::Twice(rule.name.clone()));
            }
        }
        Ok(Self(rules))
    }

    /// Whether a rule takes the place of fields of this name.
    pub(crate) fn replace(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|rule| rule.replaces(name))
    }

    /// Writes the fields of a request that rules set or add.
    pub(crate) fn write(&self, head: &mut impl HeadWriter, tls: &TlsVariables, id: ClientId) {
        for (name, value) in self.values(tls, id) {
            head.copied_field(name, &value);
        }
    }

    /// Changes the fields of a response.
    pub(crate) fn apply(&self, fields: &mut HeaderMap, tls: &TlsVariables, id: ClientId) {
        for rule in self.0.iter().filter(|rule| rule.replaces(&rule.name)) {
            fields.remove(&rule.name);
        }
        for (name, value) in self.values(tls, id) {
            fields.append(name.clone(), value);
        }
    }

    /// The fields that rules set or add. A variable without a value is empty, and so may be a field.
    fn values(&self, tls: &TlsVariables, id: ClientId) -> impl Iterator<Item = (&HeaderName, HeaderValue)> {
        self.0.iter().filter_map(move |rule| match &rule.action {
            // What a client has sent may be what no field can carry.
            Action::Set(parts) | Action::Add(parts) => {
                Some((&rule.name, HeaderValue::try_from(value(parts, tls, id)).ok()?))
            }
            Action::Remove => None,
        })
    }
}

impl HeaderRule {
    fn replaces(&self, name: &HeaderName) -> bool {
        is_same_field(self.name.as_str(), name.as_str()) && !matches!(self.action, Action::Add(_))
    }
}

/// Whether an upstream may take the one for the other: CGI and its kin make `_` of `-`.
fn is_same_field(one: &str, other: &str) -> bool {
    let hyphen = |byte| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(hyphen).eq(other.bytes().map(hyphen))
}

fn value(parts: &[Part], tls: &TlsVariables, id: ClientId) -> String {
    let mut value = String::new();
    for part in parts {
        match part {
            Part::Text(text) => value.push_str(text),
            Part::Variable(Variable::Client) => value.push_str(&id.to_string()),
            Part::Variable(Variable::TlsVersion) => value.push_str(tls.version),
            Part::Variable(Variable::ServerName) => value.push_str(&tls.server_name),
        }
    }
    value
}

impl fmt::Display for HeaderRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, rule) in self.0.iter().enumerate() {
            write!(f, "{}{rule}", if n == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<HeaderRule>().unwrap_err().to_string()
    }

    #[test]
    fn fields_that_frame_route_or_authenticate_cannot_be_changed() {
        for name in [
            "Host",
            "Content-Length",
            "content_length",
            "Transfer-Encoding",
            "Connection",
            "TE",
            "Upgrade",
            "Keep-Alive",
            "Expect",
            "Cookie",
            "Set-Cookie",
            "Authorization",
            "Proxy_Authorization",
            "WWW-Authenticate",
            "Trailer",
            "Forwarded",
            "X-Forwarded-For",
            "X_Forwarded_For",
            "X-TLS-Client-Name",
            "X-Original-URL",
        ] {
            for rule in [format!("set {name}: x"), format!("add {name}: x"), format!("remove {name}")] {
                assert!(refused(&rule).contains("cannot be changed"), "{rule}");
            }
        }
    }

    #[test]
    fn a_malformed_rule_is_refused_with_its_reason() {
        for (rule, reason) in [
            ("", "expected such as 'set X-Env: prod'"),
            ("set X-Env prod", "expected such as"),
            ("put X-Env: prod", "expected such as"),
            ("set X Env: prod", "\"X Env\" is not the name of a field"),
            ("remove X-Env: prod", "\"X-Env: prod\" is not the name of a field"),
            ("set X-Env: a\r\nhost: b", "other than visible ASCII"),
            ("set X-Env: é\u{7f}", "other than visible ASCII"),
            ("set X-Env: %{host}", "%{host} is not known; known: %{client}"),
            ("set X-Env: %{client", "%{client} is not known"),
        ] {
            assert!(refused(rule).contains(reason), "{rule:?}: {}", refused(rule));
        }
        let long = format!("set X-Env: {}", "x".repeat(VALUE_BYTES_MAX + 1));
        assert!(refused(&long).contains("more than 1024 bytes"));
    }

    #[test]
    fn rules_that_contradict_each_other_are_refused() {
        let rules = |texts: &[&str]| {
            let rules = texts.iter().map(|text| text.parse().unwrap()).collect();
            HeaderRules::new(rules).map(|rules| rules.to_string()).map_err(|error| error.to_string())
        };
        let twice = Err("two rules set or remove x-env".to_owned());
        assert_eq!(rules(&["set X-Env: a", "set x-env: b"]), twice);
        assert_eq!(rules(&["remove X-Env", "set X-Env: b"]), twice);
        let shown = "set x-env, add x-env, remove server".to_owned();
        assert_eq!(rules(&["set X-Env: secret", "add X-Env: b", "remove Server"]), Ok(shown));
        assert!(rules(&["add X-Env: a"; RULES_MAX + 1]).unwrap_err().contains("at most 64"));
    }
}
