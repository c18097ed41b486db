//! Why a configuration file means nothing, and where.

use clap::error::{ContextKind, ContextValue};
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer};

use super::{ProxyArgs, ProxyOptions};

type Key<'t> = Spanned<DeString<'t>>;

/// The text of a configuration means nothing. One printable line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", line.map_or_else(String::new, |line| format!("line {line}: ")), records::text::clean::line(problem))]
pub struct ConfigurationError {
    /// `None`: the error concerns no single line.
    pub(super) line: Option<usize>,
    pub(super) problem: String,
}

impl ConfigurationError {
    /// The text is not TOML.
    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or_default();
        let line = Some(line_at(text, span.start));
        let key = text.get(span).filter(|_| error.message() == "duplicate key");
        let key = key.map_or_else(String::new, |key| format!(" `{key}`"));
        Self { line, problem: format!("{}{key}", error.message()) }
    }

    /// The first key of the text that has no meaning, or a value without one. `error` is that of all keys.
    pub(super) fn of_keys(text: &str, error: &toml::de::Error) -> Self {
        let keys = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort_by_key(|(word, _)| word.span().start);
        // An error in a key concerns only this key, and can name it.
        let wrong = keys.into_iter().find_map(|(word, value)| {
            let (at, problem) = wrong_key(word, value)?;
            Some((at, format!("{}: {problem}", word.get_ref())))
        });
        match wrong {
            Some((at, problem)) => Self { line: Some(line_at(text, at)), problem },
            None => Self { line: None, problem: error.message().to_owned() },
        }
    }
}

/// The lines at which the tables of this word begin, from 1.
pub(super) fn table_lines(text: &str, word: &str) -> Vec<usize> {
    let keys = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
    let tables = keys.get(word).and_then(|tables| tables.get_ref().as_array());
    let lines = tables.into_iter().flatten().scan((0, 1), |(from, line), table| {
        let at = table.span().start.max(*from);
        *line += text.get(*from..at).map_or(0, |passed| passed.matches('\n').count());
        *from = at;
        Some(*line)
    });
    lines.collect()
}

fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Where a key of the file is wrong, and why; `None` if it is not.
fn wrong_key(word: &Key<'_>, value: &Spanned<DeValue<'_>>) -> Option<(usize, String)> {
    match value.get_ref() {
        DeValue::Array(tables)
            if !tables.is_empty() && tables.iter().all(|table| table.get_ref().is_table()) =>
        {
            tables.iter().find_map(|table| {
                let one =
                    |keys| DeValue::Array(DeArray::from_iter([Spanned::new(0..0, DeValue::Table(keys))]));
                wrong_in_table(table.span().start, table.get_ref().as_table()?, |keys| {
                    refusal(word, one(keys))
                })
            })
        }
        DeValue::Table(keys) => {
            wrong_in_table(word.span().start, keys, |keys| refusal(word, DeValue::Table(keys)))
        }
        one => refusal(word, one.clone()).map(|problem| (word.span().start, problem)),
    }
}

/// The same of a table at `at` with these keys: at the key that alone has the same error, unless the table has it without
/// any.
fn wrong_in_table<'t>(
    at: usize,
    keys: &DeTable<'t>,
    refusal: impl Fn(DeTable<'t>) -> Option<String>,
) -> Option<(usize, String)> {
    let problem = refusal(keys.clone())?;
    let is_refused = |keys| refusal(keys).as_ref() == Some(&problem);
    let wrong = keys
        .iter()
        .filter(|(word, value)| is_refused(DeTable::from_iter([((*word).clone(), (*value).clone())])));
    let key = wrong.map(|(word, _)| word.span().start).min().filter(|_| !is_refused(DeTable::new()));
    Some((key.unwrap_or(at), problem))
}

/// Why a key of the file is refused.
fn refusal<'t>(word: &Key<'t>, value: DeValue<'t>) -> Option<String> {
    let is_table = value.is_table()
        || value.as_array().is_some_and(|all| all.iter().any(|one| one.get_ref().is_table()));
    let alone = DeTable::from_iter([(word.clone(), Spanned::new(0..0, value))]);
    let error = ProxyOptions::deserialize(Deserializer::from(Spanned::new(0..0, alone))).err()?;
    let problem = error.message();
    if problem != format!("unknown field `{}`", word.get_ref()) {
        return Some(problem.to_owned());
    }
    if is_table {
        return Some(format!("{problem}; the tables are [[route]], [[pass]], [keys] and [colors]"));
    }
    let meant = similar_flag(word.get_ref());
    Some(meant.map_or_else(|| problem.to_owned(), |known| format!("{problem}; did you mean `{known}`?")))
}

/// The option with a name like this.
fn similar_flag(word: &str) -> Option<String> {
    let refused = ProxyArgs::command().try_get_matches_from(["tlsdash", &format!("--{word}")]).err()?;
    match refused.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(flag)) => Some(flag.trim_start_matches('-').to_owned()),
        _ => None,
    }
}
