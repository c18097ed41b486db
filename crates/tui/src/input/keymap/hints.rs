//! The keys that the footer names, by screen.

use crate::input::intent::{
    Direction, Intent, PaneAction, PlayControl, Preset, QuickControl, SeekTarget, SettingEdit,
};
use crate::input::requirement::KeyRequirement;
use crate::panes::PaneId;
use crate::table::{ChoiceEdit, ListMove};

/// A hint in the footer for one or more intents.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) intents: &'static [Intent],
    pub(crate) word: &'static str,
    pub(crate) needs: KeyRequirement,
}

const fn hint(intents: &'static [Intent], word: &'static str, needs: KeyRequirement) -> Hint {
    Hint { intents, word, needs }
}

/// The hints of the footer, the most useful first; their keys are in [`BINDINGS`](super::bindings::BINDINGS).
pub(crate) const HINTS: &[Hint] = &[
    hint(&[Intent::Help], "help", KeyRequirement::Nothing),
    hint(&[Intent::Quit], "quit", KeyRequirement::Nothing),
    hint(&[Intent::Pane(PaneAction::Preset(Preset::Overview))], "all panes", KeyRequirement::HiddenPanes),
    hint(&[Intent::Open, Intent::Back], "service, all", KeyRequirement::Services),
    hint(&[Intent::Freeze], "freeze", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Seek(SeekTarget::Worst)], "worst", KeyRequirement::Nothing),
    hint(&[Intent::Tune], "tune", KeyRequirement::Control),
    hint(&[Intent::Experiments], "A/B", KeyRequirement::Control),
    hint(&[Intent::NextRun, Intent::Runs], "hosts", KeyRequirement::Hosts),
    hint(&[Intent::Filter], "filter", KeyRequirement::Clients),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Clients),
    hint(&[Intent::Palette], "find", KeyRequirement::Nothing),
    hint(&[Intent::Requests], "requests", KeyRequirement::Http),
    hint(&[Intent::Mark], "mark", KeyRequirement::Control),
    hint(&[Intent::Setting(SettingEdit::Undo)], "undo", KeyRequirement::Control),
    hint(
        &[
            Intent::Adjust(QuickControl::Rate, Direction::Down),
            Intent::Adjust(QuickControl::Rate, Direction::Up),
        ],
        "rate",
        KeyRequirement::Load,
    ),
    hint(&[Intent::Adjust(QuickControl::Running, Direction::Up)], "load", KeyRequirement::Load),
    hint(
        &[
            Intent::Adjust(QuickControl::Resume, Direction::Down),
            Intent::Adjust(QuickControl::Resume, Direction::Up),
        ],
        "resume",
        KeyRequirement::Load,
    ),
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", KeyRequirement::Nothing),
    hint(&[Intent::Play(PlayControl::Toggle)], "play", KeyRequirement::Journal),
];

/// The hints while the past is shown.
pub(crate) const FROZEN_HINTS: &[Hint] = &[
    hint(&[Intent::Help], "help", KeyRequirement::Nothing),
    hint(&[Intent::Quit], "quit", KeyRequirement::Nothing),
    hint(&[Intent::Freeze], "live", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Seek(SeekTarget::Worst)], "worst", KeyRequirement::Nothing),
    hint(&[Intent::Seek(SeekTarget::Rise)], "rise", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::PreviousMark), Intent::Seek(SeekTarget::NextMark)],
        "marks",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::GoTo], "go to", KeyRequirement::Nothing),
    hint(&[Intent::Play(PlayControl::Toggle)], "play", KeyRequirement::Journal),
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", KeyRequirement::Nothing),
    hint(&[Intent::Copy], "copy", KeyRequirement::Nothing),
    hint(&[Intent::Export], "export", KeyRequirement::Nothing),
];

pub(crate) const REPLAY_HINTS: &[Hint] = &[
    hint(&[Intent::Quit], "quit", KeyRequirement::Nothing),
    hint(&[Intent::Help], "help", KeyRequirement::Nothing),
    hint(&[Intent::Play(PlayControl::Toggle)], "play or pause", KeyRequirement::Nothing),
    hint(
        &[Intent::Play(PlayControl::Slower), Intent::Play(PlayControl::Faster)],
        "speed",
        KeyRequirement::Nothing,
    ),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        KeyRequirement::Nothing,
    ),
    hint(
        &[Intent::Seek(SeekTarget::PreviousMark), Intent::Seek(SeekTarget::NextMark)],
        "marks",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
    hint(&[Intent::GoTo], "go to", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Beginning), Intent::Seek(SeekTarget::End)],
        "ends",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Palette], "find", KeyRequirement::Nothing),
];

pub(crate) const EXPERIMENT_HINTS: &[Hint] = &[
    hint(&[Intent::Compare], "begin", KeyRequirement::Control),
    hint(&[Intent::EndExperiment], "end", KeyRequirement::Control),
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
];

pub(crate) const RUN_HINTS: &[Hint] = &[
    hint(&[Intent::RunOpen], "show", KeyRequirement::Nothing),
    hint(&[Intent::RunFilter], "filter by host", KeyRequirement::Nothing),
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
];

/// The hints of the settings while values are staged, before the others.
pub(crate) const STAGED_HINTS: &[Hint] = &[
    hint(&[Intent::Setting(SettingEdit::Apply)], "apply", KeyRequirement::Control),
    hint(&[Intent::Setting(SettingEdit::Unstage)], "drop", KeyRequirement::Control),
    hint(&[Intent::Back], "drop all", KeyRequirement::Nothing),
];

pub(crate) const TUNING_HINTS: &[Hint] = &[
    hint(
        &[
            Intent::Setting(SettingEdit::Step(Direction::Down)),
            Intent::Setting(SettingEdit::Step(Direction::Up)),
        ],
        "step",
        KeyRequirement::Control,
    ),
    hint(&[Intent::Setting(SettingEdit::Type)], "type", KeyRequirement::Control),
    hint(&[Intent::Setting(SettingEdit::Apply)], "apply", KeyRequirement::Control),
    hint(&[Intent::Setting(SettingEdit::Undo)], "undo", KeyRequirement::Control),
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
    hint(&[Intent::Pane(PaneAction::Preset(Preset::Overview))], "all panes", KeyRequirement::Nothing),
    hint(&[Intent::Setting(SettingEdit::Unstage)], "drop", KeyRequirement::Control),
    hint(&[Intent::WriteConfiguration], "write file", KeyRequirement::Process),
];

pub(crate) const CLIENT_HINTS: &[Hint] = &[
    hint(&[Intent::SortNext], "sort", KeyRequirement::Clients),
    hint(&[Intent::Filter], "filter", KeyRequirement::Clients),
    hint(&[Intent::Open], "details", KeyRequirement::Clients),
];

pub(crate) const ROUTE_HINTS: &[Hint] = &[
    hint(&[Intent::SortNext], "sort", KeyRequirement::Http),
    hint(&[Intent::Filter], "filter", KeyRequirement::Http),
    hint(&[Intent::Open], "details", KeyRequirement::Http),
    hint(&[Intent::Requests], "requests", KeyRequirement::Http),
];

pub(crate) const USAGE_HINTS: &[Hint] = &[
    hint(&[Intent::NextDimension], "next dimension", KeyRequirement::Clients),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Clients),
    hint(&[Intent::Filter], "filter", KeyRequirement::Clients),
    hint(&[Intent::Open], "details", KeyRequirement::Clients),
];

pub(crate) const WORKER_HINTS: &[Hint] = &[
    hint(&[Intent::SortNext], "sort", KeyRequirement::Nothing),
    hint(&[Intent::Filter], "filter", KeyRequirement::Nothing),
];

pub(crate) const HOST_HINTS: &[Hint] = &[
    hint(&[Intent::Open], "show host", KeyRequirement::Hosts),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Hosts),
    hint(&[Intent::Filter], "filter", KeyRequirement::Hosts),
    hint(&[Intent::NextRun, Intent::Runs], "next, list", KeyRequirement::Hosts),
    hint(
        &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Hosts)))],
        "only hosts",
        KeyRequirement::Hosts,
    ),
];

pub(crate) const SERVICE_HINTS: &[Hint] = &[
    hint(&[Intent::Open], "show service", KeyRequirement::Services),
    hint(&[Intent::Back], "all services", KeyRequirement::Services),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Services),
    hint(&[Intent::Filter], "filter", KeyRequirement::Services),
    hint(
        &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Services)))],
        "only services",
        KeyRequirement::Services,
    ),
];

pub(crate) const UPSTREAM_HINTS: &[Hint] = &[
    hint(&[Intent::DrainUpstream], "drain, return", KeyRequirement::Control),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Upstreams),
    hint(&[Intent::Filter], "filter", KeyRequirement::Upstreams),
    hint(
        &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Upstreams)))],
        "only upstreams",
        KeyRequirement::Upstreams,
    ),
];

pub(crate) const CERTIFICATE_HINTS: &[Hint] = &[
    hint(&[Intent::Open], "details", KeyRequirement::Certificates),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Certificates),
    hint(&[Intent::Filter], "filter", KeyRequirement::Certificates),
    hint(
        &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Certificates)))],
        "only certificates",
        KeyRequirement::Certificates,
    ),
];

pub(crate) const REQUEST_HINTS: &[Hint] = &[
    hint(&[Intent::Requests], "slowest, failed, close", KeyRequirement::Http),
    hint(&[Intent::SortNext], "sort", KeyRequirement::Http),
    hint(&[Intent::Filter], "filter", KeyRequirement::Http),
    hint(&[Intent::Freeze], "freeze", KeyRequirement::Nothing),
    hint(&[Intent::Window(Direction::Down), Intent::Window(Direction::Up)], "win", KeyRequirement::Nothing),
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
];

/// The hints of every screen over or beside the panes, after its own.
pub(crate) const SCREEN_HINTS: &[Hint] = &[
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
    hint(&[Intent::Help], "help", KeyRequirement::Nothing),
    hint(&[Intent::Quit], "quit", KeyRequirement::Nothing),
];

/// What the footer names for the findings, and below their details.
pub(crate) const FINDING_HINTS: &[Hint] = &[
    hint(&[Intent::Findings], "figures, close", KeyRequirement::Nothing),
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "select", KeyRequirement::Nothing),
    hint(&[Intent::Tune], "tune", KeyRequirement::Control),
];

/// The hints below the details of a client, a route or a value of usage.
pub(crate) const DETAIL_HINTS: &[Hint] = &[
    hint(&[Intent::Back], "leave", KeyRequirement::Nothing),
    hint(
        &[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)],
        "previous, next",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Copy], "copy", KeyRequirement::Nothing),
    hint(&[Intent::Freeze], "freeze", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        KeyRequirement::Nothing,
    ),
];

pub(crate) const HELP_HINTS: &[Hint] = &[
    hint(&[Intent::Back, Intent::Help], "leave", KeyRequirement::Nothing),
    hint(&[Intent::Filter], "search", KeyRequirement::Nothing),
    hint(&[Intent::Scroll(ListMove::Up), Intent::Scroll(ListMove::Down)], "scroll", KeyRequirement::Nothing),
    hint(
        &[Intent::Scroll(ListMove::PageUp), Intent::Scroll(ListMove::PageDown)],
        "page",
        KeyRequirement::Nothing,
    ),
    hint(&[Intent::Palette], "find a command", KeyRequirement::Nothing),
];

pub(crate) const TIMELINE_HINTS: &[Hint] = &[
    hint(&[Intent::NextClass], "figure", KeyRequirement::Nothing),
    hint(&[Intent::ZoomIn, Intent::ZoomOut], "zoom", KeyRequirement::Nothing),
    hint(
        &[Intent::Seek(SeekTarget::Columns(-1)), Intent::Seek(SeekTarget::Columns(1))],
        "time",
        KeyRequirement::Nothing,
    ),
];

/// What the footer names while a pane has the focus.
pub(crate) const PANE_HINTS: &[Hint] = &[
    hint(&[Intent::Pane(PaneAction::FocusNext)], "next pane", KeyRequirement::Nothing),
    hint(&[Intent::Pane(PaneAction::Maximise)], "maximise", KeyRequirement::Nothing),
    hint(
        &[Intent::Pane(PaneAction::Taller), Intent::Pane(PaneAction::Shorter)],
        "size",
        KeyRequirement::Nothing,
    ),
];

/// The hints below a list of columns or panes.
pub(crate) const CHOICE_HINTS: &[Hint] = &[
    hint(&[Intent::EditChoice(ChoiceEdit::Toggle)], "show or hide", KeyRequirement::Nothing),
    hint(&[Intent::EditChoice(ChoiceEdit::Reset)], "usual", KeyRequirement::Nothing),
];

/// The hints below a list of columns, besides.
pub(crate) const COLUMN_HINTS: &[Hint] = &[hint(
    &[Intent::EditChoice(ChoiceEdit::Earlier), Intent::EditChoice(ChoiceEdit::Later)],
    "move",
    KeyRequirement::Nothing,
)];
