//! The keymap: one table, from which footer, help, palette and configuration are made.

mod bindings;
pub(crate) mod hints;
mod synonyms;

use crokey::{KeyCombination, KeyCombinationFormat, OneToThree};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::input::context::KeyContext;
use crate::input::intent::{Intent, SettingEdit};
pub(crate) use bindings::{BINDINGS, Binding};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    #[error("there is no action {0}; --print-config lists them")]
    Action(String),
    #[error("{action}: {key} is no key, such as q, ctrl-c, shift-s, f1, left or space")]
    Key { action: String, key: String },
    /// Two actions want the same key where both mean something.
    #[error("{key} is bound to both {first} and {second}")]
    Twice { key: String, first: String, second: String },
}

/// The keys in force: those of the table, or others.
#[derive(Clone, Debug)]
pub struct Keymap {
    /// For each line of [`BINDINGS`].
    keys: Vec<Vec<KeyCombination>>,
}

impl Default for Keymap {
    fn default() -> Self {
        let keys = |binding: &Binding| binding.keys.iter().filter_map(|key| parse(key)).collect();
        Self { keys: BINDINGS.iter().map(keys).collect() }
    }
}

impl Keymap {
    /// The usual keys with some actions under others: name of the action, and keys such as `q`, `ctrl-c` or `shift-s`.
    ///
    /// # Errors
    /// When there is no such action or key, or two of these actions have the same key.
    pub fn with<'a>(changes: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        let mut configured = Vec::new();
        for (action, keys) in changes {
            let at = BINDINGS.iter().position(|binding| binding.name == action);
            let at = at.ok_or_else(|| KeymapError::Action(action.to_owned()))?;
            let key = |key: &String| {
                parse(key).ok_or_else(|| KeymapError::Key { action: action.to_owned(), key: key.clone() })
            };
            map.keys[at] = keys.iter().map(key).collect::<Result<_, _>>()?;
            configured.push(at);
        }
        map.yield_keys(&configured);
        map.check()?;
        Ok(map)
    }

    /// Takes keys that a person configured from actions that were not configured, so that a configuration stays valid
    /// when an action gets another key.
    fn yield_keys(&mut self, configured: &[usize]) {
        for at in (0..BINDINGS.len()).filter(|at| !configured.contains(at)) {
            let meet = |other: &&usize| BINDINGS[**other].context.clashes(BINDINGS[at].context);
            let taken: Vec<KeyCombination> =
                configured.iter().filter(meet).flat_map(|&other| self.keys[other].clone()).collect();
            self.keys[at].retain(|key| !taken.contains(key));
        }
    }

    fn check(&self) -> Result<(), KeymapError> {
        let all = || BINDINGS.iter().zip(&self.keys).enumerate();
        for (at, (first, keys)) in all() {
            for (_, (second, others)) in all().skip(at + 1) {
                let meet = first.context.clashes(second.context);
                if let Some(key) = keys.iter().find(|key| meet && others.contains(key)) {
                    let [first, second] = [first, second].map(|binding| binding.name.to_owned());
                    return Err(KeymapError::Twice { key: name(*key), first, second });
                }
            }
        }
        Ok(())
    }

    /// Every action with the keys that do it, as the configuration writes them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> + '_ {
        let written = |key: &KeyCombination| name(*key).to_lowercase();
        let written = move |key: &KeyCombination| match key.codes {
            OneToThree::One(KeyCode::Char(c)) if c.is_ascii_uppercase() => {
                format!("shift-{}", c.to_ascii_lowercase())
            }
            _ => written(key),
        };
        BINDINGS
            .iter()
            .zip(&self.keys)
            .map(move |(binding, keys)| (binding.name, keys.iter().map(written).collect()))
    }

    /// What a person wants with this key here; `None` if it is bound to nothing.
    pub(crate) fn intent(&self, event: &KeyEvent, here: KeyContext) -> Option<Intent> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let pressed = normal((*event).into());
        let bound = |(binding, keys): &(&Binding, &Vec<KeyCombination>)| {
            binding.context.reaches(here) && keys.contains(&pressed)
        };
        let all = || BINDINGS.iter().zip(&self.keys).filter(bound);
        let intent = |(binding, _): (&Binding, _)| binding.intent;
        let here_only = all().find(|(binding, _)| binding.context == here).map(intent);
        let begins_value = || digit(pressed).filter(|_| here == KeyContext::Tuning);
        here_only.or_else(begins_value).or_else(|| all().next().map(intent))
    }

    /// The names of the keys of an intent.
    pub(crate) fn names(&self, intent: Intent) -> Vec<String> {
        let at = BINDINGS.iter().position(|binding| binding.intent == intent);
        at.map_or_else(Vec::new, |at| self.keys[at].iter().copied().map(name).collect())
    }
}

fn parse(text: &str) -> Option<KeyCombination> {
    crokey::parse(text).ok().filter(|key| key.is_ansi_compatible()).map(normal)
}

/// Shift distinguishes letters only; other keys ignore it.
fn normal(key: KeyCombination) -> KeyCombination {
    let mut key = key.normalized();
    if matches!(key.codes, OneToThree::One(KeyCode::Char(c)) if !c.is_ascii_alphabetic()) {
        key.modifiers.remove(KeyModifiers::SHIFT);
    }
    key
}

/// On the list of settings, a digit that is bound to nothing there begins a value of the selected one.
fn digit(key: KeyCombination) -> Option<Intent> {
    match key.codes {
        OneToThree::One(KeyCode::Char(c)) if c.is_ascii_digit() && key.modifiers.is_empty() => {
            Some(Intent::Setting(SettingEdit::TypeDigit(c)))
        }
        _ => None,
    }
}

fn name(key: KeyCombination) -> String {
    if let OneToThree::One(KeyCode::Char('-')) = key.codes {
        return "-".to_owned();
    }
    KeyCombinationFormat::default().with_implicit_shift().to_string(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::intent::{Direction, PaneAction, SeekTarget};

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        assert_eq!(Keymap::default().check(), Ok(()));
        let both = [("quit", &["q".to_owned()][..]), ("mark", &["q".to_owned()][..])];
        assert_eq!(Keymap::with(both).unwrap_err().to_string(), "q is bound to both quit and mark");
    }

    #[test]
    fn a_configured_key_is_taken_from_an_action_that_is_not_configured() {
        let map = Keymap::with([("class", &["c".to_owned()][..]), ("zoom-out", &["z".to_owned()])]).unwrap();
        let press =
            |key| map.intent(&KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), KeyContext::Panes);
        assert_eq!((press('c'), press('z')), (Some(Intent::NextClass), Some(Intent::ZoomOut)));
        assert_eq!(
            map.names(Intent::Choose(crate::input::intent::Choice::Columns(
                crate::input::intent::List::Clients
            ))),
            [""; 0]
        );
    }

    #[test]
    fn every_binding_is_unique_and_has_a_key_and_a_meaning() {
        for (i, binding) in BINDINGS.iter().enumerate() {
            assert!(binding.keys.iter().all(|key| parse(key).is_some()), "{:?}", binding.keys);
            assert!(!binding.keys.is_empty() && !binding.meaning.is_empty());
            let is_other = |other: &Binding| other.intent != binding.intent && other.name != binding.name;
            assert!(BINDINGS[i + 1..].iter().all(is_other));
        }
    }

    #[test]
    fn the_page_on_the_dashboard_names_every_key() {
        let page = include_str!("../../../../../docs/dashboard.md");
        let (_, table) = page.split_once("## Keys").unwrap();
        for key in BINDINGS.iter().flat_map(|binding| Keymap::default().names(binding.intent)) {
            assert!(table.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn printed_keys_parse_back() {
        let printed: Vec<(&str, Vec<String>)> = Keymap::default().entries().collect();
        let read = Keymap::with(printed.iter().map(|(name, keys)| (*name, &keys[..]))).unwrap();
        assert_eq!(read.keys, Keymap::default().keys);
    }

    #[test]
    fn keys_can_be_given_other_meanings() {
        let map =
            Keymap::with([("mark", &["f5".to_owned()][..]), ("quit", &["shift-q".to_owned()])]).unwrap();
        let press = |code, modifiers| map.intent(&KeyEvent::new(code, modifiers), KeyContext::Panes);
        assert_eq!(press(KeyCode::F(5), KeyModifiers::NONE), Some(Intent::Mark));
        assert_eq!(press(KeyCode::Char('m'), KeyModifiers::NONE), None);
        assert_eq!(press(KeyCode::Char('Q'), KeyModifiers::SHIFT), Some(Intent::Quit));
        for (changes, why) in [
            (("fly", vec!["f"]), "there is no action fly; --print-config lists them"),
            (("quit", vec!["q-q-"]), "quit: q-q- is no key, such as q, ctrl-c, shift-s, f1, left or space"),
        ] {
            let keys: Vec<String> = changes.1.into_iter().map(str::to_owned).collect();
            assert_eq!(Keymap::with([(changes.0, &keys[..])]).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn shifted_characters_and_control_keys_are_told_apart() {
        let map = Keymap::default();
        let press = |c, modifiers| map.intent(&KeyEvent::new(KeyCode::Char(c), modifiers), KeyContext::Panes);
        assert_eq!(press('S', KeyModifiers::SHIFT), Some(Intent::SortReverse));
        assert_eq!(press('s', KeyModifiers::NONE), Some(Intent::SortNext));
        assert_eq!(press('c', KeyModifiers::CONTROL), Some(Intent::Quit));
        assert_eq!(press('?', KeyModifiers::SHIFT), Some(Intent::Help));
        assert_eq!(press('#', KeyModifiers::NONE), None);
        assert_eq!(press('q', KeyModifiers::ALT), None);
        // Terminals report Shift-Tab so.
        let back = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(map.intent(&back, KeyContext::Panes), Some(Intent::Pane(PaneAction::FocusPrevious)));
    }

    #[test]
    fn the_same_key_can_mean_something_else_elsewhere() {
        let map = Keymap::default();
        let left = KeyEvent::new(KeyCode::Left, KeyModifiers::NONE);
        assert_eq!(map.intent(&left, KeyContext::Panes), Some(Intent::Seek(SeekTarget::Columns(-1))));
        assert_eq!(
            map.intent(&left, KeyContext::Tuning),
            Some(Intent::Setting(SettingEdit::Step(Direction::Down)))
        );
    }
}
