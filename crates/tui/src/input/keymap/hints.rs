//! The keys that the footer names, by screen.

use super::Needs;
use crate::state::{
    ChoiceEdit, Direction, Intent, ListMove, PaneAction, PlayControl, Preset, QuickControl, SeekTarget,
    SettingEdit,
};

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

/// The hints of the footer, the most useful first; their keys are in [`BINDINGS`](super::BINDINGS).
pub(crate) const HINTS: &[Hint] = &[
    hint(&[Intent::Quit], "quit", Needs::Nothing),
    hint(&[Intent::Help], "help", Needs::Nothing),
    hint(&[Intent::Freeze], "freeze", Needs::Nothing),
    hint(&[Intent::Tune], "tune", Needs::Control),
    hint(&[Intent::Setting(SettingEdit::Undo)], "undo", Needs::Control),
    hint(&[Intent::Experiments], "A/B", Needs::Control),
    hint(&[Intent::SortNext], "sort", Needs::Clients),
    hint(&[Intent::Filter], "filter", Needs::Clients),
    hint(&[Intent::Requests], "requests", Needs::Http),
    hint(&[Intent::Palette], "find", Needs::Nothing),
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
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", Needs::Nothing),
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

/// The hints below a replay.
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

/// The hints below the experiments.
pub(crate) const EXPERIMENT_HINTS: &[Hint] = &[
    hint(&[Intent::Compare], "begin", Needs::Control),
    hint(&[Intent::EndExperiment], "end", Needs::Control),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// The hints below the runs.
pub(crate) const RUN_HINTS: &[Hint] = &[
    hint(&[Intent::RunOpen], "show", Needs::Nothing),
    hint(&[Intent::RunFilter], "filter by host", Needs::Nothing),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// The hints below the list of settings.
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
    hint(&[Intent::Setting(SettingEdit::Undo)], "undo", Needs::Control),
    hint(&[Intent::Back], "leave", Needs::Nothing),
    hint(&[Intent::Pane(PaneAction::Preset(Preset::Overview))], "all panes", Needs::Nothing),
    hint(&[Intent::Setting(SettingEdit::Unstage)], "drop", Needs::Control),
    hint(&[Intent::WriteConfiguration], "write file", Needs::Process),
];

/// What the footer names for the clients.
pub(crate) const CLIENT_HINTS: &[Hint] = &[
    hint(&[Intent::SortNext], "sort", Needs::Clients),
    hint(&[Intent::Filter], "filter", Needs::Clients),
    hint(&[Intent::Open], "details", Needs::Clients),
];

/// What the footer names for the routes.
pub(crate) const ROUTE_HINTS: &[Hint] = &[
    hint(&[Intent::SortNext], "sort", Needs::Http),
    hint(&[Intent::Filter], "filter", Needs::Http),
    hint(&[Intent::Open], "details", Needs::Http),
    hint(&[Intent::Requests], "requests", Needs::Http),
];

/// What the footer names for usage.
pub(crate) const USAGE_HINTS: &[Hint] = &[
    hint(&[Intent::NextDimension], "next dimension", Needs::Clients),
    hint(&[Intent::SortNext], "sort", Needs::Clients),
    hint(&[Intent::Filter], "filter", Needs::Clients),
    hint(&[Intent::Open], "details", Needs::Clients),
];

/// What the footer names for the hosts.
pub(crate) const HOST_HINTS: &[Hint] = &[
    hint(&[Intent::Open], "show host", Needs::Hosts),
    hint(&[Intent::SortNext], "sort", Needs::Hosts),
    hint(&[Intent::Filter], "filter", Needs::Hosts),
    hint(&[Intent::Pane(PaneAction::Preset(Preset::Hosts))], "only hosts", Needs::Hosts),
];

/// The hints below the list of requests.
pub(crate) const REQUEST_HINTS: &[Hint] = &[
    hint(&[Intent::Requests], "slowest, failed, close", Needs::Http),
    hint(&[Intent::SortNext], "sort", Needs::Http),
    hint(&[Intent::Filter], "filter", Needs::Http),
    hint(&[Intent::Freeze], "freeze", Needs::Nothing),
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", Needs::Nothing),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];

/// What the footer names for the findings, and below their details.
pub(crate) const FINDING_HINTS: &[Hint] = &[
    hint(&[Intent::Findings], "figures, close", Needs::Nothing),
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "select", Needs::Nothing),
    hint(&[Intent::Tune], "tune", Needs::Control),
];

/// What the footer names for the timeline.
pub(crate) const TIMELINE_HINTS: &[Hint] = &[
    hint(&[Intent::NextClass], "figure", Needs::Nothing),
    hint(&[Intent::ZoomIn, Intent::ZoomOut], "zoom", Needs::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        Needs::Nothing,
    ),
];

/// What the footer names while a pane has the focus.
pub(crate) const PANE_HINTS: &[Hint] = &[
    hint(&[Intent::Pane(PaneAction::FocusNext)], "next pane", Needs::Nothing),
    hint(&[Intent::Pane(PaneAction::Maximise)], "maximise", Needs::Nothing),
    hint(&[Intent::Pane(PaneAction::Taller), Intent::Pane(PaneAction::Shorter)], "size", Needs::Nothing),
];

/// The hints below a list of columns or panes.
pub(crate) const CHOICE_HINTS: &[Hint] = &[
    hint(&[Intent::EditChoice(ChoiceEdit::Toggle)], "show or hide", Needs::Nothing),
    hint(
        &[Intent::EditChoice(ChoiceEdit::Earlier), Intent::EditChoice(ChoiceEdit::Later)],
        "move",
        Needs::Nothing,
    ),
    hint(&[Intent::EditChoice(ChoiceEdit::Reset)], "usual", Needs::Nothing),
    hint(&[Intent::Back], "leave", Needs::Nothing),
];
