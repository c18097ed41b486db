//! The options of a dashboard, and the ways in which it ends.

pub(crate) mod channel;
pub(crate) mod remote;
pub(crate) mod speed;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use model::history::{HistoryReader, Moment, Update};
use model::runs::{Model, Run};
use records::ids::RunId;
use records::setting::{Setting, SettingInfo};

use crate::clock::zone::Zone;
use crate::input::keymap::Keymap;
use crate::theme::{Colours, Glyphs, Palette};
use remote::RemoteControl;
use speed::Speed;

/// How a dashboard looks and what it may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is watched, such as `:8443 > unix:/tmp/app.sock`; empty to take it from the run.
    pub title: String,
    /// The journal that the records come from, as a person would name it.
    pub source: String,
    /// True if the runs are those of other processes: each of them may be shown, and [`Self::remote`] changes them.
    pub watches: bool,
    /// Who changes and records the runs of other processes; `None` where keys only say that they may not.
    pub remote: Option<RemoteControl>,
    /// The run to show; `None` for the latest.
    pub run: Option<RunId>,
    /// Characters of borders and graphs.
    pub glyphs: Glyphs,
    pub palette: Palette,
    pub keymap: Keymap,
    /// True if clicks and the wheel do something; the terminal then leaves selecting text to Shift.
    pub mouse: bool,
    /// Reads the journal again for earlier moments and for playback; `None` if it cannot be read again.
    pub history: Option<HistoryReader>,
    /// Checks the plan of an experiment against settings and the interval, and says how long it takes.
    pub check_plan: fn(&str, &[Setting], Duration) -> Result<String, String>,
    /// Renders the report page of a run as it is in memory; with the name of its journal.
    pub page: fn(&Model, &Run, &str) -> String,
    /// The zone of the times on the screen.
    pub zone: Zone,
    pub settings: Vec<SettingInfo>,
    /// What is played once everything has been read.
    pub opening: Option<ReplayStart>,
    /// How a person is notified of a firing alert.
    pub alert_notify: AlertNotify,
    /// The file that keeps columns and panes from one start to the next; `None` to keep nothing.
    pub layout_file: Option<PathBuf>,
    /// Frames a second at the most for new data; input is drawn at up to 30 a second.
    pub frames_per_second_max: u32,
}

impl Options {
    /// Live control of what is watched, in the characters that the environment asks for and the terminal's own colours;
    /// for others see [`ColourScheme::palette`](crate::ColourScheme::palette).
    pub fn new(title: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            source: source.into(),
            watches: false,
            remote: None,
            run: None,
            glyphs: Glyphs::detect(),
            palette: Palette::Coloured(Colours::SIXTEEN),
            keymap: Keymap::default(),
            mouse: true,
            history: None,
            check_plan: |_, _, _| Ok(String::new()),
            page: |_, _, _| String::new(),
            zone: Zone::default(),
            settings: Vec::new(),
            opening: None,
            alert_notify: AlertNotify::Off,
            layout_file: None,
            frames_per_second_max: 4,
        }
    }
}

/// How a person who looks elsewhere is notified of a firing alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertNotify {
    /// Not at all: the screen shows it.
    #[default]
    Off,
    Bell,
    /// By a desktop notification, as iTerm2, `WezTerm`, kitty, Ghostty and Windows Terminal understand it.
    Osc9,
    /// By a desktop notification, as foot, urxvt, Ghostty and terminals of VTE understand it.
    Osc777,
}

impl AlertNotify {
    /// The notification that the terminal of this environment understands.
    pub fn desktop() -> Self {
        let term = std::env::var("TERM").unwrap_or_default();
        let is_osc_777 =
            term.starts_with("foot") || term.starts_with("rxvt") || std::env::var_os("VTE_VERSION").is_some();
        if is_osc_777 { Self::Osc777 } else { Self::Osc9 }
    }
}

/// Where the replay of a recorded run starts.
#[derive(Clone, Debug, Default)]
pub struct ReplayStart {
    /// The moment; `None` for the run's beginning.
    pub from: Option<Moment>,
    /// How fast it is played from there; `None` to pause there.
    pub speed: Option<Speed>,
}

/// A message from the program to the dashboard.
#[derive(Debug)]
pub enum Event {
    /// News of the journal.
    Update(Update),
    /// The program ends: SIGTERM, SIGINT, or its time is over.
    Terminate,
    /// The process was asked from outside to stop until it is continued (SIGTSTP).
    Suspend,
    /// Somebody reads the model as it is now.
    Read(ModelReader),
    /// Whether this user may change a run of another process, or why not.
    Access(RunId, Result<(), String>),
}

/// Reads the model on the thread that owns it.
pub struct ModelReader(Box<dyn FnOnce(&Model) + Send>);

impl ModelReader {
    pub fn new(read: impl FnOnce(&Model) + Send + 'static) -> Self {
        Self(Box::new(read))
    }

    pub fn read(self, model: &Model) {
        (self.0)(model);
    }
}

impl fmt::Debug for ModelReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelReader")
    }
}

/// The result of a dashboard that has ended.
#[derive(Debug)]
pub struct DashboardResult {
    pub exit: Result<Exit, TuiError>,
    /// All that was read, also before a failure.
    pub model: Model,
}

/// Why a dashboard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Quit,
    Terminated,
    TerminalLost,
}

/// Why a dashboard failed. The terminal has been restored, as far as there is one.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("standard input and output must be a terminal that can draw (TERM is not dumb)")]
    NoTerminal,
    /// The terminal, a signal or a thread could not be set up.
    #[error("cannot {what}: {error}")]
    Setup { what: &'static str, error: std::io::Error },
    #[error("cannot draw on the terminal: {0}")]
    Draw(std::io::Error),
    /// A thread panicked, or the program took the terminal back: see [`crate::restore`].
    #[error("the terminal was taken back: a thread of the program panicked")]
    Panicked,
}
