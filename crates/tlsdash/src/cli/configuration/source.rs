//! The sources of a proxy's options, so they can be read again while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use proxy_core::{DeclaredOptions as _, Limits, TlsSettings};
use proxy_http::HttpLimits;
use records::setting::Value;
use serde::{Deserialize, Serialize};

use super::{ProxyArgs, ProxyOptions};
use crate::cli::Flags;
use crate::error::usage;

/// Flags over a configuration file over the defaults.
#[derive(Clone, Debug)]
pub(crate) struct ConfigurationSource {
    pub(super) file: Option<PathBuf>,
    pub(super) flags: Flags,
    /// The options from flags alone.
    pub(super) flag_options: ProxyOptions,
}

/// What gave an option its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SettingOrigin {
    /// Nothing did.
    Default,
    /// A word of the configuration file.
    File,
    /// A flag.
    Flag,
    /// A change of the running service.
    Live,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "from the file",
            Self::Flag => "by a flag",
            Self::Live => "changed live",
        })
    }
}

impl ProxyArgs {
    /// Where the options come from.
    pub(crate) fn source(self, flags: Flags) -> ConfigurationSource {
        ConfigurationSource { file: self.config, flags, flag_options: self.options }
    }
}

impl ConfigurationSource {
    /// Reads the file, and puts the flags over it.
    ///
    /// # Errors
    /// With file, line and reason.
    pub(crate) fn read(&self) -> anyhow::Result<ProxyOptions> {
        match &self.file {
            Some(path) => self.over(ProxyOptions::read(path)?),
            None => Ok(self.flag_options.clone()),
        }
    }

    /// Reads the file again, which must be a regular one.
    ///
    /// # Errors
    /// With file, line and reason.
    pub(crate) fn read_again(&self) -> anyhow::Result<ProxyOptions> {
        match &self.file {
            Some(path) => self.over(ProxyOptions::read_again(path)?),
            None => Ok(self.flag_options.clone()),
        }
    }

    /// Puts the flags over the text of a file.
    ///
    /// # Errors
    /// With line and reason.
    pub(crate) fn over_text(&self, text: &str) -> anyhow::Result<ProxyOptions> {
        self.over(ProxyOptions::parse(text).map_err(|error| usage(format!("configuration {error}")))?)
    }

    fn over(&self, mut file: ProxyOptions) -> anyhow::Result<ProxyOptions> {
        // A certificate and its key come from one place.
        if !self.flag_options.tls_files.is_without_certificate() {
            file.tls_files.cert.clear();
            file.tls_files.key.clear();
        }
        self.flags.over(file)
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What gave an option of these its value.
    pub(crate) fn origin(&self, word: &str, options: &ProxyOptions) -> SettingOrigin {
        if self.flags.is_given(word) {
            SettingOrigin::Flag
        } else if options.words.contains(word) {
            SettingOrigin::File
        } else {
            SettingOrigin::Default
        }
    }
}

impl ProxyOptions {
    /// Looks whether the options fit together, as far as that needs no file. They have the defaults of the mode.
    ///
    /// # Errors
    /// With the option, and why it cannot be.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.http_config()?;
        self.first_upstream()?;
        let is_tls_used = self.is_tls_used();
        self.upstream_tls.check(is_tls_used)?;
        self.tls.values().check().map_err(usage)?;
        self.tls_files.check(&self.tls, self.load.is_some())?;
        self.acme.order(self.redirect_http.is_some())?;
        self.balancing.check(is_tls_used)?;
        self.balancing.balance(self.mode)?;
        self.load.as_deref().map_or(Ok(()), |load| load.check(self.tls.values()))
    }

    /// The number of workers: one for each core if it is not given.
    pub(crate) fn worker_count(&self) -> NonZeroUsize {
        let pinned = || NonZeroUsize::new(self.cpus.as_deref()?.count());
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.workers.or_else(pinned).unwrap_or_else(cores)
    }

    /// The options whose values differ in `new`, each with the change in words, such as `user from unset to nobody`. A default
    /// that comes or goes with another option, such as the mode, does not count.
    pub(crate) fn changed_options(&self, new: &Self) -> anyhow::Result<BTreeMap<String, String>> {
        let [before, after]: [toml::Table; 2] = [self.to_toml()?.parse()?, new.to_toml()?.parse()?];
        let words: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let change = |word: &String| {
            let values = [before.get(word), after.get(word)];
            let is_changed = match values {
                [Some(before), Some(after)] => before != after,
                _ => self.words.contains(word) || new.words.contains(word),
            };
            is_changed.then(|| (word.clone(), in_words(word, values)))
        };
        Ok(words.into_iter().filter_map(change).collect())
    }

    /// The value of an option as the live setting of its name has it; `None` if there is none. A bound that is not given
    /// is 0.
    pub(crate) fn live_value(&self, word: &str) -> Option<Value> {
        if word == "workers" {
            return Some(Value::Number(self.worker_count().get() as f64));
        }
        let of_http = || {
            let limits = self.http_config().ok().flatten().map(|http| http.limits);
            let option = HttpLimits::option(word).filter(|option| option.has_flag)?;
            Some(option.value(limits.as_ref().unwrap_or_else(|| self.http_limits.values())))
        };
        let of_proxy = || {
            let option = Limits::option(word).filter(|option| option.has_flag)?;
            Some(option.value(self.limits.values()))
        };
        let of_tls = || {
            let option = TlsSettings::option(word).filter(|option| option.has_flag)?;
            Some(option.value(self.tls.values()))
        };
        let value = of_proxy().or_else(of_tls).or_else(of_http)?;
        Some(value.unwrap_or(Value::Number(0.0)))
    }
}

/// Options whose values are not shown: they may be secrets.
const SECRET: [&str; 2] = ["request-header", "response-header"];

/// The change of an option from one value to another; the name alone where values are secrets, or tables of many lines.
fn in_words(word: &str, values: [Option<&toml::Value>; 2]) -> String {
    let has_tables =
        |value: &&toml::Value| value.as_array().is_some_and(|all| all.iter().any(toml::Value::is_table));
    if SECRET.contains(&word) || values.iter().flatten().any(has_tables) {
        return word.to_owned();
    }
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let [before, after] = values.map(|value| match value {
        None => "unset".to_owned(),
        Some(toml::Value::Array(values)) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        Some(value) => text(value),
    });
    format!("{word} from {before} to {after}")
}

#[cfg(test)]
mod tests {
    use super::SettingOrigin::{Default, File, Flag};
    use super::*;
    use crate::command_line::Cli;

    fn options(text: &str) -> ProxyOptions {
        ProxyOptions::parse(text).unwrap().with_defaults().unwrap()
    }

    #[test]
    fn words_that_mean_something_else_are_changed_and_no_others() {
        let before =
            options("mode = \"http\"\nupstream = \"unix:/a\"\nidle-timeout = \"1m\"\nhandshakes-max = 5");
        let after = options(
            "mode = \"http\"\nupstream = [\"unix:/a\"]\nidle-timeout = \"2m\"\ntickets = 4\n[[route]]\npath = \"/a\"\n\
             upstreams = \"unix:/b\"",
        );
        let changes = |before: &ProxyOptions, after| {
            before.changed_options(after).unwrap().into_values().collect::<Vec<_>>()
        };
        assert_eq!(
            changes(&before, &after),
            ["handshakes-max from 5 to unset", "idle-timeout from 1m to 2m", "route", "tickets from 1 to 4"]
        );
        assert!(before.changed_options(&before).unwrap().is_empty());
        let of_tcp = options("upstream = \"unix:/a\"\nidle-timeout = \"1m\"\nhandshakes-max = 5");
        assert_eq!(changes(&of_tcp, &before), ["mode from tcp to http"]);
        assert_eq!(changes(&before, &of_tcp), ["mode from http to tcp"]);
        let secret = options(
            "mode = \"http\"\nupstream = \"unix:/a\"\nidle-timeout = \"1m\"\nhandshakes-max = 5\n\
             request-header = \"set X-Key: secret\"",
        );
        assert_eq!(changes(&before, &secret), ["request-header"]);
        let number = |word| after.live_value(word);
        assert_eq!(number("idle-timeout"), Some(Value::Number(120.0)));
        assert_eq!(number("handshakes-max"), Some(Value::Number(0.0)));
        assert_eq!(number("tls-min"), Some(Value::Text("1.2".to_owned())));
        assert_eq!(number("upstream"), None);
    }

    #[test]
    fn a_value_comes_from_a_flag_or_the_file_or_is_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tlsdash.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let args = ["tlsdash", "--config", file.to_str().unwrap(), "--tls-min", "1.3"];
            let (cli, flags) = Cli::read(args).unwrap();
            let source = cli.proxy.source(flags);
            let options = source.read().unwrap();
            let words = ["tls-min", "idle-timeout", "tickets", "workers"];
            (words.map(|word| source.origin(word, &options)), options.live_value("tls-min"))
        };
        let (origins, tls_min) = read("tls-min = \"1.2\"\nidle-timeout = \"10m\"");
        assert_eq!(tls_min, Some(Value::Text("1.3".to_owned())));
        assert_eq!(origins, [Flag, File, Default, Default]);
        assert_eq!(read("workers = 2").0, [Flag, Default, Default, File]);
    }
}
