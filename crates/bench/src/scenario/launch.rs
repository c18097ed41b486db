//! From a server with placeholders to a command that can be run.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BenchTlsConfig, CommandServer, UpstreamKind, absolute};

/// An address of a server on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// The values of the placeholders.
///
/// | placeholder | value |
/// |---|---|
/// | `{listen}` | where it listens: `127.0.0.1:PORT`, or `unix:PATH` behind another server of a chain |
/// | `{port}` | the port of `{listen}`, which must be TCP |
/// | `{upstream}` | what stands behind it: the path of a Unix socket, or `127.0.0.1:PORT` with `upstream = "tcp"` |
/// | `{upstream-port}` | the port of `{upstream}`, which must be TCP |
/// | `{cert}` `{key}` `{pem}` | files with the certificate, its key, and both |
/// | `{cipher}` | the cipher suite of TLS 1.3 |
/// | `{ciphers}` | the cipher suites of TLS 1.3 and 1.2 by their IANA names, with commas |
/// | `{openssl-ciphers}` | the cipher suites of TLS 1.2 by OpenSSL's names, with colons |
/// | `{group}` | the key exchange group |
/// | `{workers}` | how many workers to start |
/// | `{dir}` | a folder of its own, which has its files |
/// | `{build}` | a folder for what `prepare` makes; all rounds, and targets that are prepared alike, share it |
/// | `{www}` | a folder with a file `bytes/N` for each `/bytes/N` that a case asks for |
/// | `{user}` | the user for unprivileged workers: `nobody` for root, else the user of this program |
/// | `{tlsdash}` | this program |
#[derive(Clone, Debug)]
pub struct PlaceholderValues<'s> {
    /// Where it listens.
    pub listen: &'s Endpoint,
    /// The server behind it; `None` if it answers itself.
    pub upstream: Option<&'s Endpoint>,
    /// The certificate chain, in PEM.
    pub cert: &'s Path,
    /// Its private key, in PEM.
    pub key: &'s Path,
    /// Both in one file.
    pub pem: &'s Path,
    pub tls: &'s BenchTlsConfig,
    /// The number of workers, at least 1.
    pub workers: u32,
    /// Its own folder.
    pub dir: &'s Path,
    /// The folder for the output of `prepare`.
    pub build: &'s Path,
    /// The folder of static files.
    pub www: &'s Path,
    /// The user for unprivileged workers.
    pub user: &'s str,
    /// The path of this program.
    pub tlsdash: &'s Path,
}

/// A server as a process to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// The files to write before it starts, with their paths.
    pub files: BTreeMap<PathBuf, String>,
    /// A command that runs once in a run, after the files are written and with the same environment;
    /// empty if there is none.
    pub prepare: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("{location}{text} has no value{reason}")]
    Placeholder {
        /// Where it is written, such as `file nginx.conf line 3: `.
        location: String,
        /// The placeholder with its braces.
        text: String,
        reason: &'static str,
    },
    /// A path that a configuration file would not read as one value.
    #[error(
        "{location}{text} is {value:?}, whose spaces or signs may end it there; write \"{text}\" in quotes, or choose another folder"
    )]
    Unquoted { location: String, text: String, value: String },
    /// A path that is not text.
    #[error("the path {0:?} is not UTF-8; choose another folder")]
    Path(PathBuf),
}

impl Endpoint {
    /// The TCP port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(addr) => Some(addr.port()),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(addr) => addr.fmt(f),
        }
    }
}

impl CommandServer {
    /// The first variable of the environment that names no file although the server needs it to.
    pub fn missing_variable(&self) -> Option<&str> {
        let is_missing =
            |name: &&String| std::env::var_os(name).is_none_or(|path| !Path::new(&path).is_file());
        self.needs.iter().find(is_missing).map(String::as_str)
    }

    /// The variables of the environment that name files, with absolute paths: the server runs in a folder of its own.
    pub(crate) fn needed_variables(&self) -> impl Iterator<Item = (String, String)> {
        self.needs.iter().filter_map(|name| Some((name.clone(), absolute(&std::env::var(name).ok()?))))
    }

    /// Fills the placeholders. Does no I/O: the caller writes the files.
    ///
    /// # Errors
    /// If a placeholder has no value, or a path in a file would have to be quoted there.
    pub fn launch(&self, slots: &PlaceholderValues<'_>) -> Result<Launch, LaunchError> {
        let fill = |location: &str, text: &str| slots.fill(location, text, |_, _| true);
        let argv = |key: &str, words: &[String]| -> Result<Vec<String>, LaunchError> {
            words.iter().map(|word| fill(&format!("{key}: "), word)).collect()
        };
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(&format!("environment {name}: "), value)?)));
        let files = self.files.iter().map(|(name, text)| {
            let lines = text.split_inclusive('\n').enumerate();
            let line = |(n, line)| slots.fill(&format!("file {name} line {}: ", n + 1), line, is_one_value);
            Ok((slots.dir.join(name), lines.map(line).collect::<Result<String, _>>()?))
        });
        Ok(Launch {
            argv: argv("command", &self.command)?,
            environment: environment.collect::<Result<_, _>>()?,
            files: files.collect::<Result<_, _>>()?,
            prepare: argv("prepare", &self.prepare)?,
        })
    }
}

impl PlaceholderValues<'_> {
    /// Replaces each `{name}` by its value, and `{{name}}` by `{name}`. Other braces stay as they are. `may_follow` gets what
    /// stands before a value, and the value.
    fn fill(
        &self,
        location: &str,
        text: &str,
        may_follow: impl Fn(&str, &str) -> bool,
    ) -> Result<String, LaunchError> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let (taken, value) = if let Some(name) = rest.strip_prefix('{').and_then(name_before_brace) {
                let value = self.value(location, name)?;
                if !may_follow(&filled, &value) {
                    let (location, text) = (location.to_owned(), format!("{{{name}}}"));
                    return Err(LaunchError::Unquoted { location, text, value });
                }
                (name.len() + 2, value)
            } else if let Some(name) = rest.strip_prefix("{{").and_then(name_before_brace)
                && rest[name.len() + 3..].starts_with('}')
            {
                (name.len() + 4, format!("{{{name}}}"))
            } else {
                (1, "{".to_owned())
            };
            filled.push_str(&value);
            rest = &rest[taken..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, location: &str, name: &str) -> Result<String, LaunchError> {
        let error = |reason| LaunchError::Placeholder {
            location: location.to_owned(),
            text: format!("{{{name}}}"),
            reason,
        };
        let path =
            |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| LaunchError::Path(path.to_owned()));
        match name {
            "listen" => Ok(self.listen.to_string()),
            "port" => self
                .listen
                .port()
                .map(|port| port.to_string())
                .ok_or_else(|| error(": behind a server that wants a Unix socket, use {listen}")),
            "upstream" => match self.upstream {
                Some(Endpoint::Unix(socket)) => path(socket),
                Some(Endpoint::Tcp(addr)) => Ok(addr.to_string()),
                None => Err(error(": the server has upstream = \"none\"")),
            },
            "upstream-port" => match self.upstream.and_then(Endpoint::port) {
                Some(port) => Ok(port.to_string()),
                None => Err(error(": write upstream = \"tcp\"")),
            },
            "cert" => path(self.cert),
            "key" => path(self.key),
            "pem" => path(self.pem),
            "cipher" => Ok(self.tls.cipher.clone()),
            "ciphers" => Ok(self.tls.iana_ciphers().join(",")),
            "openssl-ciphers" => Ok(self.tls.openssl_ciphers()),
            "group" => Ok(self.tls.group.clone()),
            "workers" => Ok(self.workers.to_string()),
            "dir" => path(self.dir),
            "build" => path(self.build),
            "www" => path(self.www),
            "user" => Ok(self.user.to_owned()),
            "tlsdash" => path(self.tlsdash),
            _ => Err(error(
                "; docs/bench.md lists the placeholders, and {{name}} is written where {name} is meant",
            )),
        }
    }
}

/// Whether a configuration file reads the value as one, behind this beginning of its line: in quotes it may have spaces.
fn is_one_value(before: &str, value: &str) -> bool {
    let is_quoted = ['"', '\''].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@~:,".contains(c);
    let is_quotable = |c: char| !c.is_control() && !"\"'`\\$".contains(c);
    value.chars().all(|c| is_plain(c) || is_quoted && is_quotable(c))
}

/// The name of a placeholder, if the text is one up to its closing brace: `port}...`.
fn name_before_brace(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('}')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_name.then_some(name)
}

/// Tries whether each placeholder has a value, if the server listens on this kind of address.
pub(super) fn try_placeholders(server: &CommandServer, listen: UpstreamKind) -> Result<(), LaunchError> {
    let path = Path::new("/path");
    let endpoint = |kind| match kind {
        UpstreamKind::Unix => Some(Endpoint::Unix(path.to_owned())),
        UpstreamKind::Tcp => Some(Endpoint::Tcp((Ipv4Addr::LOCALHOST, 1).into())),
        UpstreamKind::None => None,
    };
    let Some(listen) = endpoint(listen) else { return Ok(()) };
    let upstream = endpoint(server.upstream);
    let slots = PlaceholderValues {
        listen: &listen,
        upstream: upstream.as_ref(),
        cert: path,
        key: path,
        pem: path,
        tls: &BenchTlsConfig::default(),
        workers: 1,
        dir: path,
        build: path,
        www: path,
        user: "nobody",
        tlsdash: path,
    };
    server.launch(&slots).map(drop)
}
