//! The table of keys: what each does, where, and what it needs.

use super::KeyContext;
use crate::input::intent::{
    Choice, Direction, Intent, List, PaneAction, PlayControl, Preset, QuickControl, SeekTarget, SettingEdit,
};
use crate::input::requirement::KeyRequirement;
use crate::panes::PaneId;
use crate::table::{ChoiceEdit, ListMove};

/// Columns of a long step through time.
const FAR: i64 = 10;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Its name in the configuration.
    pub(crate) name: &'static str,
    /// Keys that do it unless others are configured, as the configuration writes them; the first one is named first.
    pub(crate) keys: &'static [&'static str],
    pub(crate) intent: Intent,
    /// What it does, for help and palette.
    pub(crate) meaning: &'static str,
    pub(crate) context: KeyContext,
    pub(crate) needs: KeyRequirement,
}

const fn bind(
    name: &'static str,
    keys: &'static [&'static str],
    intent: Intent,
    (context, needs): (KeyContext, KeyRequirement),
    meaning: &'static str,
) -> Binding {
    Binding { name, keys, intent, meaning, context, needs }
}

const fn pane(
    name: &'static str,
    keys: &'static [&'static str],
    action: PaneAction,
    meaning: &'static str,
) -> Binding {
    bind(name, keys, Intent::Pane(action), PANES, meaning)
}

const fn preset(
    name: &'static str,
    keys: &'static [&'static str],
    preset: Preset,
    meaning: &'static str,
) -> Binding {
    let here = (KeyContext::Anywhere, preset.needs());
    bind(name, keys, Intent::Pane(PaneAction::Preset(preset)), here, meaning)
}

const ANYWHERE: (KeyContext, KeyRequirement) = (KeyContext::Anywhere, KeyRequirement::Nothing);
const PANES: (KeyContext, KeyRequirement) = (KeyContext::Panes, KeyRequirement::Nothing);
const CLIENTS: (KeyContext, KeyRequirement) = (KeyContext::Panes, KeyRequirement::Clients);
const HTTP: (KeyContext, KeyRequirement) = (KeyContext::Panes, KeyRequirement::Http);
const JOURNAL: (KeyContext, KeyRequirement) = (KeyContext::Panes, KeyRequirement::Journal);
const REPLAY: (KeyContext, KeyRequirement) = (KeyContext::Replay, KeyRequirement::Journal);
const PROCESS: (KeyContext, KeyRequirement) = (KeyContext::Anywhere, KeyRequirement::Process);
const RECORDER: (KeyContext, KeyRequirement) = (KeyContext::Anywhere, KeyRequirement::Recorder);
const CONTROL: (KeyContext, KeyRequirement) = (KeyContext::Anywhere, KeyRequirement::Control);
const LOAD: (KeyContext, KeyRequirement) = (KeyContext::Panes, KeyRequirement::Load);
const EXPERIMENTS: (KeyContext, KeyRequirement) = (KeyContext::Experiments, KeyRequirement::Control);
const CHOICE: (KeyContext, KeyRequirement) = (KeyContext::Choice, KeyRequirement::Nothing);
const RUNS: (KeyContext, KeyRequirement) = (KeyContext::Runs, KeyRequirement::Nothing);
const TUNING: (KeyContext, KeyRequirement) = (KeyContext::Tuning, KeyRequirement::Control);

/// All keys, in the order of the help.
pub(crate) const BINDINGS: &[Binding] = &[
    bind("quit", &["q", "ctrl-c"], Intent::Quit, ANYWHERE, "quit"),
    bind("help", &["?", "f1"], Intent::Help, ANYWHERE, "show or close this help"),
    bind("palette", &[":", "ctrl-p"], Intent::Palette, ANYWHERE, "find a command, a setting or a client"),
    bind(
        "back",
        &["esc"],
        Intent::Back,
        ANYWHERE,
        "go back: close what is open, deselect, or return to live",
    ),
    bind("freeze", &["space"], Intent::Freeze, PANES, "freeze the view, or return to live; reading goes on"),
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
        "to the previous mark or change",
    ),
    bind("next-mark", &["n"], Intent::Seek(SeekTarget::NextMark), PANES, "to the next mark or change"),
    bind("worst", &["w"], Intent::Seek(SeekTarget::Worst), PANES, "to the worst latency in memory"),
    bind(
        "rise",
        &["shift-p"],
        Intent::Seek(SeekTarget::Rise),
        PANES,
        "to the last rise of p99 (again: the one before)",
    ),
    bind(
        "interval-back",
        &[","],
        Intent::Seek(SeekTarget::PreviousInterval),
        PANES,
        "back in time by one interval",
    ),
    bind(
        "interval-forward",
        &["."],
        Intent::Seek(SeekTarget::NextInterval),
        PANES,
        "forward in time by one interval",
    ),
    bind("beginning", &["0"], Intent::Seek(SeekTarget::Beginning), PANES, "to the beginning of the run"),
    bind("end", &["$"], Intent::Seek(SeekTarget::End), PANES, "to the present, or the end of what is played"),
    bind("go-to", &["@"], Intent::GoTo, PANES, "to a time: 13:05, +5m into the run, -10m, mark:2"),
    bind(
        "play",
        &["p"],
        Intent::Play(PlayControl::Toggle),
        JOURNAL,
        "play from here, or pause; Space too while it plays",
    ),
    bind("play-slower", &["["], Intent::Play(PlayControl::Slower), REPLAY, "half the speed, down to 1/4"),
    bind("play-faster", &["]"], Intent::Play(PlayControl::Faster), REPLAY, "twice the speed, up to 64"),
    bind("play-normal", &["backspace"], Intent::Play(PlayControl::Normal), REPLAY, "normal speed"),
    bind("zoom-out", &["o"], Intent::ZoomOut, PANES, "zoom out: more time per column"),
    bind("zoom-in", &["i"], Intent::ZoomIn, PANES, "zoom in: less time per column"),
    bind(
        "zoom-fit",
        &["shift-o"],
        Intent::ZoomToFit,
        PANES,
        "zoom so that the whole run fits, as at the start",
    ),
    bind("class", &["f"], Intent::NextClass, PANES, "next figure over time (latency class)"),
    bind("course", &["v"], Intent::ToggleTimeline, PANES, "show or hide the heat map behind the lines"),
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
    bind(
        "filter",
        &["/"],
        Intent::Filter,
        CLIENTS,
        "show only clients that match, such as 10.0.0.0/8 p99>5ms failed>0",
    ),
    bind("open", &["enter"], Intent::Open, CLIENTS, "details of the selected client"),
    bind(
        "requests",
        &["r"],
        Intent::Requests,
        HTTP,
        "the slowest requests of the window, then only those that failed, then close",
    ),
    bind("findings", &["b"], Intent::Findings, PANES, "what is about to break: figures, and what to do"),
    bind(
        "usage",
        &["d"],
        Intent::NextDimension,
        CLIENTS,
        "who uses what: by version, then by group, cipher, signature, protocol, certificate, name, fingerprint, issuer",
    ),
    bind("up", &["up", "k"], Intent::Scroll(ListMove::Up), ANYWHERE, "previous client or line"),
    bind("down", &["down", "j"], Intent::Scroll(ListMove::Down), ANYWHERE, "next client or line"),
    bind("page-up", &["pageup"], Intent::Scroll(ListMove::PageUp), ANYWHERE, "a page up"),
    bind("page-down", &["pagedown"], Intent::Scroll(ListMove::PageDown), ANYWHERE, "a page down"),
    bind("first", &["home", "g"], Intent::Scroll(ListMove::First), ANYWHERE, "first client or line"),
    bind("last", &["end", "shift-g"], Intent::Scroll(ListMove::Last), ANYWHERE, "last client or line"),
    bind("copy", &["y"], Intent::Copy, ANYWHERE, "copy the selected client, or the screen as text"),
    bind(
        "export",
        &["e"],
        Intent::Export,
        PANES,
        "write the view to new files, text and JSON, or the report page",
    ),
    bind(
        "log",
        &["shift-l"],
        Intent::Pane(PaneAction::MaximiseLog),
        PANES,
        "show only the log, or all panes",
    ),
    bind(
        "columns",
        &["c"],
        Intent::Choose(Choice::Columns(List::Clients)),
        CLIENTS,
        "choose and order the columns of the clients",
    ),
    bind("panes", &["x"], Intent::Choose(Choice::Panes), PANES, "choose the panes that are shown"),
    pane("next-pane", &["tab"], PaneAction::FocusNext, "focus the next pane"),
    pane("previous-pane", &["backtab"], PaneAction::FocusPrevious, "focus the previous pane"),
    pane("maximise", &["z"], PaneAction::Maximise, "show only the focused pane, or all panes"),
    pane("taller", &["ctrl-up"], PaneAction::Taller, "make the focused pane taller"),
    pane("lower", &["ctrl-down"], PaneAction::Shorter, "make the focused pane less tall"),
    preset("overview", &["1", "alt-1"], Preset::Overview, "all panes, in their usual sizes"),
    preset("only-clients", &["2", "alt-2"], Preset::Only(PaneId::Clients), "only clients and log"),
    preset("only-latency", &["3", "alt-3"], Preset::Latency, "only latency and log"),
    preset("tuning", &["4", "alt-4"], Preset::Tuning, "latency beside the settings"),
    preset("only-routes", &["5", "alt-5"], Preset::Only(PaneId::Routes), "only routes and log"),
    preset("only-usage", &["6", "alt-6"], Preset::Only(PaneId::Usage), "only usage and log"),
    preset("only-hosts", &["7", "alt-7"], Preset::Only(PaneId::Hosts), "only hosts and log"),
    preset("only-services", &["8", "alt-8"], Preset::Only(PaneId::Services), "only services and log"),
    preset("only-upstreams", &["9", "alt-9"], Preset::Only(PaneId::Upstreams), "only upstreams and log"),
    preset("only-certificates", &["alt-0"], Preset::Only(PaneId::Certificates), "only certificates and log"),
    bind(
        "next-run",
        &["h"],
        Intent::NextRun,
        (KeyContext::Panes, KeyRequirement::Runs),
        "next watched run or host",
    ),
    bind("runs", &["shift-h"], Intent::Runs, ANYWHERE, "show or close the list of runs and hosts"),
    bind("tune", &["t"], Intent::Tune, ANYWHERE, "show or close the settings of proxy and load"),
    bind("experiments", &["a"], Intent::Experiments, ANYWHERE, "show or close the A/B experiments"),
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
        "resume 10 percentage points less",
    ),
    bind(
        "resume-more",
        &["}"],
        Intent::Adjust(QuickControl::Resume, Direction::Up),
        LOAD,
        "resume 10 percentage points more",
    ),
    bind("mark", &["m"], Intent::Mark, CONTROL, "set a numbered mark in the timeline"),
    bind("record", &["shift-r"], Intent::Record, RECORDER, "start or stop recording to a file"),
    bind(
        "write-configuration",
        &["shift-w"],
        Intent::WriteConfiguration,
        PROCESS,
        "write the settings in force to a new configuration file",
    ),
    bind(
        "calibrate",
        &["shift-k"],
        Intent::Calibrate,
        CONTROL,
        "measure what handshakes cost on this machine",
    ),
    bind(
        "drain-upstream",
        &["shift-d"],
        Intent::DrainUpstream,
        CONTROL,
        "drain or return the selected upstream",
    ),
    bind("undo", &["u"], Intent::Setting(SettingEdit::Undo), CONTROL, "undo the last change of a setting"),
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
    bind("edit", &["e"], Intent::Setting(SettingEdit::Type), TUNING, "type a value, as a digit does"),
    bind("apply", &["enter"], Intent::Setting(SettingEdit::Apply), TUNING, "apply all staged values"),
    bind(
        "unstage",
        &["backspace", "delete"],
        Intent::Setting(SettingEdit::Unstage),
        TUNING,
        "drop the staged value",
    ),
    bind("compare", &["e", "enter"], Intent::Compare, EXPERIMENTS, "type an experiment's plan and start it"),
    bind("end-experiment", &["x"], Intent::EndExperiment, EXPERIMENTS, "stop the experiment early"),
    bind("show-run", &["enter"], Intent::RunOpen, RUNS, "show the selected run"),
    bind("filter-hosts", &["/"], Intent::RunFilter, RUNS, "show only hosts whose name contains a text"),
    bind(
        "choose",
        &["space", "enter"],
        Intent::EditChoice(ChoiceEdit::Toggle),
        CHOICE,
        "show or hide the selected line",
    ),
    bind(
        "column-left",
        &["left"],
        Intent::EditChoice(ChoiceEdit::Earlier),
        CHOICE,
        "move the column to the left",
    ),
    bind(
        "column-right",
        &["right"],
        Intent::EditChoice(ChoiceEdit::Later),
        CHOICE,
        "move the column to the right",
    ),
    bind(
        "usual-choice",
        &["backspace"],
        Intent::EditChoice(ChoiceEdit::Reset),
        CHOICE,
        "back to what is usual",
    ),
    bind("redraw", &["ctrl-l"], Intent::Redraw, ANYWHERE, "redraw the whole screen"),
    bind(
        "suspend",
        &["ctrl-z"],
        Intent::Suspend,
        (KeyContext::Anywhere, KeyRequirement::Viewer),
        "back to the shell; fg returns",
    ),
];
