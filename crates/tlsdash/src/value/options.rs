//! Flags and words of the configuration file that the proxy declares: its limits, those of HTTP mode, and its settings
//! of TLS.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use proxy_core::{DeclaredOptions, OptionError, OptionSpec};
use records::setting::{Setting, Value};
use records::text::quantity;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TextOrNumber;

/// Options as they were given, by flags or by a file, over their defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionValues<T> {
    values: T,
    /// The given options, as written.
    given: BTreeMap<&'static str, String>,
}

/// Why an option does not accept a text as its value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum OptionValueError {
    /// Its number is none, or out of its range.
    #[error("expected {0}")]
    Number(String),
    /// The proxy refuses it.
    #[error(transparent)]
    Option(#[from] OptionError),
}

impl<T: DeclaredOptions> OptionValues<T> {
    /// The values of all of them.
    pub(crate) fn values(&self) -> &T {
        &self.values
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The names of all that have a flag.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> + use<T> {
        flags::<T>().map(|(option, _)| option.name)
    }

    /// Sets an option that was not given.
    pub(crate) fn set_default(&mut self, name: &str, text: &str) -> Result<(), OptionValueError> {
        match T::option(name).filter(|option| !self.is_given(option.name)) {
            Some(option) => self.set(option, text),
            None => Ok(()),
        }
    }

    /// Takes over the value of the live setting of the option `name`. Returns false if there is none of that name.
    ///
    /// # Errors
    /// When an option cannot have this value.
    pub(crate) fn take(&mut self, name: &str, setting: &Setting) -> Result<bool, OptionValueError> {
        let Some(option) = T::option(name).filter(|option| option.has_flag) else { return Ok(false) };
        option.set(&mut self.values, &setting.value)?;
        match option.value(&self.values) {
            Some(value) => self.given.insert(option.name, setting.shown(&value)),
            // A bound of 0 is none, and a configuration leaves it out.
            None => self.given.remove(option.name),
        };
        Ok(true)
    }

    fn set(&mut self, option: &'static OptionSpec<T>, text: &str) -> Result<(), OptionValueError> {
        option.set(&mut self.values, &read(option, text)?)?;
        self.given.insert(option.name, text.to_owned());
        Ok(())
    }

    /// The value of an option; `None` if it was not given, and has no default.
    fn text(&self, option: &OptionSpec<T>) -> Option<String> {
        let default = || match (option.absent, option.value(&self.values)?) {
            (Some(_), _) => None,
            (None, Value::Number(number)) => Some(quantity::shown(number, option.unit())),
            (None, value) => Some(value.to_string()),
        };
        self.given.get(option.name).cloned().or_else(default)
    }
}

/// The options with a flag, each with its help.
fn flags<T: DeclaredOptions>() -> impl Iterator<Item = (&'static OptionSpec<T>, &'static str)> {
    T::OPTIONS.iter().filter(|option| option.has_flag).map(|option| (option, option.help))
}

/// Examples of the options without a default, in the form of lines of a configuration file.
pub(crate) fn examples<T: DeclaredOptions>() -> impl Iterator<Item = (&'static str, String)> {
    flags::<T>().filter_map(|(option, _)| {
        let example = option.absent?.example;
        Some((option.name, if is_number(option) { example.to_owned() } else { format!("{example:?}") }))
    })
}

/// Whether it is a number in a file too, and not a text.
fn is_number<T>(option: &OptionSpec<T>) -> bool {
    option.range().is_some() && option.unit().is_empty()
}

/// Reads the value of an option.
pub(crate) fn read<T>(option: &OptionSpec<T>, text: &str) -> Result<Value, OptionValueError> {
    let Some((low, high)) = option.range() else { return Ok(Value::Text(text.to_owned())) };
    let unit = option.unit();
    let number = match unit {
        "" => text.parse::<u64>().ok().map(|number| number as f64),
        unit => quantity::parse(text, unit),
    };
    let number = number.filter(|number| (low..=high).contains(number)).map(Value::Number);
    number.ok_or_else(|| OptionValueError::Number(quantity::allowed((low, high), unit, true)))
}

impl<T: DeclaredOptions> Args for OptionValues<T> {
    fn augment_args(command: Command) -> Command {
        let defaults = Self::default();
        let arg = |(option, help): (&'static OptionSpec<T>, &str)| {
            let default = defaults.text(option);
            let holds = default.as_deref().or_else(|| Some(option.absent?.holds));
            let range = option.range().and_then(|range| quantity::bounds(range, option.unit()));
            let range = range.map_or_else(String::new, |range| format!(" [{range}]"));
            Arg::new(option.name)
                .long(option.name)
                .value_name(option.value_name)
                .value_parser(move |text: &str| Self::default().set(option, text).map(|()| text.to_owned()))
                .help(format!("{help}{range} [default: {}]", holds.unwrap_or("none")))
        };
        command.args(flags().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: DeclaredOptions> FromArgMatches for OptionValues<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (option, _) in flags() {
            if let Some(text) = matches.get_one::<String>(option.name) {
                let refuse = |error| clap::Error::raw(ErrorKind::ValueValidation, error);
                self.set(option, text).map_err(refuse)?;
            }
        }
        Ok(())
    }
}

impl<T: DeclaredOptions> Serialize for OptionValues<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (option, _) in flags::<T>() {
            let Some(text) = self.text(option) else { continue };
            match text.parse::<i64>() {
                Ok(number) if is_number(option) => map.serialize_entry(option.name, &number)?,
                _ => map.serialize_entry(option.name, &text)?,
            }
        }
        map.end()
    }
}

impl<'de, T: DeclaredOptions> Deserialize<'de> for OptionValues<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As a struct, so serde separates these keys from all others of the file.
        deserializer.deserialize_struct("options", T::NAMES, OptionsVisitor(PhantomData))
    }
}

struct OptionsVisitor<T>(PhantomData<T>);

impl<'de, T: DeclaredOptions> Visitor<'de> for OptionsVisitor<T> {
    type Value = OptionValues<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OptionValues<T>, A::Error> {
        let mut options = OptionValues::default();
        while let Some((name, word)) = map.next_entry::<String, TextOrNumber>()? {
            let unknown = || de::Error::unknown_field(&name, T::NAMES);
            let option = T::option(&name).filter(|option| option.has_flag).ok_or_else(unknown)?;
            let text = word.into_text();
            options.set(option, &text).map_err(|error| de::Error::custom(format_args!("{text}: {error}")))?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use proxy_core::{Limits, TlsSettings};
    use proxy_http::HttpLimits;

    use super::*;

    #[test]
    fn every_default_and_every_example_is_accepted() {
        fn check<T: DeclaredOptions>() {
            for (option, _) in flags::<T>() {
                let default = OptionValues::<T>::default().text(option);
                let text = default.unwrap_or_else(|| option.absent.unwrap().example.to_owned());
                OptionValues::<T>::default().set(option, &text).unwrap();
            }
        }
        check::<Limits>();
        check::<TlsSettings>();
        check::<HttpLimits>();
    }

    #[test]
    fn examples_in_errors_are_within_the_range() {
        fn check<T: DeclaredOptions>() {
            for (option, _) in flags::<T>().filter(|(option, _)| option.range().is_some()) {
                let error = read(option, "none").unwrap_err().to_string();
                let examples = error.split_once("such as ").map_or("", |(_, examples)| examples);
                for example in examples.split(" or ").filter(|example| !example.is_empty()) {
                    read(option, example).unwrap_or_else(|why| panic!("{}: {error}: {why}", option.name));
                }
            }
        }
        check::<Limits>();
        check::<TlsSettings>();
        check::<HttpLimits>();
    }

    #[test]
    fn a_bound_has_no_zero_in_a_configuration() {
        let set = |name, text| OptionValues::<Limits>::default().set(Limits::option(name).unwrap(), text);
        assert!(set("connections-max", "1").is_ok());
        let refused = set("handshakes-max", "0").unwrap_err().to_string();
        assert_eq!(refused, "expected a whole number from 1 to 1000000");
        assert_eq!(set("connections-max", "0").unwrap_err().to_string(), "expected a whole number from 1");
    }
}
