//! Says what a configuration lacks.

use super::{
    HAPROXY_CONNECTION, HAPROXY_ERROR, HAPROXY_HTTP, HAPROXY_TCP, Key, NGINX, NGINX_STREAM, Version,
};
use crate::format::LogKind;

/// Something that a configuration lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

/// What this configuration lacks of the lines that `lines` gives. It reads words, not nesting: of several frontends or
/// servers it cannot tell which one lacks a line.
pub fn missing(kind: LogKind, version: Version, configuration: &str) -> Vec<Missing> {
    let text = without_comments(configuration);
    let mut missing = Vec::new();
    let mut need = |is_there: bool, what: &str| {
        if !is_there {
            missing.push(Missing(what.to_owned()));
        }
    };
    if matches!(kind, LogKind::Nginx | LogKind::NginxStream) {
        need(
            has_line(&text, "access_log", "syslog:server="),
            "access_log syslog:server=…: nothing is sent to the socket",
        );
    }
    let keys: Vec<&Key> = match kind {
        LogKind::Nginx => {
            need(
                has_line(&text, "error_log", "syslog:server="),
                "error_log syslog:server=… info: failed handshakes are not counted",
            );
            need(text.contains("escape=json"), "escape=json: a quote in a path breaks its line");
            NGINX.iter().collect()
        }
        LogKind::Stunnel => {
            need(
                text.lines().any(|line| is_setting(line, "debug", &["info", "6", "debug", "7"])),
                "debug = info: neither versions nor resumption are logged",
            );
            need(
                text.lines()
                    .any(|line| is_setting(line, "output", &[]) || is_setting(line, "syslog", &["yes"])),
                "output = PATH: nothing is written to a file that can be followed",
            );
            Vec::new()
        }
        LogKind::NginxStream => {
            need(text.contains("escape=json"), "escape=json: a quote in a server name breaks its line");
            NGINX_STREAM.iter().collect()
        }
        LogKind::Haproxy => {
            need(
                has_line(&text, "log", "format raw"),
                "log … format raw: nothing is sent to the socket in our format",
            );
            need(
                text.contains("error-log-format"),
                "error-log-format: failed handshakes have no cause that can be read",
            );
            let is_http = text.contains("\"kind\":\"http\"");
            let is_tcp = text.contains("\"kind\":\"tcp\"");
            need(is_http || is_tcp, "log-format with \"kind\":\"http\" or \"tcp\"");
            if is_http {
                need(
                    text.contains("set-var(sess.tlsdash)") && text.contains("set-var(txn.tlsdash)"),
                    "http-request set-var(…tlsdash): connections and handshakes are not counted",
                );
            }
            let of = |is_there: bool, keys: &'static [Key]| keys.iter().filter(move |_| is_there);
            let keys =
                HAPROXY_CONNECTION.iter().chain(of(is_http, HAPROXY_HTTP)).chain(of(is_tcp, HAPROXY_TCP));
            keys.chain(of(text.contains("error-log-format"), HAPROXY_ERROR)).collect()
        }
    };
    for key in keys.into_iter().filter(|key| key.since <= version) {
        need(
            text.contains(&format!("\"{}\":\"", key.name)),
            &format!("\"{}\":\"{}\" in the format", key.name, key.value),
        );
    }
    missing
}

fn has_line(text: &str, directive: &str, part: &str) -> bool {
    text.lines().any(|line| line.split_whitespace().next() == Some(directive) && line.contains(part))
}

/// Whether a line of stunnel's configuration sets an option to one of these values, or to any.
fn is_setting(line: &str, option: &str, values: &[&str]) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    name.trim() == option && (values.is_empty() || values.contains(&value.trim()))
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_setup_prints_lacks_nothing() {
        let socket = "unix:/run/log.sock".parse().unwrap();
        for (kind, version) in [
            (LogKind::Nginx, Version(1, 22, 1)),
            (LogKind::NginxStream, Version(1, 18, 0)),
            (LogKind::Haproxy, Version(2, 6, 12)),
            (LogKind::Haproxy, Version(3, 0, 0)),
            (LogKind::Stunnel, Version(5, 68, 0)),
        ] {
            let lines = crate::setup::lines(kind, version, &socket);
            assert_eq!(missing(kind, version, &lines), [], "{kind} {version}");
        }
    }

    #[test]
    fn each_line_that_is_missing_is_named() {
        let socket = "unix:/run/log.sock".parse().unwrap();
        let version = Version(2, 6, 12);
        let lines = crate::setup::lines(LogKind::Haproxy, version, &socket);
        let without =
            lines.replace("http-request set-var", "# http-request").replace("\"cipher\":\"%sslc\",", "");
        let lacks = missing(LogKind::Haproxy, version, &without);
        let lacks: Vec<_> = lacks.iter().map(|Missing(what)| what.as_str()).collect();
        assert_eq!(
            lacks,
            [
                "http-request set-var(…tlsdash): connections and handshakes are not counted",
                "\"cipher\":\"%sslc\" in the format"
            ]
        );
    }
}
