//! The lines that people paste into a terminator's configuration, so that its log says all that it can.

mod check;
mod directives;

use std::fmt;
use std::str::FromStr;

use crate::format::LogKind;
use crate::log_socket::SocketAddress;
use records::values::LogFigure;

/// A version of a terminator, such as 2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version, such as 2.6 or 1.22.1")]
pub struct ParseVersionError;

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().map_err(|_| ParseVersionError));
        let first = parts.next().ok_or(ParseVersionError)??;
        let mut next = || parts.next().unwrap_or(Ok(0));
        Ok(Self(first, next()?, next()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// One key of our JSON, with what fills it.
#[derive(Clone, Copy, Debug)]
struct Key {
    name: &'static str,
    value: &'static str,
    /// The first version that has it.
    since: Version,
}

const fn key(name: &'static str, value: &'static str) -> Key {
    Key { name, value, since: Version(0, 0, 0) }
}

const fn key_since(name: &'static str, value: &'static str, since: Version) -> Key {
    Key { name, value, since }
}

const NGINX: &[Key] = &[
    key("time", "$msec"),
    key("client", "$remote_addr"),
    key("connection", "$connection"),
    key("number", "$connection_requests"),
    key("version", "$ssl_protocol"),
    key("cipher", "$ssl_cipher"),
    key_since("group", "$ssl_curve", Version(1, 21, 5)),
    key("reused", "$ssl_session_reused"),
    key("name", "$ssl_server_name"),
    key_since("alpn", "$ssl_alpn_protocol", Version(1, 21, 4)),
    key("method", "$request_method"),
    key("path", "$uri"),
    key("protocol", "$server_protocol"),
    key("status", "$status"),
    key("in", "$request_length"),
    key("out", "$bytes_sent"),
    key("body", "$body_bytes_sent"),
    key("took", "$request_time"),
    key("upstream", "$upstream_addr"),
    key("connect", "$upstream_connect_time"),
    key("header", "$upstream_header_time"),
];

/// Without the group: OpenSSL before 3.5 looks for it in the session, which a handshake that failed has not, so that its
/// line would end the worker ([openssl#26722](https://github.com/openssl/openssl/pull/26722)).
const NGINX_STREAM: &[Key] = &[
    key("time", "$msec"),
    key("client", "$remote_addr"),
    key("version", "$ssl_protocol"),
    key("cipher", "$ssl_cipher"),
    key("session", "$ssl_session_id"),
    key("reused", "$ssl_session_reused"),
    key("name", "$ssl_server_name"),
    key_since("alpn", "$ssl_alpn_protocol", Version(1, 21, 4)),
    key("status", "$status"),
    key("in", "$bytes_received"),
    key("out", "$bytes_sent"),
    key("took", "$session_time"),
    key("connect", "$upstream_connect_time"),
];

const HAPROXY_CONNECTION: &[Key] = &[
    key("time", "%Ts.%ms"),
    key("log", "%f"),
    key("line", "%lc"),
    key("client", "%ci"),
    key("version", "%sslv"),
    key("cipher", "%sslc"),
    key("resumed", "%[ssl_fc_is_resumed]"),
    key("name", "%[ssl_fc_sni,json(utf8s)]"),
    key("alpn", "%[ssl_fc_alpn]"),
    key("handshake", "%Th"),
];

/// Not of a handshake that failed: its line would end HAProxy in the same way.
const HAPROXY_GROUP: &[Key] = &[key_since("group", "%[ssl_fc_curve]", Version(2, 9, 0))];

const HAPROXY_HTTP: &[Key] = &[
    key("number", "%[var(txn.tlsdash)]"),
    key("method", "%HM"),
    key("path", r"%[capture.req.uri,regsub(\\?.*,),json(utf8s)]"),
    key("protocol", "%HV"),
    key("upstream", "%b/%s"),
    key("status", "%ST"),
    key("state", "%ts"),
    key("in", "%U"),
    key("out", "%B"),
    key("idle", "%Ti"),
    key("took", "%Ta"),
    key("response", "%Tr"),
];

const HAPROXY_TCP: &[Key] = &[
    key("upstream", "%b/%s"),
    key("state", "%ts"),
    key("in", "%U"),
    key("out", "%B"),
    key("took", "%Tt"),
    key("connect", "%Tc"),
];

/// The keys that distinguish an incomplete request from a connection without a request.
const HAPROXY_HTTP_ERROR: &[Key] = &[
    key("number", "%[var(sess.tlsdash)]"),
    key("status", "%ST"),
    key("state", "%ts"),
    key("idle", "%Ti"),
    key("took", "%Ta"),
];

const HAPROXY_ERROR: &[Key] = &[key("code", "%[fc_err]"), key("error", "%[fc_err_str]: %[ssl_fc_err_str]")];

/// stunnel logs to a file or to syslog, in one format.
const STUNNEL: &str = "# Before the first service:\ndebug = info\noutput = /var/log/stunnel4/stunnel.log\nlog = append\n# tlsdash observe stunnel --file /var/log/stunnel4/stunnel.log --follow\n";

/// The first HAProxy with `error-log-format`, and with a default for variables.
const HAPROXY_OLDEST: Version = Version(2, 5, 0);

/// A JSON object of these keys, as far as the version has them.
fn json(kind: Option<&str>, keys: &[&[Key]], version: Version) -> String {
    let kind = kind.map(|kind| format!("\"kind\":\"{kind}\""));
    let known = keys.iter().copied().flatten().filter(|key| key.since <= version);
    let keys = known.map(|key| format!("\"{}\":\"{}\"", key.name, key.value));
    format!("{{{}}}", kind.into_iter().chain(keys).collect::<Vec<_>>().join(","))
}

/// What this version cannot log, each with the version that can.
fn too_new(keys: &[&[Key]], version: Version) -> Vec<String> {
    let keys = keys.iter().copied().flatten().filter(|key| key.since > version);
    keys.map(|key| format!("{} ({} is in {} and later)", key.name, key.value, key.since)).collect()
}

/// The lines to paste.
pub fn lines(kind: LogKind, version: Version, socket: &SocketAddress) -> String {
    let text = match kind {
        LogKind::Nginx => nginx("http", NGINX, version, socket),
        LogKind::NginxStream => nginx("stream", NGINX_STREAM, version, socket),
        LogKind::Haproxy => haproxy(version, socket),
        LogKind::Stunnel => STUNNEL.to_owned(),
    };
    let keys: &[&[Key]] = match kind {
        LogKind::Nginx => &[NGINX],
        LogKind::NginxStream => &[NGINX_STREAM],
        LogKind::Haproxy => &[HAPROXY_CONNECTION, HAPROXY_GROUP],
        LogKind::Stunnel => &[],
    };
    let lacks = too_new(keys, version);
    let lacks = if lacks.is_empty() {
        String::new()
    } else {
        format!("# Not in this version: {}\n", lacks.join(", "))
    };
    let absent: Vec<_> = kind
        .absent()
        .iter()
        // The printed error_log has them.
        .filter(|absent| kind != LogKind::Nginx || absent.figure != LogFigure::Failures)
        .map(|absent| format!("#   {}: {}\n", absent.figure.name(), absent.reason))
        .collect();
    let absent = absent.concat();
    format!("# {kind} {version}\n{lacks}{text}\n# What this log cannot say:\n{absent}")
}

fn nginx(context: &str, keys: &[Key], version: Version, socket: &SocketAddress) -> String {
    let server = match socket {
        SocketAddress::Unix(path) => format!("unix:{}", path.display()),
        SocketAddress::Udp(address) => address.to_string(),
    };
    let format = json(None, &[keys], version);
    let errors = if context == "http" {
        format!(
            "# Why handshakes fail; beside the error_log that there is:\nerror_log syslog:server={server},nohostname info;\n"
        )
    } else {
        String::new()
    };
    format!(
        "# In {context} {{ }}:\nlog_format tlsdash escape=json '{format}';\naccess_log syslog:server={server},nohostname tlsdash;\n{errors}"
    )
}

fn haproxy(version: Version, socket: &SocketAddress) -> String {
    let server = match socket {
        SocketAddress::Unix(path) => path.display().to_string(),
        SocketAddress::Udp(address) => address.to_string(),
    };
    let connection = HAPROXY_CONNECTION;
    let http = json(Some("http"), &[connection, HAPROXY_GROUP, HAPROXY_HTTP], version);
    let tcp = json(Some("tcp"), &[connection, HAPROXY_GROUP, HAPROXY_TCP], version);
    let errors = |keys: &[&[Key]]| {
        if version < HAPROXY_OLDEST {
            format!("    # HAProxy {HAPROXY_OLDEST} and later log why handshakes fail (error-log-format)\n")
        } else {
            format!("    error-log-format '{}'\n", json(Some("error"), keys, version))
        }
    };
    let http_errors = errors(&[connection, HAPROXY_HTTP_ERROR, HAPROXY_ERROR]);
    let tcp_errors = errors(&[connection, HAPROXY_ERROR]);
    format!(
        "# In each frontend with mode http (a path is within chroot, if there is one):
    log {server} len 8192 format raw local0
    http-request set-var(sess.tlsdash) var(sess.tlsdash,0),add(1)
    http-request set-var(txn.tlsdash) var(sess.tlsdash)
    log-format '{http}'
{http_errors}
# In each frontend with mode tcp:
    log {server} len 8192 format raw local0
    log-format '{tcp}'
{tcp_errors}"
    )
}

pub use check::{Missing, missing};

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(kind: LogKind, version: &str) -> String {
        let lines = lines(kind, version.parse().unwrap(), &"unix:/run/log.sock".parse().unwrap());
        lines.lines().filter(|line| !line.starts_with('#')).map(|line| line.to_owned() + "\n").collect()
    }

    #[test]
    fn old_versions_get_no_variable_that_they_lack() {
        for (kind, old, new, variable) in [
            (LogKind::Nginx, "1.18", "1.22.1", "$ssl_curve"),
            (LogKind::NginxStream, "1.18", "1.22.1", "$ssl_alpn_protocol"),
            (LogKind::Haproxy, "2.6.12", "2.9", "ssl_fc_curve"),
        ] {
            assert!(!pasted(kind, old).contains(variable) && pasted(kind, new).contains(variable), "{kind}");
        }
    }

    #[test]
    fn no_line_of_a_failed_handshake_asks_for_its_group() {
        assert!(!pasted(LogKind::NginxStream, "1.29").contains("curve"));
        let haproxy = pasted(LogKind::Haproxy, "3.2");
        let with_group: Vec<_> = haproxy.lines().filter(|line| line.contains("curve")).collect();
        assert!(
            with_group.len() == 2 && with_group.iter().all(|line| line.contains(" log-format ")),
            "{haproxy}"
        );
    }

    #[test]
    fn every_key_that_is_printed_can_be_read() {
        let newest = Version(99, 0, 0);
        let format = json(None, &[NGINX], newest).replace("$msec", "1.000").replace("$remote_addr", "::1");
        // The names of variables are no numbers: what is refused is a value, never a key.
        let refused = LogKind::Nginx.parser().parse(format.as_bytes(), |_| ()).unwrap_err();
        assert!(matches!(refused, crate::BadLine::Field(_)), "{refused}");
    }
}
