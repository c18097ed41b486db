//! The list of settings: selection and staged values.

use model::alerts::{Alert, Alerts};
use model::runs::{Level, Run};
use records::command::Command;
use records::setting::{Applies, Setting, SettingInfo, SettingKind, Value};
use records::text::clean;

use super::model::Tuning;
use super::quick_control;
use crate::clock::ClockReading;
use crate::input::intent::Direction;
use crate::screens::settings::changes::AppliedChange;
use crate::state::control::within;
use crate::state::{State, shown_run};

impl State {
    pub(crate) fn settings(&self) -> &[Setting] {
        self.run().map_or(&[], |run| run.settings())
    }

    /// Returns whether an experiment compares this setting at present, so that nobody may change it.
    pub(crate) fn is_compared(&self, name: &str) -> bool {
        self.run().and_then(Run::compared_setting) == Some(name)
    }

    pub(crate) fn info(&self, name: &str) -> Option<&SettingInfo> {
        SettingInfo::find(&self.options.settings, name)
    }

    /// Returns what a setting would be if nobody had given or changed it: its default, else its value at the start.
    pub(crate) fn usual(&self, setting: &Setting) -> String {
        let default = self.info(&setting.name).and_then(|info| info.default.as_ref());
        let at_start = || self.run()?.setting_at(self.run()?.began_us(), &setting.name);
        default
            .map(|value| clean::text(&value.to_string()))
            .or_else(at_start)
            .unwrap_or_else(|| setting.value.to_string())
    }

    /// Returns the changes of settings, the latest first.
    pub(crate) fn setting_changes(&self) -> Vec<AppliedChange> {
        self.run().map_or_else(Vec::new, |run| {
            crate::screens::settings::changes::setting_changes(run, self.control.made())
        })
    }

    fn selected_setting(&self) -> Option<Setting> {
        self.settings().get(self.tuning.selected).cloned()
    }

    pub(crate) fn select_setting(&mut self, name: &str) {
        self.tuning.selected = self.settings().iter().position(|setting| setting.name == name).unwrap_or(0);
    }

    /// Stages the next value of the selected setting.
    pub(crate) fn step_setting(&mut self, direction: Direction) {
        let Some(setting) = self.selected_setting() else { return };
        let info = self.info(&setting.name);
        let from = self.tuning.staged(&setting.name).unwrap_or(&setting.value);
        let next = match (from, info.map(|info| &info.kind)) {
            (Value::Text(from), Some(SettingKind::OneOf(words))) => neighbour(words, from, direction),
            (from, _) => quick_control::step(from, direction).map(|value| within(&setting, value)),
        };
        let next = next.ok_or_else(|| format!("{} has no steps: type a value", setting.name));
        match next.and_then(|value| setting.check(info, &value).map(|()| value)) {
            Ok(value) => self.tuning.stage(&setting, value),
            Err(why) => self.tuning.complaint = Some(why),
        }
    }

    /// Parses a value typed for a setting.
    ///
    /// # Errors
    /// With what it may be, or if there is no such setting.
    pub(crate) fn parse_value(&self, name: &str, text: &str) -> Result<(Setting, Value), String> {
        let setting = self.settings().iter().find(|setting| setting.name == name);
        let setting = setting.ok_or_else(|| format!("there is no setting {name}"))?;
        if Alerts::is_setting(name) && !Alerts::is_off(&Value::Text(text.to_owned())) {
            text.parse::<Alert>().map_err(|error| error.to_string())?;
        }
        setting.parse(self.info(name), text).map(|value| (setting.clone(), value))
    }

    /// Stages a typed value.
    ///
    /// # Errors
    /// With what it may be.
    pub(crate) fn stage_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let (setting, value) = self.parse_value(name, text)?;
        self.tuning.stage(&setting, value);
        Ok(())
    }

    /// Names the first staged value, and how many more there are; `None` if nothing is staged.
    pub(crate) fn staged_words(&self) -> Option<String> {
        let (name, value) = self.tuning.staged.first()?;
        let setting = self.settings().iter().find(|setting| setting.name == *name)?;
        let more = match self.tuning.count() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{name} {}{more}", setting.shown(value)))
    }

    /// Drops the staged value of the selected setting.
    pub(crate) fn unstage(&mut self, now: ClockReading) {
        let Some(setting) = self.selected_setting() else { return };
        let name = &setting.name;
        let text = match self.tuning.staged(name) {
            Some(staged) => {
                let stays = setting.shown(&setting.value);
                format!("dropped: {name} {}; it stays {stays}", setting.shown(staged))
            }
            None => format!("nothing is staged for {name}"),
        };
        self.tuning.stage(&setting, setting.value.clone());
        self.say(text, now);
    }

    /// Drops all staged values.
    pub(crate) fn drop_staged(&mut self, now: ClockReading) {
        let words = self.staged_words().unwrap_or_default();
        self.tuning = Tuning { selected: self.tuning.selected, ..Tuning::default() };
        self.say(format!("dropped: {words}"), now);
    }

    /// Returns the initial text of the prompt; `None` if the setting cannot be typed.
    pub(crate) fn typed_from(&mut self) -> Option<(String, String)> {
        let setting = self.selected_setting()?;
        let value = self.tuning.staged(&setting.name).unwrap_or(&setting.value).clone();
        if setting.applies == Applies::Restart {
            self.tuning.complaint = setting.check(None, &setting.value).err();
            return None;
        }
        Some((setting.name.clone(), setting.shown(&value)))
    }

    /// Requests all staged changes.
    pub(crate) fn apply_staged(&mut self, now: ClockReading) -> Vec<Command> {
        let staged = std::mem::take(&mut self.tuning.staged);
        self.tuning.complaint = staged.is_empty().then(|| "nothing is staged".to_owned());
        staged.into_iter().filter_map(|(name, value)| self.ask(&name, value, now)).collect()
    }

    fn ask(&mut self, name: &str, value: Value, now: ClockReading) -> Option<Command> {
        let run = shown_run(&self.model, &self.options);
        let asked = self.control.ask(run, name, value, now);
        self.sent(asked, now)
    }

    pub(crate) fn undo(&mut self, now: ClockReading) -> Option<Command> {
        let run = shown_run(&self.model, &self.options);
        let asked = self.control.undo(run, now);
        self.sent(asked, now)
    }

    /// Returns the command, or a notice that explains why there is none.
    pub(crate) fn sent(&mut self, asked: Result<Command, String>, now: ClockReading) -> Option<Command> {
        match asked {
            Ok(command) => Some(command),
            Err(why) => {
                self.answer(Level::Warning, why, now);
                None
            }
        }
    }
}

/// Returns the word after or before another one, in a circle.
fn neighbour(words: &[String], from: &str, direction: Direction) -> Option<Value> {
    let at = words.iter().position(|word| word == from)?;
    let step = if direction == Direction::Up { 1 } else { words.len() - 1 };
    Some(Value::Text(words[(at + step) % words.len()].clone()))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use records::kinds::Body;
    use records::setting::{Setting, SettingInfo, Value};

    use crate::app::action::Action;
    use crate::app::testing::{TestDashboard, options};
    use crate::input::intent::{Intent, SettingEdit};
    use crate::screens::prompt::state::Prompt;
    use crate::state::screen::Screen;

    fn press(stage: &mut TestDashboard, keys: &str) {
        for key in keys.chars() {
            stage.press(key);
        }
    }

    fn text(stage: &TestDashboard) -> Option<&str> {
        stage.state.prompt.as_ref().map(Prompt::text)
    }

    #[test]
    fn a_digit_on_a_setting_begins_its_value() {
        let mut stage = TestDashboard::live(options(), 3);
        press(&mut stage, "t70");
        assert_eq!(text(&stage), Some("70"));
        press(&mut stage, "00\n");
        assert!(stage.screen(120, 30).contains("5000/s > 7000/s"), "{}", stage.screen(120, 30));
        press(&mut stage, "jjjjj1");
        assert_eq!(text(&stage), None);
        assert!(stage.screen(120, 30).contains("proxy.listen changes only at a restart"));
    }

    #[test]
    fn the_footer_names_what_is_staged_and_what_is_dropped() {
        let mut stage = TestDashboard::live(options(), 3);
        let footer = |stage: &mut TestDashboard| stage.screen(80, 24).lines().last().unwrap().to_owned();
        press(&mut stage, "t7000");
        assert!(footer(&mut stage).starts_with("Enter stages 5000/s > 7000/s"), "{}", footer(&mut stage));
        press(&mut stage, "\n");
        let staged = "staged, not applied: load.rate 7000/s  Enter apply  Backspace drop  Esc drop all";
        assert_eq!(footer(&mut stage), staged);
        press(&mut stage, "t");
        assert!(footer(&mut stage).starts_with("staged, not applied: load.rate 7000/s  ? help"));
        press(&mut stage, "t");
        stage.act(Action::Want(Intent::Setting(SettingEdit::Unstage)));
        let dropped = "dropped: load.rate 7000/s; it stays 5000/s  ";
        assert!(footer(&mut stage).starts_with(dropped), "{}", footer(&mut stage));
        press(&mut stage, "7000\n");
        stage.act(Action::Want(Intent::Back));
        assert!(footer(&mut stage).starts_with("dropped: load.rate 7000/s  "), "{}", footer(&mut stage));
        assert_eq!((stage.state.screen, stage.state.tuning.count()), (Screen::Tuning, 0));
        stage.act(Action::Want(Intent::Back));
        assert_eq!(stage.state.screen, Screen::Dashboard);
        press(&mut stage, "t7\x1b");
        assert!(footer(&mut stage).starts_with("load.rate: what was typed is dropped"));
    }

    #[test]
    fn a_long_refusal_is_whole_on_a_small_screen() {
        let mut stage = TestDashboard::live(options(), 3);
        press(&mut stage, "te\x156000\n\n");
        let why = "load.rate cannot be 6000: the plan of this load has stages, which set the rate themselves; \
                   start the load with another plan";
        stage
            .act(Action::Update(model::history::Update::Notice(model::runs::Level::Warning, why.to_owned())));
        let screen = stage.screen(40, 10).replace('\n', " ");
        assert!(screen.contains("start the load with another plan"), "{screen}");
    }

    #[test]
    fn an_alert_is_checked_while_it_is_typed() {
        let mut stage = TestDashboard::empty(options());
        let mut start = stage.run.start();
        let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
        let alert =
            Setting { name: "alert.1".into(), value: Value::Text("off".into()), ..run.settings[0].clone() };
        run.settings = vec![alert];
        stage.read(vec![start]);
        stage.pass(1);
        press(&mut stage, "te\x15p99 > 5ms");
        let screen = stage.screen(120, 30);
        assert!(screen.contains("did you mean response.p99, exchange.p99 or"), "{screen}");
        press(&mut stage, "\x15response.p99 > 5ms");
        assert!(!stage.screen(120, 30).contains("did you mean"));
        press(&mut stage, "\x15off");
        assert!(!stage.screen(120, 30).contains("expected"));
    }

    #[test]
    fn a_bound_of_zero_is_called_no_bound() {
        let mut options = options();
        let info = |name: &str, absent| SettingInfo { name: name.into(), absent, ..SettingInfo::default() };
        options.settings =
            vec![info("proxy.connections-per-client", Some("no bound")), info("load.resume", None)];
        let mut stage = TestDashboard::empty(options);
        let mut start = stage.run.start();
        let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
        let zero = |name: &str| Setting {
            name: name.into(),
            value: Value::Number(0.0),
            unit: String::new(),
            ..run.settings[0].clone()
        };
        run.settings = vec![zero("proxy.connections-per-client"), zero("load.resume")];
        stage.read(vec![start]);
        stage.pass(1);
        press(&mut stage, "t");
        let screen = stage.screen(120, 30);
        let row = |name: &str| screen.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(row("connections-per-client").contains(" no bound "), "{screen}");
        assert!(row("load.resume").contains(" 0 "), "{screen}");
    }

    #[test]
    fn the_first_character_replaces_the_value_unless_the_cursor_moved() {
        let mut stage = TestDashboard::live(options(), 3);
        let go = |stage: &mut TestDashboard, code| {
            stage.act(Action::Type(KeyEvent::new(code, KeyModifiers::NONE)));
        };
        press(&mut stage, "te");
        assert_eq!(text(&stage), Some("5000/s"));
        let reversed = "\n    0:b 11:br 17:";
        assert!(stage.styled(120, 30).contains(reversed), "{}", stage.styled(120, 30));
        press(&mut stage, "60");
        assert_eq!(text(&stage), Some("60"));
        assert!(!stage.styled(120, 30).contains(reversed), "{}", stage.styled(120, 30));
        press(&mut stage, "\x1be");
        go(&mut stage, KeyCode::Home);
        press(&mut stage, "1");
        assert_eq!(text(&stage), Some("15000/s"));
        press(&mut stage, "\x1be");
        go(&mut stage, KeyCode::Backspace);
        assert_eq!(text(&stage), Some(""));
    }
}
