//! The table of keys: what each does, where, and what it needs.

use crate::input::context::KeyContext;
use crate::input::intent::{
    Choice, Direction, Intent, List, PaneAction, PlayControl, Preset, QuickControl, SeekTarget, SettingEdit,
};
use crate::input::requirement::KeyRequirement;
use crate::panes::model::PaneId;
use crate::table::{ChoiceEdit, ListMove};

/// Columns of a long step through time.
const FAR: i64 = 10;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Its name in the configuration.
    pub(crate) name: &'static str,
    /// Keys that do it unless others are configured, as the configuration writes them; the first one is named first.
    pub(crate) keys: Keys,
    pub(crate) intent: Intent,
    /// What it does, for help and palette.
    pub(crate) meaning: &'static str,
    pub(crate) context: KeyContext,
    pub(crate) needs: KeyRequirement,
}

/// The keys of a binding.
type Keys = &'static [&'static str];

const fn bind(
    name: &'static str,
    keys: Keys,
    intent: Intent,
    (context, needs): (KeyContext, KeyRequirement),
    meaning: &'static str,
) -> Binding {
    Binding { name, keys, intent, meaning, context, needs }
}

const fn pane(name: &'static str, keys: Keys, action: PaneAction, meaning: &'static str) -> Binding {
    bind(name, keys, Intent::Pane(action), PANES, meaning)
}

const fn preset(name: &'static str, keys: Keys, preset: Preset, meaning: &'static str) -> Binding {
    let here = (KeyContext::Anywhere, preset.needs());
    bind(name, keys, Intent::Pane(PaneAction::Preset(preset)), here, meaning)
}

const fn seek(name: &'static str, keys: Keys, target: SeekTarget, meaning: &'static str) -> Binding {
    bind(name, keys, Intent::Seek(target), PANES, meaning)
}

const fn scroll(name: &'static str, keys: Keys, to: ListMove, meaning: &'static str) -> Binding {
    bind(name, keys, Intent::Scroll(to), ANYWHERE, meaning)
}

const fn setting(name: &'static str, keys: Keys, edit: SettingEdit, meaning: &'static str) -> Binding {
    bind(name, keys, Intent::Setting(edit), TUNING, meaning)
}

const fn choice(name: &'static str, keys: Keys, edit: ChoiceEdit, meaning: &'static str) -> Binding {
    bind(name, keys, Intent::EditChoice(edit), CHOICE, meaning)
}

const fn adjust(
    name: &'static str,
    keys: Keys,
    (control, direction): (QuickControl, Direction),
    meaning: &'static str,
) -> Binding {
    bind(name, keys, Intent::Adjust(control, direction), LOAD, meaning)
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
    seek("back-in-time", &["left"], SeekTarget::Columns(-1), "back in time by a column"),
    seek("forward-in-time", &["right"], SeekTarget::Columns(1), "forward in time by a column"),
    seek("far-back-in-time", &["<"], SeekTarget::Columns(-FAR), "back in time by ten columns"),
    seek("far-forward-in-time", &[">"], SeekTarget::Columns(FAR), "forward in time by ten columns"),
    seek("previous-mark", &["shift-n"], SeekTarget::PreviousMark, "to the previous mark or change"),
    seek("next-mark", &["n"], SeekTarget::NextMark, "to the next mark or change"),
    seek("worst", &["w"], SeekTarget::Worst, "to the worst latency in memory"),
    seek("rise", &["shift-p"], SeekTarget::Rise, "to the last rise of p99 (again: the one before)"),
    seek("interval-back", &[","], SeekTarget::PreviousInterval, "back in time by one interval"),
    seek("interval-forward", &["."], SeekTarget::NextInterval, "forward in time by one interval"),
    seek("beginning", &["0"], SeekTarget::Beginning, "to the beginning of the run"),
    seek("end", &["$"], SeekTarget::End, "to the present, or the end of what is played"),
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
    scroll("up", &["up", "k"], ListMove::Up, "previous client or line"),
    scroll("down", &["down", "j"], ListMove::Down, "next client or line"),
    scroll("page-up", &["pageup"], ListMove::PageUp, "a page up"),
    scroll("page-down", &["pagedown"], ListMove::PageDown, "a page down"),
    scroll("first", &["home", "g"], ListMove::First, "first client or line"),
    scroll("last", &["end", "shift-g"], ListMove::Last, "last client or line"),
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
    adjust("load", &["l"], (QuickControl::Running, Direction::Up), "start or stop the load"),
    adjust("slower", &["["], (QuickControl::Rate, Direction::Down), "10 % fewer requests a second"),
    bind(
        "faster",
        &["]"],
        Intent::Adjust(QuickControl::Rate, Direction::Up),
        LOAD,
        "10 % more requests a second",
    ),
    adjust(
        "resume-less",
        &["{"],
        (QuickControl::Resume, Direction::Down),
        "resume 10 percentage points less",
    ),
    adjust("resume-more", &["}"], (QuickControl::Resume, Direction::Up), "resume 10 percentage points more"),
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
    setting(
        "step-down",
        &["left"],
        SettingEdit::Step(Direction::Down),
        "stage a smaller value, or the other one",
    ),
    setting(
        "step-up",
        &["right"],
        SettingEdit::Step(Direction::Up),
        "stage a larger value, or the other one",
    ),
    setting("edit", &["e"], SettingEdit::Type, "type a value, as a digit does"),
    setting("apply", &["enter"], SettingEdit::Apply, "apply all staged values"),
    setting("unstage", &["backspace", "delete"], SettingEdit::Unstage, "drop the staged value"),
    bind("compare", &["e", "enter"], Intent::Compare, EXPERIMENTS, "type an experiment's plan and start it"),
    bind("end-experiment", &["x"], Intent::EndExperiment, EXPERIMENTS, "stop the experiment early"),
    bind("show-run", &["enter"], Intent::RunOpen, RUNS, "show the selected run"),
    bind("filter-hosts", &["/"], Intent::RunFilter, RUNS, "show only hosts whose name contains a text"),
    choice("choose", &["space", "enter"], ChoiceEdit::Toggle, "show or hide the selected line"),
    choice("column-left", &["left"], ChoiceEdit::Earlier, "move the column to the left"),
    choice("column-right", &["right"], ChoiceEdit::Later, "move the column to the right"),
    choice("usual-choice", &["backspace"], ChoiceEdit::Reset, "back to what is usual"),
    bind("redraw", &["ctrl-l"], Intent::Redraw, ANYWHERE, "redraw the whole screen"),
    bind(
        "suspend",
        &["ctrl-z"],
        Intent::Suspend,
        (KeyContext::Anywhere, KeyRequirement::Viewer),
        "back to the shell; fg returns",
    ),
];
