//! Says what a configuration lacks, block by block.

use std::fmt;

use super::directives::{Directive, Place, of_haproxy, of_nginx};
use super::{
    HAPROXY_CONNECTION, HAPROXY_ERROR, HAPROXY_GROUP, HAPROXY_HTTP, HAPROXY_HTTP_ERROR, HAPROXY_OLDEST,
    HAPROXY_TCP, Key, NGINX, NGINX_STREAM, Version,
};
use crate::format::LogKind;

/// Something that a configuration lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where: the block that lacks it, or the line that is wrong; `None` for all of the configuration.
    place: Option<Place>,
    /// What, and what follows from it.
    what: String,
}

impl Missing {
    /// With the place, in `file` unless the text of the configuration names another.
    pub fn in_file(&self, file: impl fmt::Display) -> String {
        match &self.place {
            Some(Place { file, line }) if !file.is_empty() => format!("{file}:{line}: {}", self.what),
            Some(Place { line, .. }) => format!("{file}:{line}: {}", self.what),
            None => format!("{file}: {}", self.what),
        }
    }
}

/// What this configuration lacks of the lines that `lines` gives: each server or frontend by itself.
pub fn missing(kind: LogKind, version: Version, configuration: &str) -> Vec<Missing> {
    let mut check = Check { version, missing: Vec::new() };
    match kind {
        LogKind::Nginx => check.nginx(&of_nginx(configuration), "http", NGINX),
        LogKind::NginxStream => check.nginx(&of_nginx(configuration), "stream", NGINX_STREAM),
        LogKind::Haproxy => check.haproxy(&of_haproxy(configuration)),
        LogKind::Stunnel => check.stunnel(configuration),
    }
    check.missing
}

struct Check {
    version: Version,
    missing: Vec<Missing>,
}

impl Check {
    fn need(&mut self, is_there: bool, place: Option<&Place>, what: impl Into<String>) {
        if !is_there {
            self.missing.push(Missing { place: place.cloned(), what: what.into() });
        }
    }

    fn keys(&mut self, keys: &[&[Key]], format: &Directive) {
        let version = self.version;
        for key in keys.iter().copied().flatten().filter(|key| key.since <= version) {
            let is_there = format.words.iter().any(|word| word.contains(&format!("\"{}\":\"", key.name)));
            let what = format!("{}: \"{}\":\"{}\" in the format", format.name(), key.name, key.value);
            self.need(is_there, Some(&format.place), what);
        }
    }

    /// OpenSSL looks for the group in the session, which a handshake that failed has not.
    fn without_group(&mut self, variable: &str, victim: &str, format: &Directive) {
        let is_without = format.words.iter().all(|word| !word.contains(variable));
        let what = format!(
            "{} without {variable}: with OpenSSL a handshake that fails ends {victim}",
            format.name()
        );
        self.need(is_without, Some(&format.place), what);
    }

    /// nginx takes `access_log` and `error_log` of the innermost block that has one.
    fn nginx(&mut self, all: &[Directive], context: &str, keys: &[Key]) {
        let is_block = |at: usize, name: &str| all[at].name() == name;
        let within =
            |directive: &Directive| directive.blocks.first().is_some_and(|&at| is_block(at, context));
        let servers = all.iter().enumerate().filter(|(_, it)| it.name() == "server" && within(it));
        let servers: Vec<(usize, &Directive)> = servers.filter(|(_, it)| it.blocks.len() == 1).collect();
        self.need(!servers.is_empty(), None, format!("no server in {context} {{ }}"));
        let formats: Vec<&Directive> = all
            .iter()
            .filter(|it| it.name() == "log_format" && it.blocks.len() == 1 && within(it))
            .filter(|it| it.words.iter().any(|word| word.contains("\"time\":\"$msec\"")))
            .collect();
        if formats.is_empty() {
            let elsewhere =
                all.iter().find(|it| it.name() == "log_format" && !within(it) && it.has("escape=json"));
            let what =
                format!("log_format of tlsdash in {context} {{ }}: there are no lines that can be read");
            return self.need(false, elsewhere.map(|it| &it.place), what);
        }
        for format in &formats {
            self.need(
                format.has("escape=json"),
                Some(&format.place),
                "log_format: escape=json: a quote in a name or path breaks its line",
            );
            self.keys(&[keys], format);
            if context == "stream" {
                self.without_group("$ssl_curve", "the worker", format);
            }
        }
        let is_ours = |log: &&Directive| formats.iter().any(|format| format.argument(1) == log.argument(2));
        let logs_in = |blocks: &[usize], name: &str| {
            let logs = all.iter().filter(|it| it.name() == name && it.blocks == blocks);
            logs.collect::<Vec<_>>()
        };
        for (at, server) in servers {
            let outer = &server.blocks;
            let inner = [outer.as_slice(), &[at]].concat();
            let effective = |name| {
                let chain = [inner.as_slice(), outer, &[]].map(|blocks| logs_in(blocks, name));
                chain.into_iter().find(|logs| !logs.is_empty()).unwrap_or_default()
            };
            let access = effective("access_log");
            let ours = access.iter().copied().find(is_ours);
            let what = "server: access_log … tlsdash: its lines are not sent";
            let place = access.first().map_or(&server.place, |log| &log.place);
            self.need(ours.is_some(), Some(place), what);
            if context == "http"
                && let Some(ours) = ours
            {
                let errors = effective("error_log");
                let is_sent = |log: &&Directive| {
                    log.argument(1) == ours.argument(1) && ["info", "debug"].contains(&log.argument(2))
                };
                let place = errors.first().map_or(&server.place, |log| &log.place);
                let what =
                    format!("server: error_log {} info: failed handshakes are not counted", ours.argument(1));
                self.need(errors.iter().any(is_sent), Some(place), what);
            }
            let replaced = all.iter().filter(|it| {
                it.name() == "access_log" && it.blocks.len() > inner.len() && it.blocks.starts_with(&inner)
            });
            for log in replaced.filter(|log| log.argument(1) != "off") {
                let has_ours = logs_in(&log.blocks, "access_log").iter().any(is_ours);
                self.need(
                    has_ours,
                    Some(&log.place),
                    "access_log of a location replaces that of tlsdash: repeat it",
                );
            }
        }
    }

    fn haproxy(&mut self, all: &[Directive]) {
        let mut defaults = None;
        let mut has_tls = false;
        for (at, section) in all.iter().enumerate().filter(|(_, it)| it.blocks.is_empty()) {
            match section.name() {
                "defaults" => defaults = Some(at),
                "frontend" | "listen" => {
                    let of = |at: usize| all.iter().filter(move |it| it.blocks == [at]);
                    if of(at).any(|it| it.name() == "bind" && it.has("ssl")) {
                        has_tls = true;
                        let named = section.words.iter().position(|word| word == "from").and_then(|from| {
                            let name = section.argument(from + 1);
                            all.iter().position(|it| it.name() == "defaults" && it.argument(1) == name)
                        });
                        let globals = all.iter().enumerate().filter(|(_, it)| it.name() == "global");
                        let global: Vec<_> = globals.flat_map(|(at, _)| of(at)).collect();
                        let own = of(at).chain(named.or(defaults).into_iter().flat_map(of)).collect();
                        self.frontend(section, &Section { own, global });
                    }
                }
                _ => {}
            }
        }
        self.need(has_tls, None, "no frontend or listen section has a bind line with ssl");
    }

    fn frontend(&mut self, section: &Directive, directives: &Section<'_>) {
        let title = format!("{} {}", section.name(), section.argument(1));
        let place = Some(&section.place);
        let is_http = directives.first("mode").is_some_and(|mode| mode.argument(1) == "http");
        let is_raw = |log: &&Directive| log.words.windows(2).any(|words| words == ["format", "raw"]);
        let own = || directives.own.iter().copied().filter(|it| it.name() == "log");
        let global = directives.global.iter().copied().filter(|it| it.name() == "log");
        let is_sent = own().any(|log| is_raw(&log))
            || own().any(|log| log.has("global")) && global.clone().any(|log| is_raw(&log));
        self.need(
            is_sent,
            place,
            format!("{title}: log … format raw: nothing is sent to the socket in our format"),
        );
        let (kind, keys, error_keys): (_, _, &[&[Key]]) = if is_http {
            ("http", HAPROXY_HTTP, &[HAPROXY_CONNECTION, HAPROXY_HTTP_ERROR, HAPROXY_ERROR])
        } else {
            ("tcp", HAPROXY_TCP, &[HAPROXY_CONNECTION, HAPROXY_ERROR])
        };
        let has_kind =
            |format: &Directive, kind| format.argument(1).contains(&format!("\"kind\":\"{kind}\""));
        match directives.first("log-format") {
            Some(format) if has_kind(format, kind) => {
                self.keys(&[HAPROXY_CONNECTION, HAPROXY_GROUP, keys], format);
            }
            other => {
                let place = other.map_or(&section.place, |format| &format.place);
                let what = format!("{title}: log-format with \"kind\":\"{kind}\", since it has mode {kind}");
                self.need(false, Some(place), what);
            }
        }
        match directives.first("error-log-format") {
            Some(format) if has_kind(format, "error") => {
                self.keys(error_keys, format);
                self.without_group("ssl_fc_curve", "HAProxy", format);
            }
            _ if self.version < HAPROXY_OLDEST => {}
            other => {
                let place = other.map_or(&section.place, |format| &format.place);
                let what =
                    format!("{title}: error-log-format: failed handshakes have no cause that can be read");
                self.need(false, Some(place), what);
            }
        }
        let sets = |variable: &str| {
            let is_rule =
                |it: &&&Directive| it.name() == "http-request" && it.argument(1).starts_with(variable);
            directives.own.iter().any(|it| is_rule(&it))
        };
        if is_http {
            let is_numbered = sets("set-var(sess.tlsdash)") && sets("set-var(txn.tlsdash)");
            let what = "http-request set-var(…tlsdash): connections and handshakes are not counted";
            self.need(is_numbered, place, format!("{title}: {what}"));
        }
    }

    /// Global options come before the first service. The last of a name counts, in any case of letters.
    fn stunnel(&mut self, text: &str) {
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let options = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
        let options: Vec<_> =
            options.map(|(name, value)| (name.trim(), value.trim().to_ascii_lowercase())).collect();
        let value = |name: &str| {
            let of_name = options.iter().rfind(|(option, _)| option.eq_ignore_ascii_case(name));
            of_name.map_or("", |(_, value)| value)
        };
        // A facility may come before the level.
        let level = value("debug").rsplit('.').next().unwrap_or_default();
        self.need(
            ["info", "6", "debug", "7"].contains(&level),
            None,
            "debug = info, before the first service: neither versions nor resumption are logged",
        );
        self.need(
            !value("output").is_empty() || value("syslog") == "yes",
            None,
            "output = PATH, before the first service: nothing is written to a file that can be followed",
        );
        self.need(
            value("logid") != "process",
            None,
            "logId = sequential or unique: all connections of a process have the same id",
        );
    }
}

/// What counts in a section of HAProxy.
struct Section<'a> {
    /// Its own directives, then those of its defaults.
    own: Vec<&'a Directive>,
    global: Vec<&'a Directive>,
}

impl<'a> Section<'a> {
    fn first(&self, name: &str) -> Option<&'a Directive> {
        self.own.iter().copied().find(|it| it.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(kind: LogKind, version: Version) -> String {
        crate::setup::lines(kind, version, &"unix:/run/log.sock".parse().unwrap())
    }

    fn lacks(kind: LogKind, configuration: &str) -> Vec<String> {
        let version = if kind == LogKind::Haproxy { Version(2, 6, 12) } else { Version(1, 22, 1) };
        missing(kind, version, configuration).iter().map(|missing| missing.in_file("conf")).collect()
    }

    /// The lines of `setup haproxy` for HTTP mode.
    fn haproxy_http(version: Version) -> String {
        let lines = lines(LogKind::Haproxy, version);
        lines.split("# In each frontend with mode tcp:").next().unwrap().to_owned()
    }

    #[test]
    fn what_setup_prints_lacks_nothing() {
        for (kind, context, version) in
            [(LogKind::Nginx, "http", Version(1, 22, 1)), (LogKind::NginxStream, "stream", Version(1, 18, 0))]
        {
            let configuration =
                format!("{context} {{\n{}\nserver {{ listen 443 ssl; }}\n}}", lines(kind, version));
            assert_eq!(missing(kind, version, &configuration), [], "{kind} {version}");
        }
        for version in [Version(2, 4, 0), Version(2, 6, 12), Version(3, 0, 0)] {
            let http = haproxy_http(version);
            let printed = lines(LogKind::Haproxy, version);
            let tcp = printed.split("# In each frontend with mode tcp:").nth(1).unwrap();
            let configuration = format!(
                "defaults\n mode http\nfrontend a\n bind :443 ssl crt a\n{http}\nlisten b\n mode tcp\n bind :444 ssl crt a\n{tcp}"
            );
            assert_eq!(missing(LogKind::Haproxy, version, &configuration), [], "{version}");
        }
        let stunnel = lines(LogKind::Stunnel, Version(5, 68, 0)) + "[web]\naccept = 443\n";
        assert_eq!(missing(LogKind::Stunnel, Version(5, 68, 0), &stunnel), []);
    }

    #[test]
    fn each_line_that_is_missing_in_a_frontend_is_named() {
        let http = haproxy_http(Version(2, 6, 12))
            .replace("http-request set-var", "# http-request set-var")
            .replacen("\"cipher\":\"%sslc\",", "", 1);
        let with = |before: &str| format!("{before}frontend web\n mode http\n bind :443 ssl crt a\n{http}");
        let format_line =
            with("").lines().position(|line| line.trim().starts_with("log-format")).unwrap() + 1;
        assert_eq!(
            lacks(LogKind::Haproxy, &with("")),
            [
                format!("conf:{format_line}: log-format: \"cipher\":\"%sslc\" in the format"),
                "conf:1: frontend web: http-request set-var(…tlsdash): connections and handshakes are not counted"
                    .to_owned()
            ]
        );
        // What another section has does not count here.
        let elsewhere = format!("listen admin\n mode http\n{}\n", haproxy_http(Version(2, 6, 12)));
        assert_eq!(lacks(LogKind::Haproxy, &with(&elsewhere)).len(), 2);
    }

    #[test]
    fn the_group_of_a_failed_handshake_must_not_be_asked_for() {
        let stream =
            lines(LogKind::NginxStream, Version(1, 22, 1)).replace("$ssl_cipher", "$ssl_cipher$ssl_curve");
        let lacking =
            lacks(LogKind::NginxStream, &format!("stream {{\n{stream}\nserver {{ listen 443 ssl; }}\n}}"));
        assert!(lacking.iter().any(|what| what.contains("without $ssl_curve: with OpenSSL")), "{lacking:?}");
        let http = haproxy_http(Version(2, 9, 0)).replace("%sslc", "%sslc%[ssl_fc_curve]");
        let configuration = format!("frontend web\n mode http\n bind :443 ssl crt a\n{http}");
        let lacking = lacks(LogKind::Haproxy, &configuration);
        assert!(
            lacking.len() == 1 && lacking[0].contains("error-log-format without ssl_fc_curve"),
            "{lacking:?}"
        );
    }

    #[test]
    fn a_frontend_takes_what_its_defaults_and_global_have() {
        let http = haproxy_http(Version(2, 6, 12)).replace("    log /run", "    log global\n#   log /run");
        let configuration = |global| {
            format!("global\n {global}\ndefaults\n mode http\n{http}\nfrontend web\n bind :443 ssl crt a\n")
        };
        assert_eq!(
            lacks(LogKind::Haproxy, &configuration("log 127.0.0.1:5514 len 8192 format raw local0")),
            [""; 0]
        );
        let lacking = lacks(LogKind::Haproxy, &configuration("log 127.0.0.1:5514 local0"));
        assert!(lacking.len() == 1 && lacking[0].contains("frontend web: log … format raw"), "{lacking:?}");
        assert_eq!(
            lacks(LogKind::Haproxy, "frontend web\n bind :80\n"),
            ["conf: no frontend or listen section has a bind line with ssl"]
        );
    }

    #[test]
    fn a_format_of_the_other_mode_is_not_taken() {
        let configuration =
            format!("frontend web\n mode tcp\n bind :443 ssl crt a\n{}", haproxy_http(Version(2, 6, 12)));
        let lacking = lacks(LogKind::Haproxy, &configuration);
        assert!(lacking.len() == 1 && lacking[0].contains("log-format with \"kind\":\"tcp\""), "{lacking:?}");
    }

    #[test]
    fn a_directive_of_nginx_counts_in_its_block_only() {
        let ours = lines(LogKind::Nginx, Version(1, 22, 1));
        let server = "server { listen 443 ssl; }";
        assert_eq!(
            lacks(LogKind::Nginx, &format!("stream {{\n{ours}\n}}\nhttp {{ {server} }}"))
                .iter()
                .filter(|what| what.contains("log_format of tlsdash in http { }"))
                .count(),
            1
        );
        let commented = ours.replace("\naccess_log", "\n#access_log");
        let lacking = lacks(LogKind::Nginx, &format!("http {{\n{commented}\n{server}\n}}"));
        assert!(lacking.len() == 1 && lacking[0].contains("server: access_log … tlsdash"), "{lacking:?}");
    }

    #[test]
    fn a_log_of_an_inner_block_replaces_that_of_tlsdash() {
        let ours = lines(LogKind::Nginx, Version(1, 22, 1));
        let with =
            |server: &str| lacks(LogKind::Nginx, &format!("http {{ server {{ {server} }}\n{ours}\n}}"));
        assert_eq!(with("location /a { access_log off; }"), [""; 0]);
        assert_eq!(
            with("location /a { access_log /a.log; }"),
            ["conf:1: access_log of a location replaces that of tlsdash: repeat it"]
        );
        assert_eq!(
            with("access_log /a.log;"),
            ["conf:1: server: access_log … tlsdash: its lines are not sent"]
        );
        let errors = with("error_log /a.log info;");
        assert!(
            errors.len() == 1 && errors[0].starts_with("conf:1: server: error_log syslog:"),
            "{errors:?}"
        );
    }

    #[test]
    fn options_of_stunnel_count_before_its_first_service_as_it_reads_them() {
        for (configuration, lacking) in [
            ("[web]\naccept = 443\ndebug = info\noutput = /a\n", 2),
            ("\u{feff}debug = info\noutput = /a\n", 0),
            ("DEBUG = 6\nOutput=/a\n", 0),
            ("debug=daemon.INFO\nsyslog = Yes\n", 0),
            ("debug = 7\ndebug = daemon.notice\noutput = /a\n", 1),
            ("debug = 7\noutput = /a\nlogId = unique\n", 0),
            ("debug = 7\noutput = /a\nlogid = process\n", 1),
        ] {
            assert_eq!(lacks(LogKind::Stunnel, configuration).len(), lacking, "{configuration}");
        }
    }
}
