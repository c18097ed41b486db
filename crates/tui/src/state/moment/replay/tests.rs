//! Replays on the screen: a run that is read again and played.

mod reads;

use std::sync::Arc;

use insta::assert_snapshot;
use model::history::{Batch, HistoryReply, HistoryRequest, Update};
use model::runs::Model;
use records::kinds::Record;
use records::setting::Value;

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options, watching};
use crate::input::intent::{Intent, PlayControl, SeekTarget};
use crate::options::{Options, ReplayStart};
use crate::panes::PaneId;
use crate::state::status::ViewStatus;
use crate::synthetic::SyntheticLoad;
use crate::table::ListMove;
use crate::theme::Glyphs;

/// A run of so many seconds, with a mark after a third of it and a change after two, and who reads it again.
struct ReplayHarness {
    records: Vec<Record>,
    stage: TestDashboard,
    /// How far the asked-for run has been handed out, for what follows.
    given_us: u64,
    /// What was asked for, in words.
    asked: Vec<String>,
}

const SECONDS: usize = 90;

impl ReplayHarness {
    fn opened(options: Options) -> Self {
        Self::of(TestDashboard::empty(options))
    }

    fn of(mut stage: TestDashboard) -> Self {
        let mut records = vec![stage.run.start()];
        for second in 0..SECONDS {
            records.extend(stage.run.second());
            match second {
                29 => records.push(stage.run.mark(1)),
                59 => records.extend(stage.run.set("load.rate", Value::Number(6000.0))),
                _ => {}
            }
        }
        records.push(stage.run.stop());
        let mut recording = Self { records: records.clone(), stage, given_us: 0, asked: Vec::new() };
        for part in records.chunks(200) {
            let batch = Batch { records: part.to_vec(), ..Batch::default() };
            recording.act(Action::Update(Update::Batch(batch)));
        }
        // It was recorded long ago.
        recording.stage.elapse_millis(3_600_000);
        recording.act(Action::Update(Update::CaughtUp));
        recording.stage.prepare();
        recording
    }

    fn began_us(&self) -> u64 {
        self.records[0].stamp.mono_us
    }

    /// Does something, and reads what is asked for.
    fn act(&mut self, action: Action) {
        self.stage.act(action);
        self.read();
    }

    fn want(&mut self, intent: Intent) {
        self.act(Action::Want(intent));
        self.stage.prepare();
    }

    fn read(&mut self) {
        while let Some(ask) = self.stage.state.history_request() {
            self.answer(ask);
        }
    }

    fn answer(&mut self, ask: HistoryRequest) {
        let second = |us: u64| (us - self.records[0].stamp.mono_us) / 1_000_000;
        match ask {
            HistoryRequest::Seek(seek) => {
                self.asked.push(format!("seek {}", second(seek.until_us)));
                let mut model = Model::default();
                let until = |record: &&Record| record.stamp.mono_us <= seek.until_us;
                self.records.iter().filter(until).for_each(|record| model.apply(record.clone(), None));
                self.given_us = seek.until_us;
                let (ticket, until_us) = (seek.ticket, seek.until_us);
                self.stage.act(Action::History(HistoryReply::Reached {
                    ticket,
                    model: Box::new(model),
                    until_us,
                }));
            }
            HistoryRequest::Continue { ticket, until_us, .. } => {
                self.asked.push(format!("on {}", second(until_us)));
                let new = |record: &&Record| (self.given_us + 1..=until_us).contains(&record.stamp.mono_us);
                let records = self.records.iter().filter(new).map(|record| (Arc::default(), record.clone()));
                let news =
                    HistoryReply::Records { ticket, records: records.collect(), until_us: Some(until_us) };
                self.given_us = self.given_us.max(until_us);
                self.stage.act(Action::History(news));
            }
        }
    }

    /// So many quarters of a second go by.
    fn quarters(&mut self, n: usize) {
        for _ in 0..n {
            self.stage.wait_millis(250);
            self.read();
        }
        self.stage.prepare();
    }

    /// Milliseconds from the run's beginning to the moment that is shown.
    fn at(&self) -> u64 {
        self.stage.state.earlier().map_or(0, |(us, _)| us - self.began_us()).div_euclid(1_000)
    }

    fn line(&mut self, columns: u16) -> String {
        let screen = self.stage.screen(columns, 24);
        let signs = ["▶ ", "⏸ ", "■ ", "> ", "|| ", "[] "];
        let is_it = |line: &&str| signs.iter().any(|sign| line.starts_with(sign)) && line.contains(" / ");
        screen.lines().find(is_it).unwrap_or_else(|| panic!("{screen}")).to_owned()
    }
}

#[test]
fn a_recording_that_is_only_opened_shows_its_end_as_ever() {
    let mut recording = ReplayHarness::opened(watching());
    assert_eq!((recording.stage.state.status, recording.asked.len()), (ViewStatus::Ended, 0));
    let screen = recording.stage.screen(80, 24);
    assert!(screen.contains("ENDED") && !screen.contains(" / 01:30"), "{screen}");
}

#[test]
fn it_plays_at_normal_speed_and_stops_at_the_end() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    assert_eq!((recording.at(), recording.stage.state.status), (0, ViewStatus::Playing));
    recording.quarters(40);
    assert_eq!(recording.at(), 10_000);
    let line = recording.line(80);
    assert!(line.starts_with("▶ 1×") && line.contains("00:10 / 01:30  12:04:10Z"), "{line}");
    recording.quarters(400);
    assert_eq!((recording.at(), recording.stage.state.status), (90_000, ViewStatus::Paused));
    assert!(recording.line(80).starts_with("■ "));
    recording.want(Intent::Play(PlayControl::Toggle));
    assert_eq!(recording.at(), 0, "from its end it is played again");
}

#[test]
fn playing_shows_every_pane_as_it_was() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(4 * 40);
    recording.want(Intent::Play(PlayControl::Toggle));
    let replayed = [(160, 48), (80, 24)].map(|(columns, rows)| recording.stage.screen(columns, rows));
    let mut live = TestDashboard::live(Options { watches: true, ..options() }, 30);
    let mark = live.run.mark(1);
    live.read(vec![mark]);
    live.pass(10);
    // The lines of classes, the table of handshakes beside them and the clients.
    let figures = |screen: &str| -> Vec<String> {
        let is_figures = |line: &&str| {
            ["full handshake", "resumed handshake", "exchange ", "response", "proxy ", "cpu", " 10.0.0."]
                .iter()
                .any(|word| line.starts_with(word))
        };
        screen.lines().filter(is_figures).map(str::to_owned).collect()
    };
    for (screen, (columns, rows)) in replayed.iter().zip([(160, 48), (80, 24)]) {
        let then = figures(&live.screen(columns, rows));
        let shown = figures(screen);
        // One of them may have room for more clients, and an address among them for more cells.
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let are_equal = shown.iter().zip(&then).all(|(shown, then)| words(shown) == words(then));
        assert!(shown.len() > 4 && then.len() > 4 && are_equal, "{shown:#?}\n{then:#?}");
    }
    let log = &replayed[0];
    assert!(log.contains("note mark 1") && !log.contains("load.rate changed"), "{log}");
    assert_snapshot!(replayed[0]);
    assert_snapshot!(replayed[1]);
}

#[test]
fn the_start_of_a_run_in_http_mode_has_the_tiles_of_http() {
    let mut stage = TestDashboard::empty(watching());
    stage.run = SyntheticLoad::http();
    let mut recording = ReplayHarness::of(stage);
    recording.want(Intent::Seek(SeekTarget::Beginning));
    let screen = recording.stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:00") && screen.contains(" requests ─"), "{screen}");
    assert!(screen.contains("│ 0 requests"), "{screen}");
}

#[test]
fn space_pauses_and_nothing_is_drawn_while_paused() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(10);
    recording.want(Intent::Freeze);
    assert_eq!(recording.stage.state.status, ViewStatus::Paused);
    let at = recording.at();
    for _ in 0..50 {
        recording.stage.elapse_millis(250);
        assert_eq!(recording.stage.act(Action::Tick), []);
    }
    assert_eq!(recording.at(), at);
    recording.want(Intent::Freeze);
    recording.quarters(4);
    assert_eq!(recording.at(), at + 1_000, "it goes on from where it stood");
    recording.want(Intent::Back);
    assert_eq!(recording.stage.state.status, ViewStatus::Ended, "Esc leaves it");
    assert!(!recording.stage.screen(80, 24).contains(" / 01:30"));
}

#[test]
fn speed_changes_at_once_and_no_record_is_skipped_at_the_highest() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.stage.press(']');
    recording.stage.press(']');
    recording.quarters(8);
    assert_eq!(recording.at(), 8_000);
    recording.want(Intent::Play(PlayControl::Normal));
    (0..9).for_each(|_| drop(recording.stage.press('[')));
    assert!(recording.line(80).starts_with("▶ 1/4×"));
    recording.quarters(16);
    assert_eq!(recording.at(), 9_000);
    (0..9).for_each(|_| drop(recording.stage.press(']')));
    assert!(recording.line(80).starts_with("▶ 64×"));
    recording.quarters(8);
    assert_eq!(recording.at(), 90_000);
    let screen = recording.stage.screen(160, 48);
    assert!(screen.contains("then  load.rate 6000"), "{screen}");
    recording.stage.state.panes.maximised = Some(PaneId::System);
    let screen = recording.stage.screen(160, 48);
    assert!(screen.contains("lost 0"), "{screen}");
}

#[test]
fn seeking_works_while_it_plays() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(4);
    recording.want(Intent::Seek(SeekTarget::NextMark));
    assert_eq!((recording.at(), recording.stage.state.status), (31_000, ViewStatus::Playing));
    recording.want(Intent::Seek(SeekTarget::NextMark));
    assert_eq!(recording.at(), 61_000);
    recording.want(Intent::Seek(SeekTarget::Columns(-1)));
    assert_eq!(recording.at(), 60_000);
    recording.quarters(4);
    assert_eq!(recording.at(), 61_000, "it plays on from there");
    recording.want(Intent::Play(PlayControl::Toggle));
    for (text, at) in [("5s", 5_000), ("-10s", 80_000), ("mark:1", 30_000), ("12:04:50", 50_000)] {
        recording.want(Intent::GoTo);
        text.chars().for_each(|key| drop(recording.stage.press(key)));
        recording.stage.press('\n');
        recording.read();
        assert_eq!(recording.at(), at, "{text}");
    }
    recording.want(Intent::Seek(SeekTarget::NextInterval));
    assert_eq!(recording.at(), 51_000);
    recording.want(Intent::Seek(SeekTarget::PreviousInterval));
    recording.want(Intent::Seek(SeekTarget::PreviousInterval));
    assert_eq!(recording.at(), 49_000);
    recording.want(Intent::Seek(SeekTarget::Beginning));
    assert_eq!(recording.at(), 0);
    recording.want(Intent::Seek(SeekTarget::End));
    assert_eq!(recording.at(), 90_000);
    recording.want(Intent::GoTo);
    "tea".chars().for_each(|key| drop(recording.stage.press(key)));
    recording.stage.press('\n');
    let screen = recording.stage.screen(160, 48);
    assert!(screen.contains("is no time"), "{screen}");
}

#[test]
fn a_click_on_its_line_goes_there() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.want(Intent::Play(PlayControl::Toggle));
    let screen = recording.stage.screen(80, 24);
    let row = screen.lines().position(|line| line.starts_with("⏸ ")).unwrap();
    let kind = MouseEventKind::Down(MouseButton::Left);
    let click = MouseEvent { kind, column: 79, row: row as u16, modifiers: KeyModifiers::NONE };
    recording.act(Action::Point(click));
    assert!((80_000..90_000).contains(&recording.at()));
}

#[test]
fn the_command_line_sets_start_and_speed_of_playing() {
    let opening = ReplayStart { from: Some("mark:1".parse().unwrap()), speed: Some("4".parse().unwrap()) };
    let mut recording = ReplayHarness::opened(Options { opening: Some(opening), ..watching() });
    assert_eq!((recording.at(), recording.stage.state.status), (30_000, ViewStatus::Playing));
    recording.quarters(4);
    assert_eq!(recording.at(), 34_000);
    let opening = ReplayStart { from: Some("5s".parse().unwrap()), speed: None };
    let recording = ReplayHarness::opened(Options { opening: Some(opening), ..watching() });
    assert_eq!((recording.at(), recording.stage.state.status), (5_000, ViewStatus::Paused));
    let opening = ReplayStart { from: Some("3h".parse().unwrap()), speed: None };
    let mut recording = ReplayHarness::opened(Options { opening: Some(opening), ..watching() });
    let screen = recording.stage.screen(160, 48);
    assert!(screen.contains("that moment is outside the run"), "{screen}");
    let ascii = Options { glyphs: Glyphs::Ascii, ..watching() };
    recording = ReplayHarness::opened(ascii);
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(80);
    let screen = recording.stage.screen(80, 24);
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!(recording.line(80));
}

#[test]
fn a_run_that_goes_on_is_live_when_it_was_played_to_the_present() {
    let mut stage = TestDashboard::live(watching(), 30);
    stage.want(Intent::Seek(SeekTarget::Columns(-1)));
    assert!(stage.state.history_request().is_none(), "what is measured now is not disturbed by mere looking");
    stage.want(Intent::Play(PlayControl::Toggle));
    let Some(HistoryRequest::Seek(seek)) = stage.state.history_request() else { panic!("nothing is asked") };
    let mut model = Model::default();
    let mut same = SyntheticLoad::default();
    model.apply(same.start(), None);
    (0..30).flat_map(|_| same.second()).for_each(|record| model.apply(record, None));
    let (ticket, until_us) = (seek.ticket, stage.state.last_us());
    stage.act(Action::History(HistoryReply::Reached {
        ticket,
        model: Box::new(model),
        until_us: seek.until_us,
    }));
    stage.prepare();
    let Some(HistoryRequest::Continue { .. }) = stage.state.history_request() else {
        panic!("what follows is not asked for")
    };
    let followed = HistoryReply::Records { ticket, records: Vec::new(), until_us: Some(until_us) };
    stage.act(Action::History(followed));
    stage.wait(2);
    assert_eq!(stage.state.status, ViewStatus::Live);
}
