//! The prompt: typing a filter, a value, or a search.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use telemetry::model::Level;
use telemetry::{Applies, ClientId, Command, Setting};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::palette::{self, PaletteEntry};
use super::update::want;
use super::{Effect, Screen, State};
use crate::clock::Now;
use crate::export::Export;
use crate::format;
use crate::table::{self, Filter};
use crate::terminal::pace::Urgency;
use crate::view_model::{ClientRow, RunRow};

/// The maximum number of characters.
const TEXT_MAX: usize = 200;

/// The text that is being typed, and its purpose.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    input: Input,
}

/// The purpose of a prompt.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// A filter of clients.
    Filter,
    /// A filter of runs by host.
    Hosts,
    /// A value of the setting with this name.
    Value(String),
    /// The plan of an experiment.
    Experiment,
    /// A moment to seek to.
    Moment,
    /// The base name of the files for the view.
    FileName,
    /// A search, with its matches and the selected one.
    Palette {
        /// The matches, best first.
        found: Vec<PaletteEntry>,
        /// The index of the selected match.
        selected: usize,
    },
}

impl Prompt {
    fn new(purpose: Purpose, text: String) -> Self {
        Self { purpose, input: Input::new(text) }
    }

    /// Returns the typed text.
    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    /// Returns the number of characters before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.input.cursor()
    }
}

impl State {
    /// Opens the prompt for a filter of clients.
    pub(super) fn type_filter(&mut self) {
        self.prompt = Some(Prompt::new(Purpose::Filter, self.clients.filter.text().to_owned()));
    }

    /// Opens the prompt for a filter of hosts.
    pub(super) fn type_hosts(&mut self) {
        self.prompt = Some(Prompt::new(Purpose::Hosts, self.runs.table.filter.text().to_owned()));
    }

    /// Opens the prompt for a moment.
    pub(super) fn type_moment(&mut self) {
        self.prompt = Some(Prompt::new(Purpose::Moment, String::new()));
    }

    /// Opens the prompt for a value of the selected setting.
    pub(super) fn type_value(&mut self) {
        self.prompt = self.typed_from().map(|(name, value)| Prompt::new(Purpose::Value(name), value));
    }

    /// Opens the prompt for an experiment on the selected setting, or else the first one that can change
    /// during the run.
    pub(super) fn type_experiment(&mut self) {
        let can_change = |setting: &&Setting| {
            setting.applies != Applies::Restart && self.control.refusal(&setting.name).is_none()
        };
        let selected = self.settings().get(self.tuning.selected).filter(can_change);
        let setting = selected.or_else(|| self.settings().iter().find(can_change));
        let plan =
            setting.map_or_else(String::new, |setting| format!("{}={}..", setting.name, setting.value));
        self.prompt = Some(Prompt::new(Purpose::Experiment, plan));
    }

    /// Opens the prompt for the name of the view's files.
    pub(super) fn type_file_name(&mut self, now: Now) {
        let Some(run) = self.figures().map(|figures| figures.run.clone()) else {
            return self.notice(Level::Notice, "there is nothing to write yet", now);
        };
        let name = format!("tlsdash-{run}-{}", format::time_of_day(now.realtime_us).replace(':', ""));
        self.prompt = Some(Prompt::new(Purpose::FileName, name));
    }

    /// Returns the effect that writes the view to files of this name.
    fn export_to(&mut self, name: &str, now: Now) -> Vec<Effect> {
        let draw = Effect::Draw(Urgency::Now);
        let name = name.trim();
        if name.is_empty() || name.ends_with('/') {
            self.notice(Level::Warning, "nothing was written: files need a name", now);
            return vec![draw];
        }
        let Some(run) = self.run() else { return vec![draw] };
        let summary = self.model.summary(run, Some(&self.options.source));
        vec![draw, Effect::Export(Box::new(Export::of(self, name, &summary)))]
    }

    /// Opens the search.
    pub(super) fn open_palette(&mut self) {
        let found = palette::find(self, "");
        self.prompt = Some(Prompt::new(Purpose::Palette { found, selected: 0 }, String::new()));
    }

    /// Handles a key while the prompt is open.
    pub(super) fn typed(&mut self, key: KeyEvent, now: Now) -> Vec<Effect> {
        let draw = vec![Effect::Draw(Urgency::Now)];
        let Some(mut prompt) = self.prompt.take() else { return Vec::new() };
        if key.kind == KeyEventKind::Release {
            self.prompt = Some(prompt);
            return Vec::new();
        }
        match key.code {
            KeyCode::Esc => self.give_up_typing(&prompt),
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => self.give_up_typing(&prompt),
            KeyCode::Enter => return self.take_typed(&prompt, now),
            KeyCode::Tab => {
                let completed = match prompt.purpose {
                    Purpose::Filter => table::completed::<ClientRow>(prompt.text()),
                    Purpose::Hosts => table::completed::<RunRow>(prompt.text()),
                    _ => None,
                };
                prompt.input = completed.map_or_else(|| prompt.input.clone(), Input::new);
                self.follow_typing(&mut prompt);
                self.prompt = Some(prompt);
            }
            KeyCode::Up | KeyCode::Down => {
                prompt.select(if key.code == KeyCode::Up { -1 } else { 1 });
                self.prompt = Some(prompt);
            }
            _ => {
                let before = prompt.input.clone();
                prompt.input.handle_event(&Event::Key(key));
                if prompt.text().chars().count() > TEXT_MAX {
                    prompt.input = before;
                }
                self.follow_typing(&mut prompt);
                self.prompt = Some(prompt);
            }
        }
        draw
    }

    /// Updates filters and matches after each character.
    fn follow_typing(&mut self, prompt: &mut Prompt) {
        match &prompt.purpose {
            Purpose::Filter => self.clients.filter = Filter::parse(prompt.text()),
            Purpose::Hosts => self.runs.table.filter = Filter::parse(prompt.text()),
            Purpose::Palette { .. } => {
                let found = palette::find(self, prompt.text());
                prompt.purpose = Purpose::Palette { found, selected: 0 };
            }
            Purpose::Value(_) | Purpose::Experiment | Purpose::FileName | Purpose::Moment => {}
        }
    }

    fn give_up_typing(&mut self, prompt: &Prompt) {
        match prompt.purpose {
            Purpose::Filter => self.clients.filter = Filter::default(),
            Purpose::Hosts => self.runs.table.filter = Filter::default(),
            _ => {}
        }
    }

    fn take_typed(&mut self, prompt: &Prompt, now: Now) -> Vec<Effect> {
        match &prompt.purpose {
            Purpose::Filter | Purpose::Hosts => {}
            Purpose::Value(name) => self.stage_text(name, prompt.text()),
            Purpose::Experiment => {
                let command = Command::Experiment(prompt.text().to_owned());
                return vec![Effect::Draw(Urgency::Now), Effect::Send(command)];
            }
            Purpose::Moment => self.go_to_typed(prompt.text(), now),
            Purpose::FileName => return self.export_to(prompt.text(), now),
            Purpose::Palette { found, selected } => match found.get(*selected).cloned() {
                Some(PaletteEntry::Command(binding)) => return want(self, binding.intent, now),
                Some(PaletteEntry::Setting(name)) => {
                    self.screen = Screen::Tuning;
                    self.select_setting(&name);
                }
                Some(PaletteEntry::Client(id)) => self.show_client(id),
                Some(PaletteEntry::Run(id, _)) => self.show_run(id),
                None => {}
            },
        }
        vec![Effect::Draw(Urgency::Now)]
    }

    fn show_client(&mut self, id: ClientId) {
        self.clients.filter = Filter::default();
        self.clients.selected = Some(id);
        self.screen = Screen::Client(id);
    }
}

impl Prompt {
    fn select(&mut self, by: isize) {
        if let Purpose::Palette { found, selected } = &mut self.purpose {
            *selected = selected.saturating_add_signed(by).min(found.len().saturating_sub(1));
        }
    }
}
