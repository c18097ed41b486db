//! Reads tables of TOML key by key, so every error names its line, and a misspelt key gets a suggestion.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use records::text::quantity;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::{ScenarioError, unknown};

#[derive(Clone, Copy, Debug)]
pub(super) struct ScenarioSource<'t> {
    pub(super) name: &'t str,
    pub(super) text: &'t str,
}

/// A table whose keys are taken one by one.
#[derive(Clone, Debug)]
pub(super) struct Table<'t> {
    source: ScenarioSource<'t>,
    /// The table's range in the text.
    span: Range<usize>,
    entries: DeTable<'t>,
    /// The keys that were asked for, which are the known ones.
    known: Vec<&'static str>,
}

/// A value with its position in the text.
pub(super) type TomlEntry<'t> = (String, Spanned<DeValue<'t>>);

impl<'t> ScenarioSource<'t> {
    /// The table of the whole text.
    pub(super) fn table(self) -> Result<Table<'t>, ScenarioError> {
        let entries = DeTable::parse(self.text).map_err(|error| self.toml_error(&error))?;
        Ok(Table { source: self, span: 0..0, entries: entries.into_inner(), known: Vec::new() })
    }

    /// The line of a position in the text, from 1.
    pub(super) fn line(self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    pub(super) fn error(self, at: usize, problem: impl Into<String>) -> ScenarioError {
        ScenarioError { name: self.name.to_owned(), line: Some(self.line(at)), problem: problem.into() }
    }

    fn toml_error(self, error: &toml::de::Error) -> ScenarioError {
        let line = error.span().map(|span| self.line(span.start));
        ScenarioError { name: self.name.to_owned(), line, problem: error.message().to_owned() }
    }
}

impl<'t> Table<'t> {
    /// The line at which it begins, from 1.
    pub(super) fn line(&self) -> usize {
        self.source.line(self.span.start)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// An error about the whole table.
    pub(super) fn error(&self, problem: impl Into<String>) -> ScenarioError {
        self.source.error(self.span.start, problem)
    }

    /// An error about the value of a key, or about the table if it has no such key.
    pub(super) fn error_of(&self, key: &str, problem: impl Into<String>) -> ScenarioError {
        let at = self.entries.get(key).map_or(self.span.start, |value| value.span().start);
        self.source.error(at, format!("{key}: {}", problem.into()))
    }

    /// An error about a text in the table, or about the whole table if the text is not there.
    pub(super) fn error_at_text(&self, text: &str, problem: impl Into<String>) -> ScenarioError {
        let after = self.source.text.get(self.span.start..).and_then(|rest| rest.find(text)).unwrap_or(0);
        self.source.error(self.span.start + after, problem)
    }

    fn may_have(&mut self, key: &'static str) {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
    }

    /// The value of a key, if it exists.
    pub(super) fn get<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<Option<T>, ScenarioError> {
        self.may_have(key);
        let Some(value) = self.entries.get(key).cloned() else { return Ok(None) };
        let at = value.span().start;
        T::deserialize(ValueDeserializer::from(value)).map(Some).map_err(|error| {
            let at = error.span().map_or(at, |span| span.start);
            self.source.error(at, format!("{key}: {}", error.message()))
        })
    }

    /// A time: a number of seconds, or a text such as `500ms`.
    pub(super) fn time(&mut self, key: &'static str) -> Result<Option<Duration>, ScenarioError> {
        let Some(value) = self.get::<toml::Value>(key)? else { return Ok(None) };
        let seconds = match &value {
            toml::Value::String(text) => quantity::parse(text, "s"),
            value => value.as_float().or_else(|| Some(value.as_integer()? as f64)),
        };
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let expected = || self.error_of(key, "expected a time such as 500ms, 10s or 5m");
        time.ok_or_else(expected).map(Some)
    }

    /// The value of a key that must be there.
    pub(super) fn require<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<T, ScenarioError> {
        self.get(key)?.ok_or_else(|| self.error(format!("there is no {key}; give one")))
    }

    /// The tables of `[[key]]`.
    pub(super) fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, ScenarioError> {
        self.may_have(key);
        let Some(value) = self.entries.get(key) else { return Ok(Vec::new()) };
        let expected = || self.error_of(key, format!("write it as tables [[{key}]]"));
        let values = value.get_ref().as_array().ok_or_else(expected)?;
        let table = |value: &Spanned<DeValue<'t>>| match value.get_ref() {
            DeValue::Table(entries) => Ok(Self {
                source: self.source,
                span: value.span(),
                entries: entries.clone(),
                known: Vec::new(),
            }),
            _ => Err(expected()),
        };
        values.iter().map(table).collect()
    }

    /// The entries of the inline table of a key, in the order of the text; none without the key.
    pub(super) fn entries_of(&mut self, key: &'static str) -> Result<Vec<TomlEntry<'t>>, ScenarioError> {
        self.may_have(key);
        let Some(value) = self.entries.get(key) else { return Ok(Vec::new()) };
        let table = value.get_ref().as_table();
        let table = table.ok_or_else(|| self.error_of(key, "write it as { key = value, ... }"))?;
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Ok(entries.into_iter().map(|(key, value)| (key.get_ref().to_string(), value.clone())).collect())
    }

    /// The keys that were not asked for, with their values.
    pub(super) fn rest(&self) -> Vec<TomlEntry<'t>> {
        let entries = self.entries.iter().filter(|(key, _)| !self.known.contains(&&**key.get_ref()));
        entries.map(|(key, value)| (key.get_ref().to_string(), value.clone())).collect()
    }

    /// Copies the table, replaces these values, and removes `without`.
    pub(super) fn with(&self, entries: &[TomlEntry<'t>], without: &str) -> Self {
        let mut table = Self { known: Vec::new(), ..self.clone() };
        table.entries.remove(without);
        for (key, value) in entries {
            table.entries.insert(Spanned::new(value.span(), Cow::Owned(key.clone())), value.clone());
        }
        table
    }

    /// Refuses a key that is neither asked for nor one of `others`.
    pub(super) fn finish(&self, others: &[&str]) -> Result<(), ScenarioError> {
        let stray = |key: &str| !self.known.contains(&key) && !others.contains(&key);
        let stray = self.entries.keys().filter(|key| stray(key.get_ref())).min_by_key(|key| key.span().start);
        let Some(key) = stray else { return Ok(()) };
        let known: Vec<&str> = self.known.iter().chain(others).copied().collect();
        Err(self.source.error(key.span().start, unknown("key", key.get_ref(), &known)))
    }
}

/// A number, a text or a switch as a flag has it.
pub(super) fn shown(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(switch) => Some(switch.to_string()),
        _ => None,
    }
}
