//! The present settings of a run.

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::events::timeline::{Markers, TimelineEvent};
use records::kinds::heap_size::HeapSize as _;
use records::setting::{SETTINGS_MAX, Setting, Value, put_setting};

/// The settings of a run, each once.
#[derive(Debug, Default)]
pub(in crate::runs) struct RunSettings(Vec<Setting>);

impl RunSettings {
    /// Adds the settings that a run began with.
    pub(in crate::runs) fn begin(&mut self, settings: &[Setting]) {
        settings.clone_into(&mut self.0);
    }

    pub(in crate::runs) fn apply(&mut self, after: Setting) {
        put_setting(&mut self.0, after);
    }

    /// Each setting once: as all runs have it, or each run's value with its name.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut all: Vec<Setting> = Vec::new();
        for setting in members.iter().flat_map(|(_, settings)| settings.all()) {
            if all.len() < SETTINGS_MAX && !all.iter().any(|known| known.name == setting.name) {
                all.push(setting.clone());
            }
        }
        for setting in &mut all {
            let values: Vec<_> = members
                .iter()
                .filter_map(|(run, settings)| Some((run.name, &settings.get(&setting.name)?.value)))
                .collect();
            if values.iter().any(|(_, value)| **value != setting.value) {
                let each: Vec<String> =
                    values.iter().map(|(name, value)| format!("{value} ({name})")).collect();
                setting.value = Value::Text(each.join(", "));
                setting.range = None;
            }
        }
        Self(all)
    }

    /// Every setting with its value at a moment, as far as its changes are kept.
    pub(in crate::runs) fn resumed_at(&self, us: u64, began: &[Setting], markers: &Markers) -> Self {
        let then = |now: &Setting| {
            let changes = markers.iter().filter_map(|marker| match &marker.event {
                TimelineEvent::Change { after, .. } if after.name == now.name => {
                    Some((marker.mono_us, &**after))
                }
                TimelineEvent::Change { .. } | TimelineEvent::Mark { .. } | TimelineEvent::Alert { .. } => {
                    None
                }
            });
            let mut changes = changes.peekable();
            if changes.peek().is_none() {
                return Some(now.clone());
            }
            let at_first = began.iter().find(|setting| setting.name == now.name);
            let before = changes.take_while(|(at_us, _)| *at_us <= us).last().map(|(_, after)| after);
            before.or(at_first).cloned()
        };
        Self(self.0.iter().filter_map(then).collect())
    }

    pub(in crate::runs) fn all(&self) -> &[Setting] {
        &self.0
    }

    pub(in crate::runs) fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}
