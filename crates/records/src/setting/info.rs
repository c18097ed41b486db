//! What a setting means and which values it takes. Declared beside the setting in the program, not part of a record.

use crate::setting::{Applies, Setting, Value};
use crate::text::quantity;

#[derive(Clone, Debug, Default)]
pub struct SettingInfo {
    /// Dotted name, such as `load.rate`.
    pub name: String,
    pub about: String,
    /// Which values it takes, within the range of its [`Setting`].
    pub kind: SettingKind,
    /// Its value unless it is given; `None` if that depends on the machine or the command.
    pub default: Option<Value>,
    /// The behaviour without a value, in words, if no value expresses it.
    pub absent: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub enum SettingKind {
    /// Any value of its type.
    #[default]
    Any,
    /// Whole numbers.
    Whole,
    OneOf(Vec<String>),
    /// A list of these words, separated by commas.
    ListOf(Vec<String>),
    /// Texts that `parse` takes; it returns them as the setting has them then: `off` for `1`.
    Parsed {
        /// `None` for a text that the setting refuses.
        parse: fn(&str) -> Option<String>,
        allowed: &'static str,
    },
}

impl SettingKind {
    /// The words it takes; none if it takes others too.
    pub fn words(&self) -> &[String] {
        match self {
            Self::Any | Self::Whole | Self::Parsed { .. } => &[],
            Self::OneOf(words) | Self::ListOf(words) => words,
        }
    }
}

impl SettingInfo {
    /// The description of the setting with this name.
    pub fn find<'i>(infos: &'i [Self], name: &str) -> Option<&'i Self> {
        let find = |name: &str| infos.iter().find(|info| info.name == name);
        // Further certificates have a number behind the name.
        find(name).or_else(|| find(name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit())))
    }
}

/// A list with its items as they are known, in whatever case they are typed.
fn as_known(list: &str, words: &[String]) -> String {
    let known = |item: &str| words.iter().find(|word| word.eq_ignore_ascii_case(item)).cloned();
    let items = list.split(',').map(str::trim).map(|item| known(item).unwrap_or_else(|| item.to_owned()));
    items.collect::<Vec<_>>().join(",")
}

impl Setting {
    /// The value with its unit, as it can be typed: `10s`, `512MiB`, `on`.
    pub fn shown(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => quantity::shown(*number, &self.unit),
            value => value.to_string(),
        }
    }

    /// A value of it for people: a bound of 0 is none.
    pub fn in_words(&self, value: &Value, info: Option<&SettingInfo>) -> String {
        let absent = info.and_then(|info| info.absent).filter(|_| *value == Value::Number(0.0));
        match (self.shown(value), absent) {
            (empty, _) if empty.is_empty() => "none".to_owned(),
            (_, Some(absent)) => absent.to_owned(),
            (shown, None) => shown,
        }
    }

    /// Describes the accepted values; `None` if any text is accepted.
    pub fn allowed(&self, info: Option<&SettingInfo>) -> Option<String> {
        let kind = info.map_or(&SettingKind::Any, |info| &info.kind);
        match (&self.value, kind) {
            (Value::Flag(_), _) => Some("on or off".to_owned()),
            (Value::Number(_), kind) => {
                let range = self.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                let is_whole = matches!(kind, SettingKind::Whole);
                Some(match self.range {
                    Some(_) => quantity::allowed(range, &self.unit, is_whole),
                    None => format!("a {}number", if is_whole { "whole " } else { "" }),
                })
            }
            (Value::Text(_), SettingKind::OneOf(words)) => Some(words.join(" or ")),
            (Value::Text(_), SettingKind::ListOf(words)) => Some(format!("a list of {}", words.join(", "))),
            (Value::Text(_), SettingKind::Parsed { allowed, .. }) => Some((*allowed).to_owned()),
            (Value::Text(_), _) => None,
        }
    }

    /// Parses a value as a person types it, with or without the unit. Two texts for the same value give the same
    /// result.
    ///
    /// # Errors
    /// With the accepted values, if it cannot be changed to this.
    pub fn parse(&self, info: Option<&SettingInfo>, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match &self.value {
            Value::Flag(_) => match text {
                "on" | "true" | "yes" => Some(Value::Flag(true)),
                "off" | "false" | "no" => Some(Value::Flag(false)),
                _ => None,
            },
            Value::Number(_) => {
                let plain = || text.parse().ok().filter(|number: &f64| number.is_finite());
                if self.unit == "%"
                    && let Some(share) = plain().filter(|number| *number > 0.0 && *number <= 1.0)
                {
                    let (name, percent) = (&self.name, quantity::shown(share * 100.0, "%"));
                    return Err(format!("{name} {text}: is it {text}% or {percent}? Give it with the sign"));
                }
                quantity::parse(text, &self.unit).or_else(plain).map(Value::Number)
            }
            Value::Text(_) => match info.map(|info| &info.kind) {
                Some(SettingKind::Parsed { parse, .. }) => parse(text).map(Value::Text),
                Some(SettingKind::ListOf(words)) => Some(Value::Text(as_known(text, words))),
                _ => Some(Value::Text(text.to_owned())),
            },
        };
        let value = value.ok_or_else(|| self.refused(info, text))?;
        self.check(info, &value).map(|()| value)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// With the accepted values, if it cannot be changed to this.
    pub fn check(&self, info: Option<&SettingInfo>, value: &Value) -> Result<(), String> {
        if self.applies == Applies::Restart {
            return Err(format!("{} changes only at a restart", self.name));
        }
        let kind = info.map_or(&SettingKind::Any, |info| &info.kind);
        let is_allowed = match (value, kind) {
            (Value::Number(number), kind) => {
                let (low, high) = self.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                (low..=high).contains(number)
                    && (!matches!(kind, SettingKind::Whole) || number.fract() == 0.0)
            }
            (Value::Text(text), SettingKind::OneOf(words)) => words.contains(text),
            (Value::Text(text), SettingKind::ListOf(words)) => {
                text.split(',').all(|item| words.iter().any(|word| word == item.trim()))
            }
            (Value::Text(text), SettingKind::Parsed { parse, .. }) => parse(text).is_some(),
            (Value::Flag(_) | Value::Text(_), _) => true,
        };
        if is_allowed { Ok(()) } else { Err(self.refused(info, &self.shown(value))) }
    }

    fn refused(&self, info: Option<&SettingInfo>, text: &str) -> String {
        let allowed = self.allowed(info).unwrap_or_default();
        format!("{} cannot be {text}: expected {allowed}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(value: Value, unit: &str, range: Option<(f64, f64)>) -> Setting {
        Setting { name: "x".into(), value, unit: unit.into(), applies: Applies::Live, range }
    }

    fn info(kind: SettingKind) -> SettingInfo {
        SettingInfo { kind, ..SettingInfo::default() }
    }

    #[test]
    fn times_are_typed_with_or_without_their_unit() {
        let timeout = setting(Value::Number(10.0), "s", Some((0.001, 86_400.0)));
        for (text, seconds) in [("10", 10.0), ("10 s", 10.0), ("500ms", 0.5), ("24h", 86_400.0)] {
            assert_eq!(timeout.parse(None, text), Ok(Value::Number(seconds)), "{text}");
        }
        for text in ["8d", "0s", "soon", "-1"] {
            let why = timeout.parse(None, text).unwrap_err();
            assert!(why.ends_with("expected a time from 1ms to 24h, such as 10s"), "{why}");
            assert!(why.starts_with("x cannot be "), "{why}");
        }
    }

    #[test]
    fn a_share_that_may_be_a_percentage_needs_the_sign() {
        let resume = setting(Value::Number(50.0), "%", Some((0.0, 100.0)));
        for (text, percent) in [("0", 0.0), ("80", 80.0), ("0.8%", 0.8), ("1%", 1.0)] {
            assert_eq!(resume.parse(None, text), Ok(Value::Number(percent)), "{text}");
        }
        assert_eq!(resume.parse(None, "0.8").unwrap_err(), "x 0.8: is it 0.8% or 80%? Give it with the sign");
    }

    #[test]
    fn fractions_are_refused_where_whole_numbers_are_wanted() {
        let workers = setting(Value::Number(2.0), "", Some((1.0, 256.0)));
        let whole = info(SettingKind::Whole);
        assert_eq!(workers.parse(Some(&whole), "4"), Ok(Value::Number(4.0)));
        for text in ["1.5", "1.4", "0", "257", "4x", "NaN"] {
            let why = workers.parse(Some(&whole), text).unwrap_err();
            assert!(why.ends_with(": expected a whole number from 1 to 256"), "{why}");
        }
    }

    #[test]
    fn texts_for_the_same_value_are_the_same() {
        let keepalive = setting(Value::Text("on".into()), "", None);
        let parse = |text: &str| match text {
            "1" | "off" => Some("off".to_owned()),
            _ => text.parse::<u32>().ok().map(|n| n.to_string()),
        };
        let known = info(SettingKind::Parsed { parse, allowed: "off or a number" });
        assert_eq!(keepalive.parse(Some(&known), "1"), keepalive.parse(Some(&known), "off"));
        assert_eq!(keepalive.parse(Some(&known), "10"), Ok(Value::Text("10".into())));
        let why = keepalive.parse(Some(&known), "maybe").unwrap_err();
        assert_eq!(why, "x cannot be maybe: expected off or a number");
    }

    #[test]
    fn unknown_words_are_refused_with_the_known_ones() {
        let oldest = setting(Value::Text("1.2".into()), "", None);
        let known = info(SettingKind::OneOf(vec!["1.2".into(), "1.3".into()]));
        assert_eq!(oldest.parse(Some(&known), "1.3"), Ok(Value::Text("1.3".into())));
        let why = oldest.parse(Some(&known), "1.1").unwrap_err();
        assert_eq!(why, "x cannot be 1.1: expected 1.2 or 1.3");
        let groups = info(SettingKind::ListOf(vec!["x25519".into(), "secp256r1".into()]));
        assert_eq!(
            oldest.parse(Some(&groups), "X25519, secp256R1"),
            Ok(Value::Text("x25519,secp256r1".into()))
        );
        assert!(oldest.parse(Some(&groups), "x25519,x448").is_err());
        assert!(oldest.parse(None, "anything").is_ok());
    }
}
