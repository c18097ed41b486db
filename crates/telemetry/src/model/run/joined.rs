//! A run whose reading begins again in its middle.

use super::Run;
use crate::model::run::timeline::Deed;
use crate::model::series::Track;
use crate::record::setting::Setting;

impl Run {
    /// What is known of it from before a moment of the monotonic clock, for reading on from there.
    pub(in crate::model) fn joined_at(&self, us: u64, history: usize) -> Self {
        Self {
            began: self.began.clone(),
            first: self.first,
            settings: self.settings_at(us),
            proxy: self.proxy.is_some().then(|| Track::new(None, history)),
            load: self.load.is_some().then(|| Track::new(None, history)),
            clients: self.clients.idle_at(us, history),
            log: self.log.iter().take_while(|line| line.mono_us <= us).cloned().collect(),
            markers: self.markers.until(us),
            is_joined: true,
            ..Self::new(self.id, self.writer.clone(), history)
        }
    }

    /// Every setting as it stood at a moment, as far as its changes are kept.
    fn settings_at(&self, us: u64) -> Vec<Setting> {
        let began = self.began.as_ref().map(|(_, run)| &*run.settings).unwrap_or_default();
        let then = |now: &Setting| {
            let changes = self.markers.iter().filter_map(|marker| match &marker.deed {
                Deed::Change { after, .. } if after.name == now.name => Some((marker.mono_us, &**after)),
                _ => None,
            });
            let mut changes = changes.peekable();
            changes.peek().is_none().then(|| now.clone()).or_else(|| {
                let at_first = began.iter().find(|setting| setting.name == now.name);
                changes
                    .take_while(|(at_us, _)| *at_us <= us)
                    .last()
                    .map(|(_, after)| after)
                    .or(at_first)
                    .cloned()
            })
        };
        self.settings.iter().filter_map(then).collect()
    }
}
