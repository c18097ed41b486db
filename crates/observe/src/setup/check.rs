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

    /// Names the files that a single file of nginx includes in these blocks.
    fn not_read(&mut self, all: &[Directive], context: &str) {
        // Those that nginx brings along hold no server and no log.
        let is_known =
            |file: &str| ["mime.types", "_params", "fastcgi.conf"].iter().any(|end| file.ends_with(end));
        let is_within = |it: &Directive| it.blocks.first().is_some_and(|&at| all[at].name() == context);
        let includes = all.iter().filter(|it| it.name() == "include" && it.place.file.is_empty());
        for include in includes.filter(|it| is_within(it) && !is_known(it.argument(1))) {
            let what = format!("include {}: pipe what nginx -T prints into --check -", include.argument(1));
            self.need(false, Some(&include.place), what);
        }
    }

    fn nginx(&mut self, all: &[Directive], context: &str, keys: &[Key]) {
        self.not_read(all, context);
        self.servers(all, context, keys);
    }

    /// nginx takes `access_log` and `error_log` of the innermost block that has one.
    fn servers(&mut self, all: &[Directive], context: &str, keys: &[Key]) {
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
mod tests;
