//! Values that are staged, and the selected setting.

use records::setting::{Applies, Setting, Value};

/// Values that are staged and not applied yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    pub(crate) selected: usize,
    pub(super) staged: Vec<(String, Value)>,
    /// Why the last value could not be staged.
    pub(crate) complaint: Option<String>,
}

impl Tuning {
    pub(crate) fn staged(&self, name: &str) -> Option<&Value> {
        self.staged.iter().find(|(staged, _)| staged == name).map(|(_, value)| value)
    }

    /// Returns the number of settings with a staged value.
    pub(crate) fn count(&self) -> usize {
        self.staged.len()
    }

    pub(super) fn stage(&mut self, setting: &Setting, value: Value) {
        self.complaint = None;
        self.staged.retain(|(name, _)| *name != setting.name);
        if value != setting.value {
            self.staged.push((setting.name.clone(), value));
        }
    }

    /// Selects the first setting that can change during the run, unless one is already selected.
    pub(crate) fn select_changeable(&mut self, settings: &[Setting]) {
        if self.selected == 0 {
            let changes = |setting: &Setting| setting.applies != Applies::Restart;
            self.selected = settings.iter().position(changes).unwrap_or(0);
        }
    }
}
