//! Which key does what: one table, from which the footer and the help are made.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::state::Intent;

/// A key as the table names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character, shifted or not as it stands.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// A key without a character.
    Named(KeyCode, &'static str),
}

impl Key {
    fn matches(self, event: &KeyEvent) -> bool {
        let held = event.modifiers.intersection(KeyModifiers::CONTROL.union(KeyModifiers::ALT));
        match self {
            Self::Char(c) => event.code == KeyCode::Char(c) && held.is_empty(),
            Self::Ctrl(c) => event.code == KeyCode::Char(c) && held == KeyModifiers::CONTROL,
            Self::Named(code, _) => event.code == code && held.is_empty(),
        }
    }

    /// The key as help names it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Char(' ') => "space".to_owned(),
            Self::Char(c) => c.to_string(),
            Self::Ctrl(c) => format!("Ctrl-{}", c.to_ascii_uppercase()),
            Self::Named(_, name) => name.to_owned(),
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Keys that do it; the first one is named first.
    pub(crate) keys: &'static [Key],
    /// What a person wants with it.
    pub(crate) intent: Intent,
    /// What it does, for the help.
    pub(crate) meaning: &'static str,
}

const fn bind(keys: &'static [Key], intent: Intent, meaning: &'static str) -> Binding {
    Binding { keys, intent, meaning }
}

/// All keys, in the order of the help.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(&[Key::Char('q'), Key::Ctrl('c')], Intent::Quit, "quit"),
    bind(&[Key::Char('?'), Key::Named(KeyCode::F(1), "F1")], Intent::Help, "show or leave this help"),
    bind(&[Key::Named(KeyCode::Esc, "Esc")], Intent::Back, "leave the help; let go of the client; go on"),
    bind(&[Key::Char(' ')], Intent::Freeze, "freeze the view; reading goes on"),
    bind(&[Key::Named(KeyCode::Left, "Left")], Intent::ScrubBack, "back in time by a column"),
    bind(&[Key::Named(KeyCode::Right, "Right")], Intent::ScrubForward, "forward in time by a column"),
    bind(&[Key::Char('<')], Intent::ScrubFarBack, "back in time by ten columns"),
    bind(&[Key::Char('>')], Intent::ScrubFarForward, "forward in time by ten columns"),
    bind(&[Key::Char('N')], Intent::MarkPrevious, "to the mark or change before"),
    bind(&[Key::Char('n')], Intent::MarkNext, "to the mark or change after"),
    bind(&[Key::Char('w')], Intent::Worst, "to the worst latency that is kept"),
    bind(&[Key::Char('z')], Intent::ZoomOut, "more time in a column"),
    bind(&[Key::Char('Z')], Intent::ZoomIn, "less time in a column"),
    bind(&[Key::Char('c')], Intent::Subject, "another class in the heat map"),
    bind(&[Key::Char('v')], Intent::Turn, "heat map or percentiles, where one fits"),
    bind(&[Key::Char('-')], Intent::WindowShorter, "shorter window"),
    bind(&[Key::Char('+'), Key::Char('=')], Intent::WindowLonger, "longer window, up to the whole run"),
    bind(&[Key::Char('s')], Intent::SortNext, "sort the clients by the next column"),
    bind(&[Key::Char('S')], Intent::SortReverse, "reverse the order of the clients"),
    bind(&[Key::Named(KeyCode::Up, "Up"), Key::Char('k')], Intent::Up, "previous client"),
    bind(&[Key::Named(KeyCode::Down, "Down"), Key::Char('j')], Intent::Down, "next client"),
    bind(&[Key::Named(KeyCode::PageUp, "PgUp")], Intent::PageUp, "a page up"),
    bind(&[Key::Named(KeyCode::PageDown, "PgDn")], Intent::PageDown, "a page down"),
    bind(&[Key::Named(KeyCode::Home, "Home"), Key::Char('g')], Intent::First, "first client"),
    bind(&[Key::Named(KeyCode::End, "End"), Key::Char('G')], Intent::Last, "last client"),
    bind(&[Key::Char('l')], Intent::LoadToggle, "start or stop the load"),
    bind(&[Key::Char('[')], Intent::RateDown, "10 % fewer requests a second"),
    bind(&[Key::Char(']')], Intent::RateUp, "10 % more requests a second"),
    bind(&[Key::Char('{')], Intent::ResumeDown, "resume 10 points less"),
    bind(&[Key::Char('}')], Intent::ResumeUp, "resume 10 points more"),
    bind(&[Key::Char('m')], Intent::Mark, "leave a numbered mark in the time line"),
    bind(&[Key::Ctrl('l')], Intent::Redraw, "draw the whole screen anew"),
    bind(&[Key::Ctrl('z')], Intent::Suspend, "back to the shell; fg returns"),
];

/// What the footer says of one or more intents.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) intents: &'static [Intent],
    pub(crate) word: &'static str,
    pub(crate) needs: Needs,
}

/// What there must be for a hint to make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// A table of clients.
    Clients,
    /// A run that takes commands.
    Control,
    /// One with a load.
    Load,
}

const fn hint(intents: &'static [Intent], word: &'static str, needs: Needs) -> Hint {
    Hint { intents, word, needs }
}

/// What the footer names, the most wanted first; the keys stand in [`BINDINGS`].
pub(crate) const HINTS: &[Hint] = &[
    hint(&[Intent::Quit], "quit", Needs::Nothing),
    hint(&[Intent::Help], "help", Needs::Nothing),
    hint(&[Intent::Freeze], "freeze", Needs::Nothing),
    hint(&[Intent::ScrubBack, Intent::ScrubForward], "time", Needs::Nothing),
    hint(&[Intent::WindowShorter, Intent::WindowLonger], "win", Needs::Nothing),
    hint(&[Intent::SortNext], "sort", Needs::Clients),
    hint(&[Intent::LoadToggle], "load", Needs::Load),
    hint(&[Intent::RateDown, Intent::RateUp], "rate", Needs::Load),
    hint(&[Intent::ResumeDown, Intent::ResumeUp], "resume", Needs::Load),
    hint(&[Intent::Mark], "mark", Needs::Control),
];

/// What a person wants with this key; `None` if it is bound to nothing.
pub(crate) fn intent(event: &KeyEvent) -> Option<Intent> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let bound = |binding: &&Binding| binding.keys.iter().any(|key| key.matches(event));
    BINDINGS.iter().find(bound).map(|binding| binding.intent)
}

/// The first key of an intent.
pub(crate) fn key_of(intent: Intent) -> Option<Key> {
    BINDINGS.iter().find(|binding| binding.intent == intent).and_then(|binding| binding.keys.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice() {
        let keys: Vec<Key> = BINDINGS.iter().flat_map(|binding| binding.keys).copied().collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[i + 1..].contains(key), "{} is bound twice", key.name());
        }
    }

    #[test]
    fn everything_a_person_can_want_has_one_line_with_a_key_and_a_meaning() {
        for (i, binding) in BINDINGS.iter().enumerate() {
            assert!(!binding.keys.is_empty() && !binding.meaning.is_empty());
            assert!(BINDINGS[i + 1..].iter().all(|other| other.intent != binding.intent));
        }
        for intent in Intent::ALL {
            assert!(key_of(*intent).is_some(), "{intent:?} has no key");
        }
    }

    #[test]
    fn the_page_on_the_dashboard_names_every_key() {
        let page = include_str!("../../../docs/dashboard.md");
        let (_, table) = page.split_once("## Keys").unwrap();
        for key in BINDINGS.iter().flat_map(|binding| binding.keys) {
            assert!(table.contains(&format!("`{}`", key.name())), "{}", key.name());
        }
    }

    #[test]
    fn shifted_characters_and_control_keys_are_told_apart() {
        let press = |c, modifiers| intent(&KeyEvent::new(KeyCode::Char(c), modifiers));
        assert_eq!(press('S', KeyModifiers::SHIFT), Some(Intent::SortReverse));
        assert_eq!(press('s', KeyModifiers::NONE), Some(Intent::SortNext));
        assert_eq!(press('c', KeyModifiers::CONTROL), Some(Intent::Quit));
        assert_eq!(press('x', KeyModifiers::NONE), None);
        assert_eq!(press('q', KeyModifiers::ALT), None);
    }
}
