//! Text typed into the prompt, and its effect.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use model::runs::Level;
use records::command::Command;
use records::ids::ClientId;
use tui_input::InputRequest;
use tui_input::backend::crossterm::to_input_request;

use super::action::Effect;
use super::export::Export;
use super::want::want;
use crate::clock::ClockReading;
use crate::input::intent::List;
use crate::screens::prompt::entry::PaletteEntry;
use crate::screens::prompt::palette;
use crate::screens::prompt::state::{Prompt, PromptPurpose, is_page, recording_path};
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::Table as _;
use crate::terminal::frame_scheduler::Urgency;
use crate::theme::format;

impl State {
    /// Opens the prompt for a filter of the list that keys act on.
    pub(crate) fn type_filter(&mut self) {
        let list = self.list();
        self.type_filter_of(list);
    }

    /// Opens the prompt for a filter of a list.
    pub(crate) fn type_filter_of(&mut self, list: List) {
        let text = self.table(list).filter_text().to_owned();
        self.prompt = Some(Prompt::new(PromptPurpose::Filter(list), text));
    }

    /// Opens the prompt for a search in the help.
    pub(crate) fn type_help_search(&mut self) {
        self.prompt = Some(Prompt::new(PromptPurpose::Help, self.help.search.clone()));
    }

    /// Opens the prompt for a moment.
    pub(crate) fn type_moment(&mut self) {
        self.prompt = Some(Prompt::new(PromptPurpose::Moment, String::new()));
    }

    /// Opens the prompt for a value of the selected setting.
    pub(crate) fn type_value(&mut self) {
        self.prompt =
            self.typed_from().map(|(name, value)| Prompt::preset(PromptPurpose::Value(name), &value));
    }

    /// Opens the prompt for a value of the selected setting that begins with this digit.
    pub(crate) fn type_digit(&mut self, digit: char) {
        self.type_value();
        if let Some(prompt) = &mut self.prompt {
            prompt.handle(InputRequest::InsertChar(digit));
        }
    }

    /// Opens the prompt for the name of the view's files.
    pub(crate) fn type_file_name(&mut self, now: ClockReading) {
        match self.new_file_name(now) {
            Some(name) => self.prompt = Some(Prompt::new(PromptPurpose::FileName, name)),
            None => self.answer(Level::Notice, "there is nothing to write yet", now),
        }
    }

    /// Opens the prompt for the file of a recording.
    pub(crate) fn type_recording_name(&mut self, now: ClockReading) {
        match self.new_file_name(now) {
            Some(name) => {
                self.prompt = Some(Prompt::new(PromptPurpose::Recording, format!("{name}.journal")));
            }
            None => self.answer(Level::Notice, "there is nothing to record yet", now),
        }
    }

    /// A name for files of the shown run at the present time; `None` without a run.
    fn new_file_name(&self, now: ClockReading) -> Option<String> {
        let run = &self.figures()?.run;
        Some(format!("tlsdash-{run}-{}", format::time_of_day(now.realtime_us).replace(':', "")))
    }

    /// Returns the effect that writes the view to files of this name.
    ///
    /// # Errors
    /// If files cannot have this name.
    fn export_to(&mut self, name: &str) -> Result<Vec<Effect>, String> {
        let name = name.trim();
        if name.is_empty() || name.ends_with('/') {
            return Err("files need a name".to_owned());
        }
        if is_page(name) {
            let page = self.run().map(|run| (self.options.page)(&self.model, run, &self.options.source));
            let export = page.map(|html| Effect::Export(Box::new(Export::page(name, html))));
            return Ok(std::iter::once(Effect::Draw(Urgency::Now)).chain(export).collect());
        }
        let summary = self.run().map(|run| self.model.summary(run, Some(&self.options.source)));
        let export = summary.map(|summary| Effect::Export(Box::new(Export::of(self, name, &summary))));
        Ok(std::iter::once(Effect::Draw(Urgency::Now)).chain(export).collect())
    }

    /// Opens the palette, in the place of the help: what a command does is seen.
    pub(crate) fn open_palette(&mut self) {
        if matches!(self.screen, Screen::Help { .. }) {
            self.screen = self.help.over;
        }
        let found = palette::find(self, "");
        self.prompt = Some(Prompt::new(PromptPurpose::Palette { found, selected: 0 }, String::new()));
    }

    /// Handles a key while the prompt is open.
    pub(crate) fn typed(&mut self, key: KeyEvent, now: ClockReading) -> Vec<Effect> {
        let draw = vec![Effect::Draw(Urgency::Now)];
        self.message = None;
        let Some(mut prompt) = self.prompt.take() else { return Vec::new() };
        if key.kind == KeyEventKind::Release {
            self.prompt = Some(prompt);
            return Vec::new();
        }
        match key.code {
            KeyCode::Esc => self.give_up_typing(&prompt, now),
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
                self.give_up_typing(&prompt, now);
            }
            KeyCode::Char('s') if key.modifiers == KeyModifiers::CONTROL && prompt.form_field().is_some() => {
                return self.enter(prompt, now);
            }
            KeyCode::Enter if prompt.form_field().is_some_and(|field| !field.is_last()) => {
                prompt.error = None;
                self.choose(&mut prompt, false);
                self.prompt = Some(prompt);
            }
            KeyCode::Enter => return self.enter(prompt, now),
            code => {
                prompt.error = None;
                match code {
                    KeyCode::Up | KeyCode::Down => self.choose(&mut prompt, code == KeyCode::Up),
                    KeyCode::Tab | KeyCode::BackTab => self.complete_text(&mut prompt, code == KeyCode::Tab),
                    _ => self.edit(&mut prompt, key),
                }
                self.prompt = Some(prompt);
            }
        }
        draw
    }

    fn edit(&mut self, prompt: &mut Prompt, key: KeyEvent) {
        if let Some(request) = to_input_request(&Event::Key(key)) {
            prompt.handle(request);
        }
        (prompt.completion, prompt.back) = (None, 0);
        self.follow_typing(prompt);
    }

    /// Selects a match, or goes through the texts that were entered before.
    fn choose(&mut self, prompt: &mut Prompt, is_up: bool) {
        if let PromptPurpose::Palette { found, selected } = &mut prompt.purpose
            && !(is_up && *selected == 0)
        {
            let by = if is_up { -1 } else { 1 };
            *selected = selected.saturating_add_signed(by).min(found.len().saturating_sub(1));
            return;
        }
        if let PromptPurpose::Experiment(form) = &mut prompt.purpose {
            form.turn(is_up);
            let text = form.text(form.field()).to_owned();
            prompt.preset_text(&text);
            prompt.completion = None;
            return;
        }
        let texts = self.prompt_history.of(&prompt.purpose);
        let back = if is_up { prompt.back + 1 } else { prompt.back.saturating_sub(1) };
        if back > texts.len() || back == prompt.back {
            return;
        }
        if prompt.back == 0 {
            prompt.draft = prompt.text().to_owned();
        }
        let text = if back == 0 { prompt.draft.clone() } else { texts[texts.len() - back].clone() };
        prompt.set_text(&text);
        (prompt.completion, prompt.back) = (None, back);
        self.follow_typing(prompt);
    }

    /// Takes what was typed; what is refused stays to be mended, with the reason beneath.
    fn enter(&mut self, mut prompt: Prompt, now: ClockReading) -> Vec<Effect> {
        match self.submit(&prompt, now) {
            Ok(effects) => {
                self.prompt_history.keep(&prompt.purpose, prompt.text());
                effects
            }
            Err(why) => {
                prompt.error = Some(why);
                self.prompt = Some(prompt);
                vec![Effect::Draw(Urgency::Now)]
            }
        }
    }

    /// Updates filters and matches after each character.
    pub(crate) fn follow_typing(&mut self, prompt: &mut Prompt) {
        match &prompt.purpose {
            PromptPurpose::Filter(list) => self.table_mut(*list).set_filter(prompt.text()),
            PromptPurpose::Help => {
                prompt.text().clone_into(&mut self.help.search);
                self.screen = Screen::Help { offset: 0 };
            }
            PromptPurpose::Palette { .. } => {
                let found = palette::find(self, prompt.text());
                prompt.purpose = PromptPurpose::Palette { found, selected: 0 };
            }
            PromptPurpose::Experiment(_) => {
                let text = prompt.text().to_owned();
                if let PromptPurpose::Experiment(form) = &mut prompt.purpose {
                    self.set_field(form, &text);
                }
            }
            PromptPurpose::Value(_)
            | PromptPurpose::FileName
            | PromptPurpose::Recording
            | PromptPurpose::Moment => {}
        }
    }

    fn give_up_typing(&mut self, prompt: &Prompt, now: ClockReading) {
        match &prompt.purpose {
            PromptPurpose::Filter(list) => self.table_mut(*list).set_filter(""),
            PromptPurpose::Value(name) => self.say(format!("{name}: what was typed is dropped"), now),
            PromptPurpose::Help => self.help.search.clear(),
            _ => {}
        }
    }

    /// Carries out a prompt with its text.
    ///
    /// # Errors
    /// With what can be typed instead.
    fn submit(&mut self, prompt: &Prompt, now: ClockReading) -> Result<Vec<Effect>, String> {
        match &prompt.purpose {
            PromptPurpose::Filter(_) | PromptPurpose::Help => {}
            PromptPurpose::Value(name) => self.stage_text(name, prompt.text())?,
            PromptPurpose::Experiment(form) => {
                self.check_form(form)?;
                self.last_form = Some((**form).clone());
                let command = Command::Experiment(form.plan());
                return Ok(vec![Effect::Draw(Urgency::Now), Effect::Send(command)]);
            }
            PromptPurpose::Moment => {
                let us = self.typed_moment(prompt.text())?;
                self.go_to(us, now);
            }
            PromptPurpose::FileName => return self.export_to(prompt.text()),
            PromptPurpose::Recording => {
                let command = Command::Record(recording_path(prompt.text())?);
                return Ok(vec![Effect::Draw(Urgency::Now), Effect::Send(command)]);
            }
            PromptPurpose::Palette { found, selected } => match found.get(*selected).cloned() {
                Some(PaletteEntry::Command(binding)) => return Ok(want(self, binding.intent, now)),
                Some(PaletteEntry::SortBy { list, column, .. }) => self.table_mut(list).order_by(column),
                Some(PaletteEntry::Setting(name)) => {
                    self.screen = Screen::Tuning;
                    self.select_setting(&name);
                }
                Some(PaletteEntry::Pane(id)) => self.focus_pane(id),
                Some(PaletteEntry::Client(id)) => self.show_client(id),
                Some(PaletteEntry::Route(id, _)) => {
                    self.routes.set_filter("");
                    (self.routes.selected, self.routes.opened) = (Some(id), Some(id));
                    self.screen = Screen::Details(List::Routes);
                }
                Some(PaletteEntry::Run(id, _)) => self.show_run(id),
                None => return Err("nothing of that name: try another word".to_owned()),
            },
        }
        Ok(vec![Effect::Draw(Urgency::Now)])
    }

    fn show_client(&mut self, id: ClientId) {
        self.clients.set_filter("");
        (self.clients.selected, self.clients.opened) = (Some(id), Some(id));
        self.screen = Screen::Details(List::Clients);
    }
}
