//! Dashboards in made-up situations, and their screens as text.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use model::history::{Batch, HistoryReader, Update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use records::kinds::Record;
use records::setting::{SettingInfo, SettingKind, Value};
use records::slice::TimeRange;

use crate::app::action::{Action, Effect};
use crate::app::update::{prepare, update};
use crate::clock::ClockReading;
use crate::frame::view;
use crate::input::intent::Intent;
use crate::options::Options;
use crate::state::State;
use crate::synthetic::SyntheticLoad;
use crate::theme::{Glyphs, Palette};

/// A dashboard, its clock and the run it watches.
pub(crate) struct TestDashboard {
    pub(crate) state: State,
    pub(crate) run: SyntheticLoad,
    began: Instant,
    elapsed: Duration,
}

/// Without colours, in Unicode.
pub(crate) fn options() -> Options {
    Options {
        title: ":8443 > unix:/tmp/app.sock".into(),
        source: "file:/var/lib/tlsdash/tlsdash.journal".into(),
        watches: false,
        remote: None,
        run: None,
        glyphs: Glyphs::Unicode,
        palette: Palette::Monochrome,
        keymap: crate::input::keymap::Keymap::default(),
        mouse: true,
        history: None,
        check_plan: |_, _, _| Ok("6m in all".into()),
        page: |_, run, source| format!("<html>{} {source}</html>", run.id()),
        zone: crate::clock::zone::Zone::default(),
        settings: infos(),
        opening: None,
        alert_notify: crate::options::AlertNotify::Off,
        layout_file: None,
        frames_per_second_max: 4,
    }
}

/// Descriptions of some of the settings of the made-up run.
fn infos() -> Vec<SettingInfo> {
    let info = |name: &str, about: &str, kind, default| SettingInfo {
        name: name.into(),
        about: about.into(),
        kind,
        default,
        absent: None,
    };
    let parse = |text: &str| Some(if text == "1" { "off" } else { text }.to_owned());
    let keepalive = SettingKind::Parsed { parse, allowed: "on, off or a number" };
    vec![
        info("load.rate", "Requests that become due each second", SettingKind::Any, None),
        info("load.threads", "Threads of the load", SettingKind::Whole, Some(Value::Number(2.0))),
        info("load.keep-alive", "Requests on a connection", keepalive, None),
    ]
}

/// The options for watching a journal that can be read again.
pub(crate) fn watching() -> Options {
    let history =
        HistoryReader::start(|_, _| unreachable!("nobody asks it"), TimeRange::ALL, |_| true).unwrap();
    Options { watches: true, history: Some(history), ..options() }
}

impl TestDashboard {
    /// A dashboard that has read nothing.
    pub(crate) fn empty(options: Options) -> Self {
        let state = State::new(options, (80, 24));
        Self { state, run: SyntheticLoad::default(), began: Instant::now(), elapsed: Duration::ZERO }
    }

    /// A dashboard that has read so many seconds of the run.
    pub(crate) fn live(options: Options, seconds: usize) -> Self {
        let mut stage = Self::empty(options);
        let start = stage.run.start();
        stage.read(vec![start]);
        stage.act(Action::Update(Update::CaughtUp));
        for _ in 0..seconds {
            stage.pass(1);
        }
        stage
    }

    /// As [`Self::live`], for a run in HTTP mode.
    pub(crate) fn live_http(options: Options, seconds: usize) -> Self {
        let mut stage = Self::empty(options);
        stage.run = SyntheticLoad::http();
        let start = stage.run.start();
        stage.read(vec![start]);
        stage.act(Action::Update(Update::CaughtUp));
        stage.pass(seconds as u64);
        stage
    }

    /// As [`Self::live`], for a run with the reasons of full handshakes and the usage of TLS.
    pub(crate) fn live_tls(options: Options, seconds: usize) -> Self {
        let mut stage = Self::empty(options);
        stage.run = SyntheticLoad::tls();
        let start = stage.run.start();
        stage.read(vec![start]);
        stage.act(Action::Update(Update::CaughtUp));
        stage.pass(seconds as u64);
        stage
    }

    /// Continues the run for so many seconds, and reads it.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            let records = self.run.second();
            self.wait(1);
            self.read(records);
        }
    }

    /// Advances the clock without reading anything.
    pub(crate) fn wait(&mut self, seconds: u64) {
        self.wait_millis(1_000 * seconds);
    }

    pub(crate) fn wait_millis(&mut self, millis: u64) {
        self.elapse_millis(millis);
        self.act(Action::Tick);
    }

    /// Advances the clock without a tick.
    pub(crate) fn elapse_millis(&mut self, millis: u64) {
        self.elapsed += Duration::from_millis(millis);
    }

    pub(crate) fn read(&mut self, records: Vec<Record>) {
        self.act_on(records);
    }

    /// Reads records; returns what the caller has to do.
    pub(crate) fn act_on(&mut self, records: Vec<Record>) -> Vec<Effect> {
        let batch: Batch = SyntheticLoad::live(records);
        let effects = self.act(Action::Update(Update::Batch(batch)));
        self.prepare();
        effects
    }

    pub(crate) fn act(&mut self, action: Action) -> Vec<Effect> {
        let now = self.now();
        update(&mut self.state, action, now)
    }

    /// Updates what is shown.
    pub(crate) fn prepare(&mut self) {
        let now = self.now();
        prepare(&mut self.state, now);
    }

    pub(crate) fn want(&mut self, intent: Intent) -> Vec<Effect> {
        let effects = self.act(Action::Want(intent));
        self.prepare();
        effects
    }

    /// Presses a key as it comes from a terminal.
    pub(crate) fn press(&mut self, key: char) -> Vec<Effect> {
        let event = match key {
            '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
            '\x1b' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            '\x13' => KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL),
            '\x15' => KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL),
            c if c.is_uppercase() => KeyEvent::new(KeyCode::Char(c), KeyModifiers::SHIFT),
            c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
        };
        if self.state.prompt.is_some() {
            let effects = self.act(Action::Type(event));
            self.prepare();
            return effects;
        }
        let intent = self.state.options.keymap.intent(&event, self.state.context());
        intent.map_or_else(Vec::new, |intent| self.want(intent))
    }

    pub(crate) fn now(&self) -> ClockReading {
        // 2026-01-02 12:04:00 UTC, where the made-up run begins.
        let realtime_us = 1_767_355_440_000_000 + self.elapsed.as_micros() as u64;
        ClockReading { instant: self.began + self.elapsed, realtime_us }
    }

    fn drawn(&mut self, columns: u16, rows: u16) -> Buffer {
        self.act(Action::Resize(columns, rows));
        self.prepare();
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| view(&self.state, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The screen at this size, and below each row how its cells look: from which cell on in which colour, and whether
    /// bold (b), dim (d) or reversed (r).
    pub(crate) fn styled(&mut self, columns: u16, rows: u16) -> String {
        let buffer = self.drawn(columns, rows);
        let look = |cell: &Cell| {
            let set = |modifier, letter| if cell.modifier.contains(modifier) { letter } else { "" };
            let [b, d, r] = [set(Modifier::BOLD, "b"), set(Modifier::DIM, "d"), set(Modifier::REVERSED, "r")];
            let colour = if cell.fg == Color::Reset { String::new() } else { cell.fg.to_string() };
            format!("{colour}{}{b}{d}{r}", if colour.is_empty() { "" } else { "+" })
        };
        let mut text = String::new();
        for row in buffer.content().chunks(usize::from(columns.max(1))) {
            let line: String = row.iter().map(Cell::symbol).collect();
            let looks: Vec<String> = row.iter().map(look).collect();
            let changed = |at: &usize| *at == 0 || looks[*at] != looks[at - 1];
            let runs: Vec<String> =
                (0..looks.len()).filter(changed).map(|at| format!("{at}:{}", looks[at])).collect();
            text.extend([line.trim_end(), "\n    ", &runs.join(" "), "\n"]);
        }
        text
    }

    pub(crate) fn screen(&mut self, columns: u16, rows: u16) -> String {
        let buffer = self.drawn(columns, rows);
        let mut text = String::new();
        for row in buffer.content().chunks(usize::from(columns.max(1))) {
            let line: String = row.iter().map(Cell::symbol).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
