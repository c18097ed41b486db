//! The prompt: a filter, a value or a search that is being typed.

use std::path::{Path, PathBuf};

use tui_input::{Input, InputRequest};

use super::completion::Completion;
use super::entry::PaletteEntry;
use crate::input::intent::List;
use crate::screens::experiments::form::{ExperimentForm, FormField};

/// The maximum number of characters.
pub(crate) const TEXT_MAX: usize = 200;

/// The text that is being typed, and its purpose.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    pub(crate) purpose: PromptPurpose,
    input: Input,
    /// True while the whole text is selected, so that the first typed character replaces it.
    pub(crate) is_selected: bool,
    pub(crate) error: Option<String>,
    pub(crate) completion: Option<Completion>,
    /// How far back in the history the text was taken from; 0 for the text that was typed.
    pub(crate) back: usize,
    /// The text that was typed before going back in the history.
    pub(crate) draft: String,
}

#[derive(Clone, Debug)]
pub(crate) enum PromptPurpose {
    Filter(List),
    Help,
    /// A value of the setting with this name.
    Value(String),
    Experiment(Box<ExperimentForm>),
    Moment,
    /// The base name of the files for the view.
    FileName,
    Recording,
    /// A search, with its matches and the selected one.
    Palette {
        /// The matches, best first.
        found: Vec<PaletteEntry>,
        selected: usize,
    },
}

impl PromptPurpose {
    /// The prompts of a kind share their history.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Filter(list) => list.name(),
            Self::Help => "help",
            Self::Value(_) => "value",
            Self::Experiment(_) => "experiment",
            Self::Moment => "moment",
            Self::FileName => "file",
            Self::Recording => "recording",
            Self::Palette { .. } => "palette",
        }
    }
}

impl Prompt {
    pub(crate) fn new(purpose: PromptPurpose, text: String) -> Self {
        Self {
            purpose,
            input: Input::new(text),
            is_selected: false,
            error: None,
            completion: None,
            back: 0,
            draft: String::new(),
        }
    }

    /// Returns a prompt with a value that the first typed character replaces.
    pub(crate) fn preset(purpose: PromptPurpose, text: &str) -> Self {
        let mut prompt = Self::new(purpose, String::new());
        prompt.preset_text(text);
        prompt
    }

    pub(crate) fn preset_text(&mut self, text: &str) {
        self.set_text(text);
        self.is_selected = !text.is_empty();
    }

    pub(crate) fn set_text(&mut self, text: &str) {
        self.input = Input::new(text.to_owned());
        self.is_selected = false;
    }

    pub(crate) fn handle(&mut self, request: InputRequest) {
        use InputRequest::{DeleteNextChar, DeletePrevChar, InsertChar};
        let before = self.input.clone();
        let replaces = matches!(request, InsertChar(_) | DeletePrevChar | DeleteNextChar);
        if std::mem::take(&mut self.is_selected) && replaces {
            self.input.reset();
        }
        self.input.handle(request);
        if self.text().chars().count() > TEXT_MAX {
            self.input = before;
        }
    }

    pub(crate) fn form_field(&self) -> Option<FormField> {
        match &self.purpose {
            PromptPurpose::Experiment(form) => Some(form.field()),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    /// Returns the number of characters before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.input.cursor()
    }
}

/// Returns whether a name is that of a report page.
pub(crate) fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "html")
}

/// Returns the file of a recording, whose name may be typed without its ending.
///
/// # Errors
/// If a file cannot have this name.
pub(crate) fn recording_path(name: &str) -> Result<PathBuf, String> {
    let name = name.trim();
    if name.is_empty() || name.ends_with('/') {
        return Err("a recording needs a file name".to_owned());
    }
    let is_whole = Path::new(name).extension().is_some_and(|ending| ending == "journal");
    let ending = if is_whole { "" } else { ".journal" };
    Ok(PathBuf::from(format!("{name}{ending}")))
}
