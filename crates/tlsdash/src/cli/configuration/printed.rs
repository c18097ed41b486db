//! The configuration as text: what `--print-config` prints.

use std::fmt::Write as _;

use proxy_core::{Limits, TlsSettings};
use proxy_http::HttpLimits;

use crate::cli::options::route::{PASS, ROUTE};
use crate::cli::{ProxyArgs, ProxyOptions};
use crate::value::options::examples;

/// Keys without a default, with their accepted values. Options that the proxy declares have their own examples.
const EXAMPLES: &[(&str, &str)] = &[
    ("upstream", "[\"unix:/run/app.sock\"]"),
    ("upstream-check", "\"http:/healthz,interval=5s\""),
    ("balance", "\"hash-client\""),
    ("slow-start", "\"30s\""),
    ("redirect-http", "\":80\""),
    ("route", "[{ host = \"api.example\", upstreams = [\"unix:/run/api.sock\"] }]"),
    ("pass", "[{ host = \"legacy.example\", upstreams = [\"10.0.0.9:443\"] }]"),
    ("trust-forwarded", "\"10.0.0.0/8\""),
    ("request-header", "[\"set X-Env: prod\"]"),
    ("response-header", "[\"remove Server\"]"),
    ("log-paths", "\"off\""),
    ("log-names", "\"off\""),
    ("user", "\"tlsdash\""),
    ("control", "\"/run/tlsdash/control.sock\""),
    ("control-group", "\"operators\""),
    ("control-readers", "\"monitoring\""),
    ("proxy-protocol", "\"v2\""),
    ("accept-proxy", "\"10.0.0.0/8,2001:db8::1\""),
    ("allow", "\"/etc/tlsdash/allow\""),
    ("deny", "\"/etc/tlsdash/deny\""),
    ("cert", "[\"/etc/ssl/chain.pem\"]"),
    ("key", "[\"/etc/ssl/key.pem\"]"),
    ("acme-domain", "[\"www.example.org\"]"),
    ("acme-contact", "[\"admin@example.org\"]"),
    ("acme-directory", "\"https://acme-v02.api.letsencrypt.org/directory\""),
    ("acme-ca", "\"/etc/ssl/internal-ca.pem\""),
    ("acme-profile", "\"shortlived\""),
    ("acme-challenge", "\"http-01\""),
    ("acme-dns-hook", "\"/etc/tlsdash/dns-hook\""),
    ("client-ca", "\"/etc/ssl/clients.pem\""),
    ("client-crl", "[\"/etc/ssl/clients.crl\"]"),
    ("upstream-ca", "\"/etc/ssl/internal-ca.pem\""),
    ("upstream-cert", "\"/etc/ssl/proxy.pem\""),
    ("upstream-key", "\"/etc/ssl/proxy.key\""),
    ("upstream-name", "\"app.internal\""),
    ("ticket-keys", "\"/etc/tlsdash/ticket.keys\""),
    ("load", "\"rate=500,connections=64,resume=80%\""),
    ("workers", "2"),
    ("cpus", "\"0-3,8\""),
    ("duration", "\"10s\""),
    ("upload", "\"logs+https://logs.example.org:9428\""),
    ("record", "\"/var/tmp/session.journal\""),
    ("alert", "[\"response.p99 > 5ms for 30s\"]"),
    ("metrics", "\"127.0.0.1:9443\""),
    ("ab", "\"workers=1..2,metric=exchange.p99,pairs=12\""),
];

impl ProxyOptions {
    /// The options as a configuration file; options that are not set are comments.
    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        let own_mode = self.without_other_mode_options();
        let mut text = self.comment_other_mode_options(&toml::to_string(&own_mode)?);
        let declared = examples::<TlsSettings>().chain(examples::<Limits>()).chain(examples::<HttpLimits>());
        let own = EXAMPLES.iter().map(|(word, example)| (*word, (*example).to_owned()));
        let mut examples: Vec<_> = own.chain(declared).collect();
        let command = ProxyArgs::command();
        examples
            .sort_by_key(|(word, _)| command.get_arguments().position(|arg| arg.get_long() == Some(word)));
        let has_tables = |word: &str| match word {
            ROUTE => !own_mode.route.is_empty(),
            PASS => !own_mode.pass.is_empty(),
            _ => false,
        };
        for (word, example) in examples.into_iter().filter(|(word, _)| !has_tables(word)) {
            if !text.lines().any(|line| line.starts_with(&format!("{word} = "))) {
                let _ = writeln!(text, "# {word} = {example}");
            }
        }
        text.push_str(&own_mode.routes_to_toml());
        text.push_str(&self.tables.to_toml()?);
        Ok(text)
    }

    /// Turns options of the other mode into comments of a configuration file.
    fn comment_other_mode_options(&self, text: &str) -> String {
        let foreign: Vec<_> = self.other_mode_options().map(|(word, _)| format!("{word} = ")).collect();
        let line = |line: &str| {
            let is_foreign = foreign.iter().any(|word| line.starts_with(word));
            format!("{}{line}\n", if is_foreign { "# " } else { "" })
        };
        text.lines().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cli::read_configuration;

    fn parse(text: &str) -> ProxyOptions {
        ProxyOptions::parse(text).unwrap()
    }

    #[test]
    fn the_printed_configuration_reads_back() {
        let printed = parse("upstream = \"unix:/a\"").with_defaults().unwrap().to_toml().unwrap();
        assert_eq!(parse(&printed).to_toml().unwrap(), printed);
    }

    proptest! {
        /// As the fuzz target does at length.
        #[test]
        fn any_printed_configuration_reads_back(
            word in prop::sample::select(EXAMPLES.iter().map(|(word, _)| *word).chain([
                "tickets", "groups", "idle-timeout", "pending-max", "connections-max", "theme", "interval", "nothing",
            ]).collect::<Vec<_>>()),
            value in prop_oneof![
                any::<i64>().prop_map(|n| n.to_string()),
                any::<bool>().prop_map(|b| b.to_string()),
                any::<String>().prop_map(|text| toml::Value::String(text).to_string()),
                "\"[0-9]{1,5}(ms|s|m|h|d|MiB|GiB)\"",
            ],
        ) {
            let text = format!("{word} = {value}\n");
            match read_configuration(&text) {
                Ok(printed) => prop_assert_eq!(read_configuration(&printed), Ok(printed)),
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{:?}", error),
            }
        }
    }

    #[test]
    fn options_of_the_other_mode_are_printed_with_their_defaults() {
        for text in ["log-paths = \"off\"", "streams-max = 7", "mode = \"http\"\nproxy-protocol = \"v2\""] {
            let printed = read_configuration(text).unwrap();
            assert_eq!(read_configuration(&printed), Ok(printed), "{text}");
        }
    }

    #[test]
    fn the_printed_configuration_has_every_flag() {
        let printed = ProxyOptions::default().with_defaults().unwrap().to_toml().unwrap();
        for argument in ProxyArgs::command().get_arguments() {
            let word = argument.get_long().unwrap_or_default();
            if ["config", "print-config", "help", "version"].contains(&word) {
                continue;
            }
            let stands =
                printed.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{word} = ")));
            assert!(stands, "{word} in {printed}");
        }
        let uncommented = printed.replace("# ", "");
        assert!(ProxyOptions::parse(&uncommented).is_ok(), "{uncommented}");
    }
}
