//! The form of an experiment: its fields, and the plan that they make in the words of `--ab`.

use records::setting::Setting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormField {
    Setting,
    A,
    B,
    Length,
    Pairs,
    Block,
    Metric,
}

impl FormField {
    /// All fields, in order.
    pub(crate) const ALL: [Self; 7] =
        [Self::Setting, Self::A, Self::B, Self::Length, Self::Pairs, Self::Block, Self::Metric];

    pub(crate) fn is_last(self) -> bool {
        Self::ALL.last() == Some(&self)
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::A => "A",
            Self::B => "B",
            Self::Length => "length",
            Self::Pairs => "pairs",
            Self::Block => "block",
            Self::Metric => "metric",
        }
    }

    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Setting => "what to compare: a setting that can change now",
            Self::A => "the first value, the baseline",
            Self::B => "the second value",
            Self::Length => "quick (1 min), normal (6 min) or careful (24 min)",
            Self::Pairs => "6 or more, 7 for several metrics; empty: by the length",
            Self::Block => "such as 10s; empty: that of the length",
            Self::Metric => "joined by +; empty: what the setting acts on",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ExperimentForm {
    texts: [String; FormField::ALL.len()],
    /// The index of the field that is typed.
    pub(crate) selected: usize,
    /// True if a person typed A, so that it stays when the setting changes.
    is_a_typed: bool,
}

impl ExperimentForm {
    /// Returns the form for a setting, with its value as the baseline.
    pub(crate) fn of(setting: Option<&Setting>) -> Self {
        let mut form = Self::default();
        if let Some(setting) = setting {
            form.texts[FormField::Setting as usize].clone_from(&setting.name);
            form.texts[FormField::A as usize] = setting.shown(&setting.value);
            form.selected = FormField::B as usize;
        }
        "normal".clone_into(&mut form.texts[FormField::Length as usize]);
        form
    }

    pub(crate) fn text(&self, field: FormField) -> &str {
        self.texts[field as usize].trim()
    }

    pub(crate) fn field(&self) -> FormField {
        FormField::ALL[self.selected]
    }

    /// Changes the field that is typed.
    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.texts[self.selected]);
        if self.field() == FormField::A {
            self.is_a_typed = !self.text(FormField::A).is_empty();
        }
    }

    /// Takes the value of a setting for A, unless a person typed A.
    pub(super) fn set_baseline(&mut self, setting: &Setting) {
        if !self.is_a_typed {
            self.texts[FormField::A as usize] = setting.shown(&setting.value);
        }
    }

    /// Goes to the next field, or the one before.
    pub(crate) fn turn(&mut self, is_up: bool) {
        let n = FormField::ALL.len();
        self.selected = (self.selected + if is_up { n - 1 } else { 1 }) % n;
    }

    /// Returns the plan in the words of `--ab`.
    pub(crate) fn plan(&self) -> String {
        let text = |field| self.text(field);
        let mut plan = format!("{}={}..{}", text(FormField::Setting), text(FormField::A), text(FormField::B));
        for (word, field) in [
            ("", FormField::Length),
            ("pairs=", FormField::Pairs),
            ("block=", FormField::Block),
            ("metric=", FormField::Metric),
        ] {
            if !text(field).is_empty() {
                plan.extend([",", word, text(field)]);
            }
        }
        plan
    }
}
