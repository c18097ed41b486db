//! What completes the text of a prompt.

/// Completions of a text, and the selected one.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    /// Whole texts for the prompt.
    pub(crate) texts: Vec<String>,
    pub(crate) at: usize,
}

impl Completion {
    /// Takes the next one, or the one before.
    pub(crate) fn turn(&mut self, by: isize) {
        let n = self.texts.len() as isize;
        self.at = (self.at as isize + by).rem_euclid(n) as usize;
    }

    pub(crate) fn text(&self) -> &str {
        &self.texts[self.at]
    }
}
