//! The words that can be typed.

use model::runs::{Run, TimelineEvent};
use records::setting::{SettingKind, Value};

use super::completion::Completion;
use super::entry::PaletteEntry;
use super::state::{Prompt, PromptPurpose};
use crate::input::intent::List;
use crate::panes::pane;
use crate::state::{State, shown_run};

const OFFERED_MAX: usize = 200;
/// Times that are offered besides marks.
const MOMENTS: [&str; 5] = ["-30s", "-1m", "-5m", "-1h", "+00:00"];

impl State {
    /// Takes a completion; the next one if there is one already.
    pub(crate) fn complete_text(&mut self, prompt: &mut Prompt, is_forward: bool) {
        if let Some(completion) = &mut prompt.completion {
            completion.turn(if is_forward { 1 } else { -1 });
        } else {
            let text = prompt.text().to_owned();
            let found = self.completion(&prompt.purpose, &text);
            prompt.error = found.is_none().then(|| "nothing completes this".to_owned());
            prompt.completion = found;
        }
        if let Some(completion) = prompt.completion.take() {
            prompt.set_text(completion.text());
            self.follow_typing(prompt);
            prompt.completion = Some(completion);
        }
    }

    /// Returns the completions of a text; `None` without any.
    fn completion(&self, purpose: &PromptPurpose, text: &str) -> Option<Completion> {
        // Of a list, the last item is completed.
        let (head, item) = match self.separator(purpose) {
            Some(sign) => {
                text.rsplit_once(sign).map_or(("", text), |(head, _)| text.split_at(head.len() + 1))
            }
            None => ("", text),
        };
        let words = self.words(purpose);
        let begins = words.iter().filter(|word| word.starts_with(item.trim())).take(OFFERED_MAX);
        let mut texts: Vec<String> = begins.map(|word| format!("{head}{word}")).collect();
        if texts.is_empty() {
            let holds = words.iter().filter(|word| word.contains(item.trim())).take(OFFERED_MAX);
            texts.extend(holds.map(|word| format!("{head}{word}")));
        }
        // A whole word is not its own completion, unless it is the only one: then the others follow.
        if texts.len() == 1 && texts[0] == text {
            texts = words;
            let at = texts.iter().position(|word| word == text).map_or(0, |at| at + 1);
            let at = at % texts.len();
            return Some(Completion { texts, at });
        }
        (!texts.is_empty()).then_some(Completion { texts, at: 0 })
    }

    /// Returns the separator of a list; `None` for a single word.
    fn separator(&self, purpose: &PromptPurpose) -> Option<char> {
        match purpose {
            PromptPurpose::Filter(_) => Some(' '),
            PromptPurpose::Value(name) => match self.info(name).map(|info| &info.kind) {
                Some(SettingKind::ListOf(_)) => Some(','),
                _ => None,
            },
            _ => None,
        }
    }

    fn words(&self, purpose: &PromptPurpose) -> Vec<String> {
        match purpose {
            PromptPurpose::Filter(list) => {
                let comparisons = self.table(*list).comparisons().into_iter();
                comparisons.chain(self.names_in(*list)).collect()
            }
            PromptPurpose::Value(name) => self.values_of(name),
            PromptPurpose::Moment => {
                let run = shown_run(&self.model, &self.options);
                let marks = run.into_iter().flat_map(Run::markers).filter_map(|marker| match marker.event {
                    TimelineEvent::Mark { number, .. } => Some(format!("mark:{number}")),
                    TimelineEvent::Change { .. } | TimelineEvent::Alert { .. } => None,
                });
                marks.chain(MOMENTS.map(str::to_owned)).collect()
            }
            PromptPurpose::Palette { found, .. } => found.iter().map(PaletteEntry::words).collect(),
            PromptPurpose::Experiment(form) => self.form_words(form),
            PromptPurpose::FileName | PromptPurpose::Recording | PromptPurpose::Help => Vec::new(),
        }
    }

    /// Returns the names of the rows of a list.
    fn names_in(&self, list: List) -> Vec<String> {
        if let Some(id) = list.pane() {
            return (pane(id).names)(self);
        }
        let runs = if list == List::Runs { self.runs() } else { Vec::new() };
        let mut hosts: Vec<_> = runs.into_iter().map(|run| run.hostname().to_owned()).collect();
        // Runs are by host already.
        hosts.dedup();
        hosts
    }

    pub(crate) fn values_of(&self, name: &str) -> Vec<String> {
        let Some(setting) = self.settings().iter().find(|setting| setting.name == name) else {
            return Vec::new();
        };
        let info = self.info(name);
        let words = info.map_or(&[][..], |info| info.kind.words());
        match &setting.value {
            Value::Flag(_) => ["on", "off"].map(str::to_owned).into(),
            _ if !words.is_empty() => words.to_vec(),
            value => {
                let default = info.and_then(|info| info.default.as_ref());
                let ends = setting.range.map(|(low, high)| [low, high].map(Value::Number));
                let ends = ends.into_iter().flatten().filter(|end| *end != Value::Number(f64::INFINITY));
                let mut values: Vec<Value> = default.cloned().into_iter().chain([value.clone()]).collect();
                values.extend(ends);
                let mut texts: Vec<String> = values.iter().map(|value| setting.shown(value)).collect();
                texts.sort_unstable();
                texts.dedup();
                texts
            }
        }
    }
}
