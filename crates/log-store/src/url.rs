//! `logs+http://HOST:PORT/PREFIX?PARAMETER=VALUE&…`, and `http://…` for uploads.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use ureq::http::Uri;

const PARAMETERS: &str = "query, tenant, token-file, user, password-file, cafile, cert and key";

/// A store of logs, and how to ask it. Secrets are in files or in the environment, never in the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// As it was given.
    text: String,
    /// `http://HOST:PORT/PREFIX`, without a slash at its end.
    pub(crate) base: String,
    pub(crate) parameters: Parameters,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// A further filter, in LogsQL.
    pub(crate) query: Option<String>,
    /// Account and project.
    pub(crate) tenant: Option<(u32, u32)>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) cafile: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    #[error("expected logs+http://HOST:PORT or logs+https://HOST:PORT")]
    Form,
    #[error("expected http://HOST:PORT, https://HOST:PORT, or logs+ and one of these for VictoriaLogs")]
    UploadForm,
    #[error(
        "a password in a URL is seen by others: use ?user=NAME&password-file=PATH, or TLSDASH_LOGS_PASSWORD"
    )]
    Secret,
    #[error("there is no parameter {0:?}: there are {PARAMETERS}")]
    Unknown(String),
    #[error("the parameter {0} is given twice")]
    Twice(String),
    #[error("{name}={value:?}: expected {expected}")]
    Value { name: String, value: String, expected: &'static str },
    #[error("{0}")]
    Contradiction(&'static str),
}

impl StoreUrl {
    /// Whether a text names a store, also wrongly: it may have a password, and is no path.
    pub fn is_one(text: &str) -> bool {
        let begins =
            |scheme: &str| text.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
        begins("logs+http://") || begins("logs+https://")
    }

    /// The same, asked for the entries of one host, of one unit, or of both.
    #[must_use]
    pub fn limited_to(mut self, host: Option<&str>, unit: Option<&str>) -> Self {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let of_host = host.map(|host| format!("_HOSTNAME:=\"{}\"", quoted(host)));
        // journald leaves out a unit that it does not know.
        let of_unit =
            unit.map(|unit| format!("(_SYSTEMD_UNIT:=\"{}\" or _SYSTEMD_UNIT:=\"\")", quoted(unit)));
        let filters =
            of_host.into_iter().chain(of_unit).chain(self.parameters.query.map(|it| format!("({it})")));
        self.parameters.query = filters.reduce(|all, one| format!("{all} {one}"));
        self
    }

    fn is_https(&self) -> bool {
        self.base.starts_with("https:")
    }

    fn check(self) -> Result<Self, StoreUrlError> {
        let Parameters { token_file, user, password_file, cafile, cert, key, .. } = &self.parameters;
        let names_tls = cafile.is_some() || cert.is_some() || key.is_some();
        let contradiction = if cert.is_some() != key.is_some() {
            "cert and key need each other"
        } else if names_tls && !self.is_https() {
            "cafile, cert and key need logs+https://"
        } else if password_file.is_some() && user.is_none() {
            "password-file needs user"
        } else if token_file.is_some() && user.is_some() {
            "token-file and user exclude each other"
        } else {
            return Ok(self);
        };
        Err(StoreUrlError::Contradiction(contradiction))
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        Self::of(text, text.strip_prefix("logs+").ok_or(StoreUrlError::Form)?)
    }
}

impl StoreUrl {
    /// Parses the part of `text` behind its prefix.
    fn of(text: &str, url: &str) -> Result<Self, StoreUrlError> {
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(StoreUrlError::Form);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let uri: Uri = base.parse().map_err(|_| StoreUrlError::Form)?;
        let authority = uri.authority().ok_or(StoreUrlError::Form)?;
        if authority.as_str().contains('@') {
            return Err(StoreUrlError::Secret);
        }
        // What is no port would silently be another one.
        let named = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if url.contains('#') || (!named.is_empty() && authority.port_u16().is_none_or(|port| port == 0)) {
            return Err(StoreUrlError::Form);
        }
        let base = base.trim_end_matches('/').to_owned();
        let mut parameters = Parameters::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.set(name, value)?;
        }
        Self { text: text.to_owned(), base, parameters }.check()
    }
}

/// Where entries are sent: a store, or what takes them from systemd-journal-upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadUrl {
    pub(crate) url: StoreUrl,
    /// The path behind that of the URL.
    pub(crate) path: &'static str,
}

impl FromStr for UploadUrl {
    type Err = StoreUrlError;

    /// Parses the URL of a store, or, without `logs+`, one such as `URL=` in journal-upload.conf(5).
    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let (url, path) = match text.strip_prefix("logs+") {
            Some(url) => (url, "/insert/journald/upload"),
            None => (text, "/upload"),
        };
        let url = StoreUrl::of(text, url).map_err(|error| match error {
            StoreUrlError::Form => StoreUrlError::UploadForm,
            other => other,
        })?;
        if url.parameters.query.is_some() {
            return Err(StoreUrlError::Contradiction("query is for reading: an upload has all records"));
        }
        Ok(Self { url, path })
    }
}

impl fmt::Display for UploadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl Parameters {
    fn set(&mut self, name: &str, encoded: &str) -> Result<(), StoreUrlError> {
        let refuse = |expected| {
            let value = encoded.chars().take(80).collect();
            StoreUrlError::Value { name: name.to_owned(), value, expected }
        };
        let decoded =
            percent_decode_str(encoded).decode_utf8().map_err(|_| refuse("percent-encoded UTF-8"))?;
        if decoded.is_empty() {
            return Err(refuse("a value"));
        }
        let value = decoded.into_owned();
        let is_twice = match name {
            "query" if !is_one_filter(&value) => return Err(refuse("one filter, without pipes or comments")),
            "query" => self.query.replace(value).is_some(),
            "tenant" => {
                let parts = value.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                self.tenant.replace(parts.ok_or_else(|| refuse("ACCOUNT:PROJECT, two numbers"))?).is_some()
            }
            "token-file" => self.token_file.replace(value.into()).is_some(),
            "user" => self.user.replace(value).is_some(),
            "password-file" => self.password_file.replace(value.into()).is_some(),
            "cafile" => self.cafile.replace(value.into()).is_some(),
            "cert" => self.cert.replace(value.into()).is_some(),
            "key" => self.key.replace(value.into()).is_some(),
            _ => return Err(StoreUrlError::Unknown(name.chars().take(80).collect())),
        };
        if is_twice { Err(StoreUrlError::Twice(name.to_owned())) } else { Ok(()) }
    }
}

/// Whether a text in LogsQL stays within parentheses around it.
fn is_one_filter(text: &str) -> bool {
    let (mut depth, mut quote, mut characters) = (0_usize, None, text.chars());
    while let Some(c) = characters.next() {
        if let Some(open) = quote {
            if c == '\\' && open != '`' {
                characters.next();
            } else if c == open {
                quote = None;
            }
            continue;
        }
        match c {
            '"' | '\'' | '`' => quote = Some(c),
            '(' | '[' => depth += 1,
            // A range may be half open: `[1,2)`.
            ')' | ']' if depth > 0 => depth -= 1,
            ')' | ']' | '|' | '#' => return false,
            _ => {}
        }
    }
    depth == 0 && quote.is_none()
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&records::text::clean::line(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_prefix_and_decodes_its_parameters() {
        let url: StoreUrl =
            "logs+https://h:1/vl/?query=_time:1h%20a%2Bb+c&tenant=1:2&token-file=/t".parse().unwrap();
        assert_eq!(url.base, "https://h:1/vl");
        assert_eq!(url.parameters.query.as_deref(), Some("_time:1h a+b+c"));
        assert_eq!(url.parameters.tenant, Some((1, 2)));
        assert_eq!(url.parameters.token_file, Some("/t".into()));
        let plain = "logs+http://[::1]:9428";
        assert_eq!(plain.parse::<StoreUrl>().unwrap().to_string(), plain);
    }

    #[test]
    fn a_store_is_asked_for_a_host_or_a_unit_only() {
        let query = |url: &str, host, unit| {
            url.parse::<StoreUrl>().unwrap().limited_to(host, unit).parameters.query.unwrap_or_default()
        };
        assert_eq!(query("logs+http://h", None, None), "");
        assert_eq!(query("logs+http://h?query=a", Some("e\"\\"), None), r#"_HOSTNAME:="e\"\\" (a)"#);
        let of_unit = r#"(_SYSTEMD_UNIT:="x.service" or _SYSTEMD_UNIT:="")"#;
        assert_eq!(query("logs+http://h", None, Some("x.service")), of_unit);
    }

    #[test]
    fn an_upload_goes_to_a_store_or_to_a_receiver_of_journals() {
        for (text, place) in [
            ("logs+http://h:9428/vl/", "http://h:9428/vl/insert/journald/upload"),
            ("https://h:19532?cert=/c&key=/k", "https://h:19532/upload"),
            ("http://h:9428/insert/journald", "http://h:9428/insert/journald/upload"),
        ] {
            let upload: UploadUrl = text.parse().unwrap();
            assert_eq!(format!("{}{}", upload.url.base, upload.path), place);
            assert_eq!(upload.to_string(), text);
        }
        for (text, why) in [
            ("h:19532", "expected http://HOST:PORT, https"),
            ("logs+ftp://h", "expected http://HOST:PORT, https"),
            ("http://u:geheim@h", "use ?user=NAME&password-file=PATH"),
            ("logs+http://h?query=a", "an upload has all records"),
        ] {
            let error = text.parse::<UploadUrl>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("geheim"), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_url_cannot_say_is_refused_in_words() {
        for (text, why) in [
            ("http://h", "expected logs+http"),
            ("logs+http://", "expected logs+http"),
            ("logs+http:///x", "expected logs+http"),
            ("logs+ftp://h", "expected logs+http"),
            ("logs+http://user:geheim@h", "use ?user=NAME&password-file=PATH"),
            ("logs+http://h?limit=3", "there is no parameter \"limit\": there are query, tenant"),
            ("logs+http://h?query=", "expected a value"),
            ("logs+http://h:194280", "expected logs+http"),
            ("logs+http://h:", "expected logs+http"),
            ("logs+http://h:1x", "expected logs+http"),
            ("logs+http://[::1]:0", "expected logs+http"),
            ("logs+http://h/a#b", "expected logs+http"),
            ("logs+HTTP://user:geheim@h", "expected logs+http"),
            ("logs+http://h?query=*)%20|%20limit%201%20|%20filter%20(*", "one filter"),
            ("logs+http://h?query=a%20|%20limit%201", "one filter"),
            ("logs+http://h?query=*)%20or%20(*", "one filter"),
            ("logs+http://h?query=\"a", "one filter"),
            ("logs+http://h?query=%ff", "percent-encoded UTF-8"),
            ("logs+http://h?query=a&query=b", "given twice"),
            ("logs+http://h?tenant=1", "expected ACCOUNT:PROJECT"),
            ("logs+https://h?cert=/c", "cert and key need each other"),
            ("logs+http://h?cafile=/c", "need logs+https://"),
            ("logs+http://h?password-file=/c", "needs user"),
            ("logs+http://h?user=a&token-file=/c", "exclude each other"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("geheim"), "{text}: {error}");
        }
    }
}
