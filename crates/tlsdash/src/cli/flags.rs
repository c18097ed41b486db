//! The given flags, over a configuration file or over nothing.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The flags given to the program or to its subcommand, without those at their defaults.
#[derive(Clone, Debug)]
pub(crate) struct Flags(ArgMatches);

impl Flags {
    pub(crate) fn new(mut matches: ArgMatches) -> Self {
        let mut matches = match matches.remove_subcommand() {
            Some((_, of_subcommand)) => of_subcommand,
            None => matches,
        };
        let is_default =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::DefaultValue);
        let defaults: Vec<_> = matches.ids().filter(is_default).cloned().collect();
        for id in defaults {
            // This fails only for an unknown flag.
            let _ = matches.try_clear_id(id.as_str());
        }
        Self(matches)
    }

    /// Whether the flag of this word was given.
    pub(crate) fn is_given(&self, word: &str) -> bool {
        let ids = [word.to_owned(), word.replace('-', "_")];
        ids.iter().any(|id| self.0.ids().any(|given| given == id.as_str()))
    }

    /// Whether no flag was given at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.ids().next().is_none()
    }

    /// Applies the flags over the options of a configuration file.
    pub(crate) fn over<T: FromArgMatches>(&self, mut file: T) -> anyhow::Result<T> {
        file.update_from_arg_matches(&self.0)?;
        Ok(file)
    }
}

/// The options when no flag is given: every default.
pub(super) fn without_flags<T: Args>() -> T {
    let matches = T::augment_args(Command::new("tlsdash")).try_get_matches_from(["tlsdash"]);
    matches.and_then(|matches| T::from_arg_matches(&matches)).expect("every default of a flag can be read")
}
