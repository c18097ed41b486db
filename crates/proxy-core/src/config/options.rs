//! Limits and TLS settings. Each is declared once, with its flag, configuration word, live setting, bounds and help.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use records::setting::{Applies, Setting, SettingError, SettingInfo, SettingKind, Value};
use records::text::clean;

use super::rate::Rate;

/// In front of the name that an option has as a flag.
pub(crate) const PREFIX: &str = "proxy.";
const MIB: usize = 1 << 20;
/// The value of a rate that is none.
const OFF: &str = "off";
const EXPECTED_RATE: &str = "a rate up to 1000000, such as 100/s, 6000/m or 100/s,burst=200, or off";

fn rate_or_off(text: &str) -> Result<Option<Rate>, OptionError> {
    (text != OFF).then(|| text.parse()).transpose()
}

fn shown_rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| OFF.to_owned(), |rate| rate.to_string())
}

/// Why a limit or a setting cannot have a value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionError {
    #[error("there is no such setting of TLS")]
    Unknown,
    /// The value is not a known one.
    #[error("{} is not known; known: {known}", clean::text(given))]
    NotKnown { given: String, known: String },
    #[error("{} is given twice", clean::text(.0))]
    Twice(String),
    /// The value is not a number, or is out of range.
    #[error("expected a {kind} from {low} to {high}")]
    OutOfRange {
        /// `number` or `whole number`.
        kind: &'static str,
        /// Smallest allowed, in the option's unit.
        low: f64,
        high: f64,
    },
    /// The name of an application protocol is empty, too long or not printable.
    #[error("expected printable names of 1 to 255 bytes, separated by commas")]
    Protocol,
    /// What a rule is for cannot be what a client asks for in TLS.
    #[error("{}: expected a DNS name with its rule, such as admin.example=required", clean::text(.0))]
    ServerName(String),
    #[error("expected {EXPECTED_RATE}")]
    Rate,
}

/// A limit or a TLS setting, stored in a field of `T`.
#[derive(Debug)]
pub struct OptionSpec<T: 'static> {
    /// The flag, and the word in a configuration file; the live setting has `proxy.` in front.
    pub name: &'static str,
    /// The value's name in help, such as `TIME`.
    pub value_name: &'static str,
    /// The description, in a line of help.
    pub help: &'static str,
    /// False if it can only change while the proxy runs.
    pub has_flag: bool,
    /// The default, in words, if it is not one of the values.
    pub absent: Option<OptionDefault>,
    applies: Applies,
    kind: OptionKind<T>,
}

/// The behaviour without the option.
#[derive(Clone, Copy, Debug)]
pub struct OptionDefault {
    /// A description for the help text.
    pub holds: &'static str,
    /// A permitted value, shown as an example.
    pub example: &'static str,
}

/// The type of the value, and where it is stored.
#[derive(Debug)]
pub enum OptionKind<T: 'static> {
    Time {
        /// Shortest and longest, in seconds.
        range: (f64, f64),
        at: fn(&mut T) -> &mut Duration,
    },
    /// Memory in bytes, written in MiB in configurations and by people.
    Memory {
        /// Least and most, in MiB.
        range: (f64, f64),
        /// The field, in bytes.
        at: fn(&mut T) -> &mut usize,
    },
    /// Optional memory. Without it, the live setting is 0 and the configuration omits the option.
    MemoryBound {
        range: (f64, f64),
        at: fn(&mut T) -> &mut Option<usize>,
    },
    Count {
        range: (f64, f64),
        at: fn(&mut T) -> &mut usize,
    },
    /// An optional limit. Without a limit, the live setting is 0 and the configuration omits the option.
    Bound {
        max: f64,
        at: fn(&mut T) -> &mut Option<usize>,
    },
    /// An optional rate of a client. Without one, the live setting is `off`.
    Rate(fn(&mut T) -> &mut Option<Rate>),
    /// A word, or a list of them.
    Text {
        get: fn(&T) -> String,
        set: fn(&mut T, &str) -> Result<(), OptionError>,
        known: AllowedValues,
    },
}

/// The values that a text option accepts.
#[derive(Clone, Copy, Debug)]
pub enum AllowedValues {
    Any,
    OneOf(fn() -> Vec<String>),
    ListOf(fn() -> Vec<String>),
}

/// Settings that are declared in a list.
pub trait DeclaredOptions: Clone + Default + Send + Sync + 'static {
    const OPTIONS: &'static [OptionSpec<Self>];
    /// Its names, in the same order.
    const NAMES: &'static [&'static str];

    fn option(name: &str) -> Option<&'static OptionSpec<Self>> {
        Self::OPTIONS.iter().find(|option| option.name == name)
    }
}

pub const fn option_names<T, const N: usize>(options: &[OptionSpec<T>; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = options[i].name;
        i += 1;
    }
    names
}

impl<T> OptionSpec<T> {
    /// An option with a flag, a word in the configuration file and a live setting.
    pub const fn new(
        (name, value_name): (&'static str, &'static str),
        applies: Applies,
        kind: OptionKind<T>,
        help: &'static str,
    ) -> Self {
        Self { name, value_name, help, has_flag: true, absent: None, applies, kind }
    }

    /// The option as a live setting only, without a flag.
    pub const fn without_flag(self) -> Self {
        Self { has_flag: false, ..self }
    }

    /// The option with a default in words, since its default is not one of the values.
    pub const fn absent(self, holds: &'static str, example: &'static str) -> Self {
        Self { absent: Some(OptionDefault { holds, example }), ..self }
    }

    /// The unit of its number: `s`, `MiB`, or none.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            OptionKind::Time { .. } => "s",
            OptionKind::Memory { .. } | OptionKind::MemoryBound { .. } => "MiB",
            OptionKind::Count { .. }
            | OptionKind::Bound { .. }
            | OptionKind::Rate(_)
            | OptionKind::Text { .. } => "",
        }
    }

    /// The smallest and the largest number that a configuration may give, in its unit; `None` for text.
    pub fn range(&self) -> Option<(f64, f64)> {
        match self.kind {
            OptionKind::Time { range, .. }
            | OptionKind::Memory { range, .. }
            | OptionKind::MemoryBound { range, .. }
            | OptionKind::Count { range, .. } => Some(range),
            OptionKind::Bound { max, .. } => Some((1.0, max)),
            OptionKind::Rate(_) | OptionKind::Text { .. } => None,
        }
    }

    /// Sets the option to a number in its unit, or to a text.
    ///
    /// # Errors
    /// If the option does not accept this value.
    pub fn set(&self, settings: &mut T, value: &Value) -> Result<(), OptionError> {
        match &self.kind {
            OptionKind::Text { set, .. } => set(settings, &value.to_string())?,
            OptionKind::Rate(at) => {
                *at(settings) = rate_or_off(&value.to_string())?;
            }
            OptionKind::Time { range, at } => *at(settings) = Duration::from_secs_f64(number(value, *range)?),
            OptionKind::Memory { range, at } => *at(settings) = whole_number(value, *range)? * MIB,
            OptionKind::MemoryBound { at, .. } if *value == Value::Number(0.0) => *at(settings) = None,
            OptionKind::MemoryBound { range, at } => *at(settings) = Some(whole_number(value, *range)? * MIB),
            OptionKind::Count { range, at } => *at(settings) = whole_number(value, *range)?,
            OptionKind::Bound { max, at } => {
                *at(settings) = Some(whole_number(value, (0.0, *max))?).filter(|&bound| bound > 0);
            }
        }
        Ok(())
    }
}

impl<T: Clone + Default> OptionSpec<T> {
    /// Describes the live setting, whose name begins with `prefix`.
    pub(crate) fn info(&self, prefix: &str) -> SettingInfo {
        let kind = match &self.kind {
            OptionKind::Time { .. } | OptionKind::Text { known: AllowedValues::Any, .. } => SettingKind::Any,
            OptionKind::Rate(_) => SettingKind::Parsed {
                parse: |text| rate_or_off(text).ok().map(shown_rate),
                allowed: EXPECTED_RATE,
            },
            OptionKind::Memory { .. }
            | OptionKind::MemoryBound { .. }
            | OptionKind::Count { .. }
            | OptionKind::Bound { .. } => SettingKind::Whole,
            OptionKind::Text { known: AllowedValues::OneOf(words), .. } => SettingKind::OneOf(words()),
            OptionKind::Text { known: AllowedValues::ListOf(words), .. } => SettingKind::ListOf(words()),
        };
        // Descriptors limit an option without its own maximum.
        let depends = matches!(self.kind, OptionKind::Bound { max, .. } if max.is_infinite());
        SettingInfo {
            name: format!("{prefix}{}", self.name),
            about: self.help.to_owned(),
            kind,
            default: (!depends).then(|| self.setting(&T::default()).value),
            absent: self.absent.map(|absent| absent.holds),
        }
    }
}

impl<T: Clone> OptionSpec<T> {
    /// The current value; `None` if there is no limit.
    pub fn value(&self, settings: &T) -> Option<Value> {
        // The accessors can only return mutable references; nothing is changed.
        let settings = &mut settings.clone();
        let number = match &self.kind {
            OptionKind::Text { get, .. } => return Some(Value::Text(get(settings))),
            OptionKind::Rate(at) => {
                return Some(Value::Text(shown_rate(*at(settings))));
            }
            OptionKind::Time { at, .. } => at(settings).as_secs_f64(),
            OptionKind::Memory { at, .. } => *at(settings) as f64 / MIB as f64,
            OptionKind::MemoryBound { at, .. } => (*at(settings))? as f64 / MIB as f64,
            OptionKind::Count { at, .. } => *at(settings) as f64,
            OptionKind::Bound { at, .. } => (*at(settings))? as f64,
        };
        Some(Value::Number(number))
    }

    /// Whether the value is within its range.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn check(&self, settings: &T) -> Result<(), OptionError> {
        match (self.value(settings), self.range()) {
            (Some(value), Some(range)) => number(&value, range).map(drop),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// The live setting, without the `proxy.` in front of its name.
    pub(crate) fn setting(&self, settings: &T) -> Setting {
        let range = match self.kind {
            OptionKind::Bound { max, .. } | OptionKind::MemoryBound { range: (_, max), .. } => {
                Some((0.0, max))
            }
            _ => self.range(),
        };
        Setting {
            name: self.name.to_owned(),
            value: self.value(settings).unwrap_or(Value::Number(0.0)),
            unit: self.unit().to_owned(),
            applies: self.applies,
            range,
        }
    }
}

/// Returns the number in `value` if it is within the range.
fn number(value: &Value, (low, high): (f64, f64)) -> Result<f64, OptionError> {
    match *value {
        Value::Number(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(OptionError::OutOfRange { kind: "number", low, high }),
    }
}

/// Returns the number in `value` if it is whole and within the range.
pub(crate) fn whole_number(value: &Value, (low, high): (f64, f64)) -> Result<usize, OptionError> {
    match number(value, (low, high)) {
        Ok(number) if number.fract() == 0.0 => Ok(number as usize),
        _ => Err(OptionError::OutOfRange { kind: "whole number", low, high }),
    }
}

/// The declared options of a running proxy. Its workers read them, its handle changes them.
#[derive(Debug, Default)]
pub struct LiveOptions<T>(Mutex<Arc<T>>);

/// A setting of the proxy that is fixed for the whole run.
pub fn fixed_setting(name: &str, value: String) -> Setting {
    Setting {
        name: name.into(),
        value: Value::Text(value),
        unit: String::new(),
        applies: Applies::Restart,
        range: None,
    }
}

/// The error that explains why `value` is refused.
pub(crate) fn refused(name: &str, value: &Value, reason: String) -> SettingError {
    SettingError::Refused { name: name.to_owned(), value: clean::text(&value.to_string()), reason }
}

impl<T: DeclaredOptions> LiveOptions<T> {
    pub fn new(options: T) -> Self {
        Self(Mutex::new(Arc::new(options)))
    }

    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.lock())
    }

    /// Describes the settings that have a range or a list of words.
    pub fn infos() -> Vec<SettingInfo> {
        T::OPTIONS.iter().map(|option| option.info(PREFIX)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        // A change replaces all of them at once, so a panic leaves them consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn list(&self) -> Vec<Setting> {
        let current = self.current();
        let of = |option: &OptionSpec<T>| {
            let setting = option.setting(&current);
            Setting { name: format!("{PREFIX}{}", option.name), ..setting }
        };
        T::OPTIONS.iter().map(of).collect()
    }

    /// Changes a setting and returns its former state; `None` if there is no such setting.
    pub fn set(&self, name: &str, value: &Value) -> Option<Result<Setting, SettingError>> {
        let option = name.strip_prefix(PREFIX).and_then(T::option)?;
        let mut current = self.lock();
        let mut changed = T::clone(&current);
        let before = Setting { name: name.to_owned(), ..option.setting(&current) };
        Some(match option.set(&mut changed, value) {
            Ok(()) => {
                *current = Arc::new(changed);
                Ok(before)
            }
            Err(error) => Err(refused(name, value, error.to_string())),
        })
    }
}
