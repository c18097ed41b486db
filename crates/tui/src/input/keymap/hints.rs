//! The keys that the footer names, by screen.

use crate::input::intent::{
    Direction, Intent, PaneAction, PlayControl, Preset, QuickControl, SeekTarget, SettingEdit,
};
use crate::input::requirement::KeyRequirement;
use crate::table::{ChoiceEdit, ListMove};

/// A hint in the footer for one or more intents.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) intents: &'static [Intent],
    pub(crate) word: &'static str,
    pub(crate) needs: KeyRequirement,
}

/// A hint that needs nothing.
pub(crate) const fn hint(intents: &'static [Intent], word: &'static str) -> Hint {
    hint_if(KeyRequirement::Nothing, intents, word)
}

/// A hint that is shown if a requirement is met.
pub(crate) const fn hint_if(needs: KeyRequirement, intents: &'static [Intent], word: &'static str) -> Hint {
    Hint { intents, word, needs }
}

pub(crate) const HELP: Hint = hint(&[Intent::Help], "help");
pub(crate) const QUIT: Hint = hint(&[Intent::Quit], "quit");
pub(crate) const LEAVE: Hint = hint(&[Intent::Back], "leave");
pub(crate) const FREEZE: Hint = hint(&[Intent::Freeze], "freeze");
pub(crate) const WORST: Hint = hint(&[Intent::Seek(SeekTarget::Worst)], "worst");
pub(crate) const GO_TO: Hint = hint(&[Intent::GoTo], "go to");
pub(crate) const FIND: Hint = hint(&[Intent::Palette], "find");
pub(crate) const COPY: Hint = hint(&[Intent::Copy], "copy");
pub(crate) const TIME: Hint =
    hint(&[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))], "time");
pub(crate) const MARKS: Hint =
    hint(&[Intent::Seek(SeekTarget::PreviousMark), Intent::Seek(SeekTarget::NextMark)], "marks");
pub(crate) const WINDOW: Hint =
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win");

/// The hints of the footer, the most useful first; their keys are in [`BINDINGS`](super::bindings::BINDINGS).
pub(crate) const HINTS: &[Hint] = &[
    HELP,
    QUIT,
    hint_if(KeyRequirement::HiddenPanes, &[Intent::Pane(PaneAction::Preset(Preset::Overview))], "all panes"),
    hint_if(KeyRequirement::Services, &[Intent::Open, Intent::Back], "service, all"),
    FREEZE,
    TIME,
    WORST,
    hint_if(KeyRequirement::Control, &[Intent::Tune], "tune"),
    hint_if(KeyRequirement::Control, &[Intent::Experiments], "A/B"),
    hint_if(KeyRequirement::Hosts, &[Intent::NextRun, Intent::Runs], "hosts"),
    hint_if(KeyRequirement::Clients, &[Intent::Filter], "filter"),
    hint_if(KeyRequirement::Clients, &[Intent::SortNext], "sort"),
    FIND,
    hint_if(KeyRequirement::Http, &[Intent::Requests], "requests"),
    hint_if(KeyRequirement::Control, &[Intent::Mark], "mark"),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Undo)], "undo"),
    hint_if(
        KeyRequirement::Load,
        &[
            Intent::Adjust(QuickControl::Rate, Direction::Down),
            Intent::Adjust(QuickControl::Rate, Direction::Up),
        ],
        "rate",
    ),
    hint_if(KeyRequirement::Load, &[Intent::Adjust(QuickControl::Running, Direction::Up)], "load"),
    hint_if(
        KeyRequirement::Load,
        &[
            Intent::Adjust(QuickControl::Resume, Direction::Down),
            Intent::Adjust(QuickControl::Resume, Direction::Up),
        ],
        "resume",
    ),
    WINDOW,
    hint_if(KeyRequirement::Journal, &[Intent::Play(PlayControl::Toggle)], "play"),
];

/// The hints while the past is shown.
pub(crate) const FROZEN_HINTS: &[Hint] = &[
    HELP,
    QUIT,
    hint(&[Intent::Freeze], "live"),
    TIME,
    WORST,
    hint(&[Intent::Seek(SeekTarget::Rise)], "rise"),
    MARKS,
    GO_TO,
    hint_if(KeyRequirement::Journal, &[Intent::Play(PlayControl::Toggle)], "play"),
    WINDOW,
    COPY,
    hint(&[Intent::Export], "export"),
];

pub(crate) const REPLAY_HINTS: &[Hint] = &[
    QUIT,
    HELP,
    hint(&[Intent::Play(PlayControl::Toggle)], "play or pause"),
    hint(&[Intent::Play(PlayControl::Slower), Intent::Play(PlayControl::Faster)], "speed"),
    TIME,
    MARKS,
    LEAVE,
    GO_TO,
    hint(&[Intent::Seek(SeekTarget::Beginning), Intent::Seek(SeekTarget::End)], "ends"),
    FIND,
];

pub(crate) const EXPERIMENT_HINTS: &[Hint] = &[
    hint_if(KeyRequirement::Control, &[Intent::Compare], "begin"),
    hint_if(KeyRequirement::Control, &[Intent::EndExperiment], "end"),
    LEAVE,
];

pub(crate) const RUN_HINTS: &[Hint] =
    &[hint(&[Intent::RunOpen], "show"), hint(&[Intent::RunFilter], "filter by host"), LEAVE];

/// The hints of the settings while values are staged, before the others.
pub(crate) const STAGED_HINTS: &[Hint] = &[
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Apply)], "apply"),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Unstage)], "drop"),
    hint(&[Intent::Back], "drop all"),
];

pub(crate) const TUNING_HINTS: &[Hint] = &[
    hint_if(
        KeyRequirement::Control,
        &[
            Intent::Setting(SettingEdit::Step(Direction::Down)),
            Intent::Setting(SettingEdit::Step(Direction::Up)),
        ],
        "step",
    ),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Type)], "type"),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Apply)], "apply"),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Undo)], "undo"),
    LEAVE,
    hint(&[Intent::Pane(PaneAction::Preset(Preset::Overview))], "all panes"),
    hint_if(KeyRequirement::Control, &[Intent::Setting(SettingEdit::Unstage)], "drop"),
    hint_if(KeyRequirement::Process, &[Intent::WriteConfiguration], "write file"),
];

pub(crate) const REQUEST_HINTS: &[Hint] = &[
    hint_if(KeyRequirement::Http, &[Intent::Requests], "slowest, failed, close"),
    hint_if(KeyRequirement::Http, &[Intent::SortNext], "sort"),
    hint_if(KeyRequirement::Http, &[Intent::Filter], "filter"),
    FREEZE,
    WINDOW,
    LEAVE,
];

/// The hints of every screen over or beside the panes, after its own.
pub(crate) const SCREEN_HINTS: &[Hint] = &[LEAVE, HELP, QUIT];

/// What the footer names for the findings, and below their details.
pub(crate) const FINDING_HINTS: &[Hint] = &[
    hint(&[Intent::Findings], "figures, close"),
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "select"),
    hint_if(KeyRequirement::Control, &[Intent::Tune], "tune"),
];

/// The hints below the details of a client, a route or a value of usage.
pub(crate) const DETAIL_HINTS: &[Hint] = &[
    LEAVE,
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "previous, next"),
    COPY,
    FREEZE,
    TIME,
];

pub(crate) const HELP_HINTS: &[Hint] = &[
    hint(&[Intent::Back, Intent::Help], "leave"),
    hint(&[Intent::Filter], "search"),
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "scroll"),
    hint(&[Intent::Scroll(ListMove::PageUp), Intent::Scroll(ListMove::PageDown)], "page"),
    hint(&[Intent::Palette], "find a command"),
];

/// What the footer names while a pane has the focus.
pub(crate) const PANE_HINTS: &[Hint] = &[
    hint(&[Intent::Pane(PaneAction::FocusNext)], "next pane"),
    hint(&[Intent::Pane(PaneAction::Maximise)], "maximise"),
    hint(&[Intent::Pane(PaneAction::Taller), Intent::Pane(PaneAction::Shorter)], "size"),
];

/// The hints below a list of columns or panes.
pub(crate) const CHOICE_HINTS: &[Hint] = &[
    hint(&[Intent::EditChoice(ChoiceEdit::Toggle)], "show or hide"),
    hint(&[Intent::EditChoice(ChoiceEdit::Reset)], "usual"),
];

/// The hints below a list of columns, besides.
pub(crate) const COLUMN_HINTS: &[Hint] =
    &[hint(&[Intent::EditChoice(ChoiceEdit::Earlier), Intent::EditChoice(ChoiceEdit::Later)], "move")];
