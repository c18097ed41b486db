//! Reading the configuration file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize as _;

use super::ProxyOptions;
use super::error::{ConfigurationError, table_lines};
use crate::cli::appearance::Appearance;
use crate::cli::flags::Flags;
use crate::cli::options::route::{PASS, ROUTE};
use crate::error::usage;

/// Largest configuration file that is read, in bytes.
const CONFIGURATION_BYTES_MAX: u64 = 1 << 20;

impl ProxyOptions {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::read_opened(path, File::open(path))
    }

    /// Reads a configuration file again. Unlike at the start, it must be a regular file: nobody writes into a pipe a second
    /// time.
    pub(crate) fn read_again(path: &Path) -> anyhow::Result<Self> {
        let file = journal::open_regular(path);
        let regular = |file: Option<_>| file.ok_or_else(|| io::Error::other("it is not a regular file"));
        Self::read_opened(path, file.and_then(regular))
    }

    fn read_opened(path: &Path, file: io::Result<File>) -> anyhow::Result<Self> {
        let text = read_text(path, file)?;
        Self::parse(&text).map_err(|error| usage(format!("configuration {} {error}", path.display())))
    }

    /// Reads the text of one.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let table: toml::Table = text.parse().map_err(|error| ConfigurationError::syntax(text, &error))?;
        let mut options =
            Self::deserialize(table.clone()).map_err(|error| ConfigurationError::of_keys(text, &error))?;
        for (routes, word) in [(&mut options.route, ROUTE), (&mut options.pass, PASS)] {
            for (route, line) in routes.iter_mut().zip(table_lines(text, word)) {
                route.line = Some(line);
            }
        }
        options.words = table.keys().cloned().collect();
        Ok(options)
    }
}

impl Appearance {
    /// The appearance for a command that takes nothing else from a configuration file.
    ///
    /// # Errors
    /// When the file cannot be read, or a key or a colour means nothing.
    pub(crate) fn with_file(file: Option<&Path>, flags: &Flags) -> anyhow::Result<Self> {
        let file = file.map(ProxyOptions::read).transpose()?.unwrap_or_default();
        Self::resolve(&flags.over(file.appearance)?, &file.tables)
    }
}

/// Reads the text of a configuration file.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<String> {
    read_text(path, File::open(path))
}

fn read_text(path: &Path, file: io::Result<File>) -> anyhow::Result<String> {
    let name = path.display();
    let cannot = |error: io::Error| usage(format!("cannot read configuration {name}: {error}"));
    let mut text = String::new();
    let file = file.map_err(cannot)?;
    file.take(CONFIGURATION_BYTES_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > CONFIGURATION_BYTES_MAX {
        return Err(usage(format!("configuration {name} has more than {CONFIGURATION_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Parses the text of a configuration file, and checks its keys and values as far as possible without other files and
/// name resolution. Returns it as `--print-config` prints it.
///
/// # Errors
/// With the line and the problem.
pub fn read_configuration(text: &str) -> Result<String, ConfigurationError> {
    let options = ProxyOptions::parse(text)?;
    let refuse = |problem| ConfigurationError { line: None, problem };
    options.tls.values().check().map_err(|error| refuse(error.to_string()))?;
    let printed = options.with_defaults().and_then(|options| options.to_toml());
    printed.map_err(|error| refuse(crate::error::line(&error)))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::command_line::Cli;
    use crate::value::ParsedValue;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tlsdash.toml");
        let text = "upstream = \"unix:/a\"\nworkers = 3\ninterval = \"2s\"\nheadless = true\nidle-timeout = \"1m\"\n\
                    tls-max = \"1.2\"\ncert = \"a.pem\"\nkey = \"a.key\"";
        std::fs::write(&file, text).unwrap();
        let args =
            ["tlsdash", "--config", file.to_str().unwrap(), "--upstream", "unix:/b", "--tls-min", "1.2"];
        let (cli, flags) = Cli::read(args.into_iter().chain(["--cert", "b.pem"])).unwrap();
        let options = cli.proxy.source(flags).read().unwrap().with_defaults().unwrap();
        assert_eq!(options.upstream.iter().map(ParsedValue::text).collect::<Vec<_>>(), ["unix:/b"]);
        assert_eq!(options.workers.map(NonZeroUsize::get), Some(3));
        assert_eq!((options.run.interval.text(), options.run.journal.text()), ("2s", "auto"));
        assert!(options.run.headless && !options.run.append);
        assert_eq!(options.limits.values().idle_timeout.as_secs(), 60);
        assert!(options.tls.is_given("tls-min") && options.tls.is_given("tls-max"));
        assert_eq!(options.listen.iter().map(ParsedValue::text).collect::<Vec<_>>(), [":8443"]);
        assert_eq!((options.tls_files.cert.len(), options.tls_files.key.len()), (1, 0));
    }

    #[test]
    fn a_configuration_is_read_without_files_and_refused_in_one_line() {
        let printed = read_configuration("").unwrap();
        assert_eq!(read_configuration(&printed), Ok(printed.clone()));
        let all = printed.replace("# ", "");
        assert!(read_configuration(&all).is_ok(), "{all}");
        let read = |text| read_configuration(text).unwrap();
        let numbers = "idle-timeout = 30\ninterval = 0.5\ntls-min = 1.3\ntickets = 2\nconnection-rate = 5";
        let texts = "idle-timeout = \"30\"\ninterval = \"0.5\"\ntls-min = \"1.3\"\ntickets = \"2\"\nconnection-rate = \"5\"";
        assert_eq!(read(numbers), read(texts));
        for (text, part) in [
            ("upstream = [", "line 1"),
            ("\n\nworkers = \"two\"", "line 3: workers"),
            ("idle-timeout = \"2days\"", "line 1: idle-timeout: 2days: expected a time from 1ms to 24h"),
            ("idle-timeout = 100000", "idle-timeout: 100000: expected a time from 1ms to 24h"),
            ("\nworkers = []", "line 2: workers: "),
            ("interval = 61", "interval: 61: expected a time from 100ms to 60s"),
            ("tls-min = 1.1", "tls-min: 1.1: 1.1 is not known; known: 1.2, 1.3"),
            ("tickets = \"x\"", "tickets: x: expected a whole number from"),
            (
                "# idle_timeout\n\nidle_timeout = \"1s\"",
                "line 3: idle_timeout: unknown field `idle_timeout`; did you mean `idle-timeout`?",
            ),
            ("tickets = 2\n\ntickets = 3", "line 3: duplicate key `tickets`"),
            ("tickets = 2\nticket = 2", "line 2: ticket: unknown field `ticket`; did you mean"),
            (
                "tickets = 2\n[limits]\ntickets = 2",
                "line 2: limits: unknown field `limits`; the tables are [[route]], [[pass]]",
            ),
            ("[keys]\nquit = [\"q\"]\nhelp = \"h\"", "line 3: keys: "),
            ("[colors]\n\nkeys.quit = 1", "line 3: colors: "),
            ("groups = \"x448\"", "x448 is not known"),
            ("listen = [\"8443\"]", "line 1: listen: 8443"),
            ("listen = \"8443\"", "line 1: listen: 8443"),
            ("upstream = \"x\"", "line 1: upstream: x"),
            ("half-closed-timeout = \"1s\"", "unknown field"),
            ("ticket-send = \"\\nswer\"", "is not known"),
            ("tls-min = \"1.3\"\ntls-max = \"1.2\"", "tls-min is later than tls-max"),
        ] {
            let error = read_configuration(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
