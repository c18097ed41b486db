//! The form of an experiment on the settings of the shown run.

use std::time::Duration;

use model::alerts::Alerts;
use model::figures::{Figure, Statistic};
use records::metrics::LatencyClass;
use records::setting::{Applies, Setting};

use super::form::{ExperimentForm, FormField};
use crate::screens::prompt::state::{Prompt, PromptPurpose};
use crate::state::State;

/// The lengths that a plan knows by name.
const PRESETS: [&str; 3] = ["quick", "normal", "careful"];

impl State {
    /// Opens the prompt for an experiment on the selected setting, or else the first one that can change
    /// during the run.
    pub(crate) fn type_experiment(&mut self) {
        let can_change = |setting: &&Setting| {
            setting.applies != Applies::Restart
                && !Alerts::is_setting(&setting.name)
                && self.control.refusal(&setting.name).is_none()
        };
        let selected = self.settings().get(self.tuning.selected).filter(can_change);
        let setting = selected.or_else(|| self.settings().iter().find(can_change));
        let form = self
            .last_form
            .clone()
            .filter(|form| setting.is_none_or(|setting| setting.name == form.text(FormField::Setting)));
        let form = form.unwrap_or_else(|| ExperimentForm::of(setting));
        let text = form.text(form.field()).to_owned();
        self.prompt = Some(Prompt::preset(PromptPurpose::Experiment(Box::new(form)), &text));
    }

    /// Returns the setting of a form, which may be named without its group.
    fn setting_of(&self, form: &ExperimentForm) -> Option<&Setting> {
        let name = form.text(FormField::Setting);
        self.settings().iter().find(|s| s.name == name || s.name.ends_with(&format!(".{name}")))
    }

    /// Changes the field that is typed. A new setting brings its value for A, unless a person typed A.
    pub(crate) fn set_field(&self, form: &mut ExperimentForm, text: &str) {
        form.set(text);
        if form.field() == FormField::Setting
            && let Some(setting) = self.setting_of(form)
        {
            form.set_baseline(setting);
        }
    }

    /// Says what the form still lacks; `None` if each field that must be typed has a text.
    pub(crate) fn missing(&self, form: &ExperimentForm) -> Option<String> {
        let name = form.text(FormField::Setting);
        let name = self.setting_of(form).map_or(name, |setting| &setting.name);
        let required = [FormField::Setting, FormField::A, FormField::B];
        let field = required.into_iter().find(|field| form.text(*field).is_empty())?;
        Some(match field {
            FormField::Setting => format!("{}: type {}", field.label(), field.hint()),
            _ => format!("{}: type a value of {name}", field.label()),
        })
    }

    /// Says how long the experiment of the form takes.
    ///
    /// # Errors
    /// With what is missing, or wrong with a field.
    pub(crate) fn check_form(&self, form: &ExperimentForm) -> Result<String, String> {
        if let Some(missing) = self.missing(form) {
            return Err(missing);
        }
        let name = form.text(FormField::Setting);
        let name = self.setting_of(form).map_or(name, |setting| &setting.name);
        let parse = |field: FormField| self.parse_value(name, form.text(field)).map(|(_, value)| value);
        if parse(FormField::A)? == parse(FormField::B)? {
            let [a, b] = [FormField::A, FormField::B].map(|field| form.text(field));
            return Err(format!("{name} {a} and {b}: both values are the same"));
        }
        let length = form.text(FormField::Length);
        if !length.is_empty() && !PRESETS.contains(&length) {
            return Err(format!("length cannot be {length}: expected {}", PRESETS.join(", ")));
        }
        let interval = Duration::from_micros(self.live.interval_us().max(1));
        (self.options.check_plan)(&form.plan(), self.settings(), interval)
    }

    pub(crate) fn form_words(&self, form: &ExperimentForm) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match form.field() {
            FormField::Setting => {
                let can_change = |setting: &&Setting| setting.applies != Applies::Restart;
                self.settings().iter().filter(can_change).map(|setting| setting.name.clone()).collect()
            }
            FormField::A | FormField::B => self.values_of(form.text(FormField::Setting)),
            FormField::Length => words(&PRESETS),
            FormField::Pairs => words(&["6", "12", "24", "48"]),
            FormField::Block => words(&["5s", "10s", "20s", "60s"]),
            FormField::Metric => {
                let shown = self.figures().map_or(&[][..], |figures| &figures.latencies);
                let classes: Vec<LatencyClass> = shown.iter().map(|row| row.class).collect();
                let latency = |class: LatencyClass| {
                    [0.5, 0.99].map(|q| Figure::Latency(class, Statistic::Percentile(q)).short_name())
                };
                let latencies = classes.into_iter().flat_map(latency);
                latencies.chain(Figure::quotients().map(|figure| figure.short_name())).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use records::kinds::Body;
    use records::setting::Value;

    use super::*;
    use crate::app::action::{Action, Effect};
    use crate::app::testing::{TestDashboard, options};

    /// Opens the form at the field of the setting.
    fn form(stage: &mut TestDashboard) {
        stage.press('a');
        stage.press('e');
        go(stage, KeyCode::Up);
        go(stage, KeyCode::Up);
    }

    fn go(stage: &mut TestDashboard, code: KeyCode) {
        stage.act(Action::Type(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    fn press(stage: &mut TestDashboard, keys: &str) {
        for key in keys.chars() {
            stage.press(key);
        }
    }

    fn text_of(stage: &TestDashboard, field: FormField) -> String {
        match stage.state.prompt.as_ref().map(|prompt| &prompt.purpose) {
            Some(PromptPurpose::Experiment(form)) => form.text(field).to_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_setting_brings_its_value_for_a_unless_a_was_typed() {
        let mut stage = TestDashboard::live(options(), 3);
        form(&mut stage);
        assert_eq!(text_of(&stage, FormField::A), "5000/s");
        press(&mut stage, "load.keep-alive");
        assert_eq!(text_of(&stage, FormField::Setting), "load.keep-alive", "it replaces the name");
        assert_eq!(text_of(&stage, FormField::A), "10");
        press(&mut stage, "\x15resume");
        assert_eq!(text_of(&stage, FormField::A), "80%", "by its short name");
        go(&mut stage, KeyCode::Down);
        press(&mut stage, "70%");
        go(&mut stage, KeyCode::Up);
        press(&mut stage, "load.rate");
        assert_eq!(text_of(&stage, FormField::A), "70%");
    }

    #[test]
    fn the_hint_of_an_empty_field_is_shown_once() {
        let mut stage = TestDashboard::live(options(), 3);
        press(&mut stage, "ae");
        assert_eq!(stage.screen(120, 40).matches("the second value").count(), 1);
        press(&mut stage, "4");
        assert_eq!(stage.screen(120, 40).matches("the second value").count(), 1);
    }

    #[test]
    fn the_form_says_how_few_pairs_are_enough() {
        let mut stage = TestDashboard::live(options(), 3);
        press(&mut stage, "ae");
        for size in [(120, 40), (80, 24)] {
            let screen = stage.screen(size.0, size.1);
            assert!(screen.contains("pairs   6 or more, 7 for several metrics"), "{screen}");
        }
    }

    #[test]
    fn nothing_is_wrong_before_anything_is_typed() {
        let coloured = crate::options::Options {
            palette: crate::theme::Palette::Coloured(crate::theme::Colours::DARK),
            ..options()
        };
        let mut stage = TestDashboard::live(coloured, 3);
        press(&mut stage, "ae");
        let warning = stage.state.theme.warning().fg.unwrap().to_string();
        let is_warned = |stage: &mut TestDashboard| {
            let screen = stage.styled(120, 40);
            let looks = screen.lines().skip_while(|line| !line.starts_with("B: type a value of")).nth(1);
            looks.is_none_or(|looks| looks.contains(&warning))
        };
        assert!(!is_warned(&mut stage));
        press(&mut stage, "\x13");
        assert!(is_warned(&mut stage), "it cannot start so");
    }

    #[test]
    fn a_missing_value_is_asked_for_with_its_setting() {
        let mut stage = TestDashboard::live(options(), 3);
        form(&mut stage);
        for (keys, name) in [("load.keep-alive", "load.keep-alive"), ("\x15resume", "load.resume")] {
            press(&mut stage, keys);
            let screen = stage.screen(120, 40);
            assert!(screen.contains(&format!("B: type a value of {name}")), "{screen}");
        }
        go(&mut stage, KeyCode::Tab);
        press(&mut stage, "\x13");
        let screen = stage.screen(120, 40);
        assert!(screen.contains("B: type a value of load.resume"), "{screen}");
    }

    #[test]
    fn enter_goes_through_the_fields_and_starts_in_the_last() {
        let is_started = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Send(_)));
        let mut stage = TestDashboard::live(options(), 3);
        form(&mut stage);
        press(&mut stage, "load.keep-alive\n\n7");
        assert_eq!(text_of(&stage, FormField::B), "7");
        assert!(stage.screen(120, 40).contains("Ctrl-s starts, Enter goes on: 6m in all"));
        for _ in FormField::B as usize..FormField::Metric as usize {
            assert!(!is_started(&stage.press('\n')));
        }
        assert!(stage.screen(120, 40).contains("Enter starts: 6m in all"), "{}", stage.screen(120, 40));
        assert!(is_started(&stage.press('\n')));
        assert!(stage.state.prompt.is_none());
    }

    #[test]
    fn two_equal_values_are_refused() {
        let mut stage = TestDashboard::live(options(), 3);
        form(&mut stage);
        go(&mut stage, KeyCode::Down);
        go(&mut stage, KeyCode::Down);
        press(&mut stage, "5000\x13");
        let screen = stage.screen(120, 40);
        assert!(screen.contains("load.rate 5000/s and 5000: both values are the same"), "{screen}");
    }

    #[test]
    fn values_that_the_setting_reads_alike_are_refused() {
        let mut stage = TestDashboard::empty(options());
        let mut start = stage.run.start();
        let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
        let keepalive = run.settings.iter_mut().find(|setting| setting.name == "load.keep-alive").unwrap();
        keepalive.value = Value::Text("off".into());
        stage.read(vec![start]);
        stage.pass(1);
        form(&mut stage);
        press(&mut stage, "keep-alive");
        go(&mut stage, KeyCode::Down);
        go(&mut stage, KeyCode::Down);
        press(&mut stage, "1\x13");
        let screen = stage.screen(120, 40);
        assert!(screen.contains("load.keep-alive off and 1: both values are the same"), "{screen}");
        press(&mut stage, "0");
        assert!(stage.screen(120, 40).contains("Ctrl-s starts"), "10 is another value");
    }
}
