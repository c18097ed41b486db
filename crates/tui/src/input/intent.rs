//! What a person can ask for, independent of key and click.

use crate::panes::model::PaneId;
use crate::table::{ChoiceEdit, ListMove};

/// A request of the user, independent of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Quit,
    Help,
    Palette,
    Back,
    Freeze,
    Seek(SeekTarget),
    GoTo,
    Play(PlayControl),
    ZoomOut,
    ZoomIn,
    ZoomToFit,
    NextClass,
    ToggleTimeline,
    Window(Direction),
    SortNext,
    SortReverse,
    Filter,
    Open,
    Requests,
    Findings,
    NextDimension,
    Pane(PaneAction),
    Choose(Choice),
    EditChoice(ChoiceEdit),
    Copy,
    Export,
    NextRun,
    Runs,
    RunFilter,
    RunOpen,
    Tune,
    Experiments,
    Compare,
    EndExperiment,
    Setting(SettingEdit),
    Scroll(ListMove),
    Adjust(QuickControl, Direction),
    Mark,
    Record,
    WriteConfiguration,
    Calibrate,
    /// Drains the selected upstream, or returns it to service.
    DrainUpstream,
    Redraw,
    Suspend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeekTarget {
    /// This many columns of the timeline; backwards if negative.
    Columns(i64),
    PreviousMark,
    NextMark,
    /// The interval with the highest latency of the timeline's class.
    Worst,
    /// The last interval from which on p99 of the timeline's class is higher than before.
    Rise,
    /// The interval after, or before.
    NextInterval,
    PreviousInterval,
    /// The run's first record.
    Beginning,
    /// The present, or the run's last record.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaneAction {
    FocusNext,
    FocusPrevious,
    /// Shows only the focused pane, or all again.
    Maximise,
    /// Shows only the log, or all again.
    MaximiseLog,
    Taller,
    Shorter,
    Preset(Preset),
}

/// A selection of panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    Overview,
    Latency,
    Tuning,
    /// One pane, above findings and log.
    Only(PaneId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Columns of a list, and their order.
    Columns(List),
    Panes,
}

/// A list that keys act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Clients,
    Routes,
    Requests,
    Usage,
    Hosts,
    Services,
    Upstreams,
    Certificates,
    Workers,
    Runs,
}

/// A setting of the load that has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuickControl {
    /// Requests a second.
    Rate,
    /// Share of resuming connections, in percent.
    Resume,
    /// Whether requests become due.
    Running,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    Up,
}

/// An edit of the selected setting, or of all staged ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingEdit {
    /// Stages the next smaller or larger value.
    Step(Direction),
    /// Opens the prompt for a value.
    Type,
    /// Opens the prompt for a value that begins with this digit.
    TypeDigit(char),
    Apply,
    Unstage,
    Undo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlayControl {
    Toggle,
    Slower,
    Faster,
    Normal,
}
