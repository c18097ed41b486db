//! The earlier texts of the session.

use std::collections::HashMap;

use super::state::PromptPurpose;

/// The number of texts that are kept of each kind of prompt.
const HISTORY_MAX: usize = 50;

/// The texts that were entered in this session, by kind of prompt, the latest at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptHistory(HashMap<&'static str, Vec<String>>);

impl PromptHistory {
    /// Returns the texts of a kind of prompt.
    pub(crate) fn of(&self, purpose: &PromptPurpose) -> &[String] {
        self.0.get(purpose.kind()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn keep(&mut self, purpose: &PromptPurpose, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let texts = self.0.entry(purpose.kind()).or_default();
        texts.retain(|kept| kept != text);
        texts.push(text.to_owned());
        texts.drain(..texts.len().saturating_sub(HISTORY_MAX));
    }
}
