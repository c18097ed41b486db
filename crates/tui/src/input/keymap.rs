//! Which key does what: one table, from which footer, help, palette and configuration are made.

use crokey::{KeyCombination, KeyCombinationFormat, OneToThree};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::state::{Direction, Intent, Move, PlayControl, QuickControl, SeekTarget, SettingEdit};

/// Columns of a long step through time.
const FAR: i64 = 10;

/// Where a key means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// On every screen.
    Anywhere,
    /// On the panes.
    Panes,
    /// On the panes while a run is played; a key that also means something else there means this.
    Replay,
    /// On the list of settings.
    Tuning,
    /// On the experiments.
    Experiments,
    /// On the list of runs.
    Runs,
}

impl Context {
    /// True if a key of this context means something where the other is.
    fn reaches(self, here: Self) -> bool {
        self == Self::Anywhere || self == here || (self, here) == (Self::Panes, Self::Replay)
    }

    /// True if a key cannot have a meaning in both.
    fn clashes(self, other: Self) -> bool {
        self == other || self == Self::Anywhere || other == Self::Anywhere
    }
}

/// What there must be for a key to do anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// A table of clients.
    Clients,
    /// A journal that can be read again.
    Journal,
    /// A run that takes commands.
    Control,
    /// One with a load.
    Load,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Its name in the configuration.
    pub(crate) name: &'static str,
    /// Keys that do it unless others are configured, as the configuration writes them; the first one is named first.
    keys: &'static [&'static str],
    /// What a person wants with it.
    pub(crate) intent: Intent,
    /// What it does, for help and palette.
    pub(crate) meaning: &'static str,
    pub(crate) context: Context,
    pub(crate) needs: Needs,
}

const fn bind(
    name: &'static str,
    keys: &'static [&'static str],
    intent: Intent,
    (context, needs): (Context, Needs),
    meaning: &'static str,
) -> Binding {
    Binding { name, keys, intent, meaning, context, needs }
}

const ANYWHERE: (Context, Needs) = (Context::Anywhere, Needs::Nothing);
const PANES: (Context, Needs) = (Context::Panes, Needs::Nothing);
const CLIENTS: (Context, Needs) = (Context::Panes, Needs::Clients);
const JOURNAL: (Context, Needs) = (Context::Panes, Needs::Journal);
const REPLAY: (Context, Needs) = (Context::Replay, Needs::Journal);
const CONTROL: (Context, Needs) = (Context::Anywhere, Needs::Control);
const LOAD: (Context, Needs) = (Context::Panes, Needs::Load);
const EXPERIMENTS: (Context, Needs) = (Context::Experiments, Needs::Control);
const RUNS: (Context, Needs) = (Context::Runs, Needs::Nothing);
const TUNING: (Context, Needs) = (Context::Tuning, Needs::Control);

/// All keys, in the order of the help.
pub(crate) const BINDINGS: &[Binding] = &[
    bind("quit", &["q", "ctrl-c"], Intent::Quit, ANYWHERE, "quit"),
    bind("help", &["?", "f1"], Intent::Help, ANYWHERE, "show or leave this help"),
    bind("palette", &[":", "ctrl-p"], Intent::Palette, ANYWHERE, "find a command, a setting or a client"),
    bind("back", &["esc"], Intent::Back, ANYWHERE, "leave what is over the panes; let go; go on"),
    bind("freeze", &["space"], Intent::Freeze, PANES, "freeze the view; reading goes on"),
    bind("back-in-time", &["left"], Intent::Seek(SeekTarget::Columns(-1)), PANES, "back in time by a column"),
    bind(
        "forward-in-time",
        &["right"],
        Intent::Seek(SeekTarget::Columns(1)),
        PANES,
        "forward in time by a column",
    ),
    bind(
        "far-back-in-time",
        &["<"],
        Intent::Seek(SeekTarget::Columns(-FAR)),
        PANES,
        "back in time by ten columns",
    ),
    bind(
        "far-forward-in-time",
        &[">"],
        Intent::Seek(SeekTarget::Columns(FAR)),
        PANES,
        "forward in time by ten columns",
    ),
    bind(
        "previous-mark",
        &["shift-n"],
        Intent::Seek(SeekTarget::PreviousMark),
        PANES,
        "to the mark or change before",
    ),
    bind("next-mark", &["n"], Intent::Seek(SeekTarget::NextMark), PANES, "to the mark or change after"),
    bind("worst", &["w"], Intent::Seek(SeekTarget::Worst), PANES, "to the worst latency that is kept"),
    bind(
        "interval-back",
        &[","],
        Intent::Seek(SeekTarget::PreviousInterval),
        PANES,
        "back in time by a record's interval",
    ),
    bind(
        "interval-forward",
        &["."],
        Intent::Seek(SeekTarget::NextInterval),
        PANES,
        "forward in time by a record's interval",
    ),
    bind("beginning", &["0"], Intent::Seek(SeekTarget::Beginning), PANES, "to the beginning of the run"),
    bind("end", &["$"], Intent::Seek(SeekTarget::End), PANES, "to the end, or to the present"),
    bind("go-to", &["@"], Intent::GoTo, PANES, "to a time: 13:05, 5m (into the run), -10m, mark:2"),
    bind(
        "play",
        &["p"],
        Intent::Play(PlayControl::Toggle),
        JOURNAL,
        "play from here, or pause; Space too while it plays",
    ),
    bind("play-slower", &["["], Intent::Play(PlayControl::Slower), REPLAY, "half the speed, down to 1/4"),
    bind("play-faster", &["]"], Intent::Play(PlayControl::Faster), REPLAY, "twice the speed, up to 64"),
    bind("play-normal", &["backspace"], Intent::Play(PlayControl::OwnPace), REPLAY, "at its own pace"),
    bind("zoom-out", &["z"], Intent::ZoomOut, PANES, "more time in a column"),
    bind("zoom-in", &["shift-z"], Intent::ZoomIn, PANES, "less time in a column"),
    bind("class", &["c"], Intent::Subject, PANES, "another class of latencies over time"),
    bind("course", &["v"], Intent::Turn, PANES, "heat map or percentiles, where one fits"),
    bind("shorter-window", &["-"], Intent::Window(Direction::Down), PANES, "shorter window"),
    bind(
        "longer-window",
        &["+", "="],
        Intent::Window(Direction::Up),
        PANES,
        "longer window, up to the whole run",
    ),
    bind("sort", &["s"], Intent::SortNext, CLIENTS, "sort the clients by the next column"),
    bind("reverse", &["shift-s"], Intent::SortReverse, CLIENTS, "reverse the order of the clients"),
    bind("filter", &["/"], Intent::Filter, CLIENTS, "show only clients whose address holds a text"),
    bind("open", &["enter"], Intent::Open, CLIENTS, "all about the selected client"),
    bind("up", &["up", "k"], Intent::Scroll(Move::Up), ANYWHERE, "previous client or line"),
    bind("down", &["down", "j"], Intent::Scroll(Move::Down), ANYWHERE, "next client or line"),
    bind("page-up", &["pageup"], Intent::Scroll(Move::PageUp), ANYWHERE, "a page up"),
    bind("page-down", &["pagedown"], Intent::Scroll(Move::PageDown), ANYWHERE, "a page down"),
    bind("first", &["home", "g"], Intent::Scroll(Move::First), ANYWHERE, "first client or line"),
    bind("last", &["end", "shift-g"], Intent::Scroll(Move::Last), ANYWHERE, "last client or line"),
    bind("copy", &["y"], Intent::Copy, ANYWHERE, "copy the selected client, or the screen as text"),
    bind("export", &["e"], Intent::Export, PANES, "write the view to new files, text and JSON"),
    bind("log", &["shift-l"], Intent::Log, PANES, "more of the log, or less"),
    bind("next-run", &["h"], Intent::NextRun, PANES, "the next run or host, of those that are watched"),
    bind("runs", &["shift-h"], Intent::Runs, ANYWHERE, "runs and hosts that are watched, or leave them"),
    bind("tune", &["t"], Intent::Tune, ANYWHERE, "settings of proxy and load, or leave them"),
    bind("experiments", &["a"], Intent::Experiments, ANYWHERE, "A/B: experiments, or leave them"),
    bind(
        "load",
        &["l"],
        Intent::Adjust(QuickControl::Running, Direction::Up),
        LOAD,
        "start or stop the load",
    ),
    bind(
        "slower",
        &["["],
        Intent::Adjust(QuickControl::Rate, Direction::Down),
        LOAD,
        "10 % fewer requests a second",
    ),
    bind(
        "faster",
        &["]"],
        Intent::Adjust(QuickControl::Rate, Direction::Up),
        LOAD,
        "10 % more requests a second",
    ),
    bind(
        "resume-less",
        &["{"],
        Intent::Adjust(QuickControl::Resume, Direction::Down),
        LOAD,
        "resume 10 points less",
    ),
    bind(
        "resume-more",
        &["}"],
        Intent::Adjust(QuickControl::Resume, Direction::Up),
        LOAD,
        "resume 10 points more",
    ),
    bind("mark", &["m"], Intent::Mark, CONTROL, "leave a numbered mark in the time line"),
    bind("record", &["shift-r"], Intent::Record, CONTROL, "record from now on, or end the recording"),
    bind(
        "undo",
        &["u"],
        Intent::Setting(SettingEdit::Undo),
        CONTROL,
        "take the last change of a setting back",
    ),
    bind(
        "step-down",
        &["left"],
        Intent::Setting(SettingEdit::Step(Direction::Down)),
        TUNING,
        "stage a smaller value, or the other one",
    ),
    bind(
        "step-up",
        &["right"],
        Intent::Setting(SettingEdit::Step(Direction::Up)),
        TUNING,
        "stage a larger value, or the other one",
    ),
    bind("edit", &["e"], Intent::Setting(SettingEdit::Type), TUNING, "type a value"),
    bind("apply", &["enter"], Intent::Setting(SettingEdit::Apply), TUNING, "apply all staged values"),
    bind(
        "unstage",
        &["backspace", "delete"],
        Intent::Setting(SettingEdit::Unstage),
        TUNING,
        "drop the staged value",
    ),
    bind(
        "compare",
        &["e", "enter"],
        Intent::Compare,
        EXPERIMENTS,
        "type the plan of an experiment and begin it",
    ),
    bind("end-experiment", &["x"], Intent::EndExperiment, EXPERIMENTS, "end the experiment before its time"),
    bind("show-run", &["enter"], Intent::RunOpen, RUNS, "show the selected run"),
    bind("filter-hosts", &["/"], Intent::RunFilter, RUNS, "show only runs of hosts whose name holds a text"),
    bind("redraw", &["ctrl-l"], Intent::Redraw, ANYWHERE, "draw the whole screen anew"),
    bind("suspend", &["ctrl-z"], Intent::Suspend, ANYWHERE, "back to the shell; fg returns"),
];

/// What the footer says of one or more intents.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) intents: &'static [Intent],
    pub(crate) word: &'static str,
    pub(crate) needs: Needs,
}

const fn hint(intents: &'static [Intent], word: &'static str, needs: Needs) -> Hint {
    Hint { intents, word, needs }
}

/// What the footer names, the most wanted first; the keys stand in [`BINDINGS`].
pub(crate) const HINTS: &[Hint] = &[
    hint(&[Intent::Quit], "quit", Needs::Nothing),
    hint(&[Intent::Help], "help", Needs::Nothing),
    hint(&[Intent::Freeze], "freeze", Needs::Nothing),
    hint(&[Intent::Tune], "tune", Needs::Control),
    hint(
        &[
            Intent::Adjust(QuickControl::Rate, Direction::Down),
            Intent::Adjust(QuickControl::Rate, Direction::Up),
        ],
        "rate",
        Needs::Load,
    ),
    hint(&[Intent::Adjust(QuickControl::Running, Direction::Up)], "load", Needs::Load),
    hint(&[Intent::Mark], "mark", Needs::Control),
    hint(&[Intent::Experiments], "A/B", Needs::Control),
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", Needs::Nothing),
    hint(&[Intent::SortNext], "sort", Needs::Clients),
    hint(&[Intent::Filter], "filter", Needs::Clients),
    hint(&[Intent::Palette], "find", Needs::Nothing),
    hint(
        &[
            Intent::Adjust(QuickControl::Resume, Direction::Down),
            Intent::Adjust(QuickControl::Resume, Direction::Up),
        ],
        "resume",
        Needs::Load,
    ),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        Needs::Nothing,
    ),
    hint(&[Intent::Play(PlayControl::Toggle)], "play", Needs::Journal),
];

/// What stands below what is played.
pub(crate) const REPLAY_HINTS: &[Hint] = &[
    hint(&[Intent::Quit], "quit", Needs::Nothing),
    hint(&[Intent::Help], "help", Needs::Nothing),
    hint(&[Intent::Play(PlayControl::Toggle)], "play or pause", Needs::Nothing),
    hint(&[Intent::Play(PlayControl::Slower), Intent::Play(PlayControl::Faster)], "speed", Needs::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        Needs::Nothing,
    ),
    hint(
        &[Intent::Seek(SeekTarget::PreviousMark), Intent::Seek(SeekTarget::NextMark)],
        "marks",
        Needs::Nothing,
    ),
    hint(&[Intent::Back], "leave", Needs::Nothing),
    hint(&[Intent::GoTo], "go to", Needs::Nothing),
    hint(&[Intent::Seek(SeekTarget::Beginning), Intent::Seek(SeekTarget::End)], "ends", Needs::Nothing),
    hint(&[Intent::Palette], "find", Needs::Nothing),
];

/// What stands below the experiments.
pub(crate) const EXPERIMENT_HINTS: &[Hint] = &[
    hint(&[Intent::Compare], "begin", Needs::Control),
    hint(&[Intent::EndExperiment], "end", Needs::Control),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// What stands below the runs.
pub(crate) const RUN_HINTS: &[Hint] = &[
    hint(&[Intent::RunOpen], "show", Needs::Nothing),
    hint(&[Intent::RunFilter], "filter by host", Needs::Nothing),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// What stands below the list of settings.
pub(crate) const TUNING_HINTS: &[Hint] = &[
    hint(
        &[
            Intent::Setting(SettingEdit::Step(Direction::Down)),
            Intent::Setting(SettingEdit::Step(Direction::Up)),
        ],
        "step",
        Needs::Control,
    ),
    hint(&[Intent::Setting(SettingEdit::Type)], "type", Needs::Control),
    hint(&[Intent::Setting(SettingEdit::Apply)], "apply", Needs::Control),
    hint(&[Intent::Setting(SettingEdit::Unstage)], "drop", Needs::Control),
    hint(&[Intent::Setting(SettingEdit::Undo)], "undo", Needs::Control),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// Keys cannot be configured so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// Nothing is called so.
    #[error("there is no action {0}; --print-config lists them")]
    Action(String),
    /// No key is called so.
    #[error("{action}: {key} is no key, such as q, ctrl-c, shift-s, f1, left or space")]
    Key {
        /// The action.
        action: String,
        /// What was to do it.
        key: String,
    },
    /// Two actions want the same key where both mean something.
    #[error("{key} is bound to both {first} and {second}")]
    Twice {
        /// The key.
        key: String,
        /// One action.
        first: String,
        /// The other.
        second: String,
    },
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
    /// When there is no such action or key, or a key is left with two meanings.
    pub fn with<'a>(changes: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        for (action, keys) in changes {
            let at = BINDINGS.iter().position(|binding| binding.name == action);
            let at = at.ok_or_else(|| KeymapError::Action(action.to_owned()))?;
            let key = |key: &String| {
                parse(key).ok_or_else(|| KeymapError::Key { action: action.to_owned(), key: key.clone() })
            };
            map.keys[at] = keys.iter().map(key).collect::<Result<_, _>>()?;
        }
        map.check()?;
        Ok(map)
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
    pub(crate) fn intent(&self, event: &KeyEvent, here: Context) -> Option<Intent> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let pressed = normal((*event).into());
        let bound = |(binding, keys): &(&Binding, &Vec<KeyCombination>)| {
            binding.context.reaches(here) && keys.contains(&pressed)
        };
        let all = || BINDINGS.iter().zip(&self.keys).filter(bound);
        let here_only = all().find(|(binding, _)| binding.context == here);
        here_only.or_else(|| all().next()).map(|(binding, _)| binding.intent)
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

/// Only letters are told apart by whether they were shifted; all else is what it is.
fn normal(key: KeyCombination) -> KeyCombination {
    let mut key = key.normalized();
    if matches!(key.codes, OneToThree::One(KeyCode::Char(c)) if !c.is_ascii_alphabetic()) {
        key.modifiers.remove(KeyModifiers::SHIFT);
    }
    key
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

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        assert_eq!(Keymap::default().check(), Ok(()));
        let taken = Keymap::with([("mark", &["q".to_owned()][..])]).unwrap_err();
        assert_eq!(taken.to_string(), "q is bound to both quit and mark");
    }

    #[test]
    fn everything_a_person_can_want_has_one_line_with_a_key_and_a_meaning() {
        for (i, binding) in BINDINGS.iter().enumerate() {
            assert!(binding.keys.iter().all(|key| parse(key).is_some()), "{:?}", binding.keys);
            assert!(!binding.keys.is_empty() && !binding.meaning.is_empty());
            let is_other = |other: &Binding| other.intent != binding.intent && other.name != binding.name;
            assert!(BINDINGS[i + 1..].iter().all(is_other));
        }
    }

    #[test]
    fn the_page_on_the_dashboard_names_every_key() {
        let page = include_str!("../../../../docs/dashboard.md");
        let (_, table) = page.split_once("## Keys").unwrap();
        for key in BINDINGS.iter().flat_map(|binding| Keymap::default().names(binding.intent)) {
            assert!(table.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_keys() {
        let printed: Vec<(&str, Vec<String>)> = Keymap::default().entries().collect();
        let read = Keymap::with(printed.iter().map(|(name, keys)| (*name, &keys[..]))).unwrap();
        assert_eq!(read.keys, Keymap::default().keys);
    }

    #[test]
    fn keys_can_be_given_other_meanings() {
        let map =
            Keymap::with([("mark", &["f5".to_owned()][..]), ("quit", &["shift-q".to_owned()])]).unwrap();
        let press = |code, modifiers| map.intent(&KeyEvent::new(code, modifiers), Context::Panes);
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
        let press = |c, modifiers| map.intent(&KeyEvent::new(KeyCode::Char(c), modifiers), Context::Panes);
        assert_eq!(press('S', KeyModifiers::SHIFT), Some(Intent::SortReverse));
        assert_eq!(press('s', KeyModifiers::NONE), Some(Intent::SortNext));
        assert_eq!(press('c', KeyModifiers::CONTROL), Some(Intent::Quit));
        assert_eq!(press('?', KeyModifiers::SHIFT), Some(Intent::Help));
        assert_eq!(press('x', KeyModifiers::NONE), None);
        assert_eq!(press('q', KeyModifiers::ALT), None);
    }

    #[test]
    fn the_same_key_can_mean_something_else_elsewhere() {
        let map = Keymap::default();
        let left = KeyEvent::new(KeyCode::Left, KeyModifiers::NONE);
        assert_eq!(map.intent(&left, Context::Panes), Some(Intent::Seek(SeekTarget::Columns(-1))));
        assert_eq!(
            map.intent(&left, Context::Tuning),
            Some(Intent::Setting(SettingEdit::Step(Direction::Down)))
        );
    }
}
