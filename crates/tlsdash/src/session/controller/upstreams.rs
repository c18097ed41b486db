//! The controller's handling of other upstreams, which a reload brings.

use proxy_core::{Resolver, Upstream};
use records::setting::Value;

use super::RunController;
use crate::cli::ProxyOptions;
use crate::cli::configuration::destinations::Destinations;

/// Other upstreams for the same destinations.
#[derive(Debug)]
pub(super) struct NewUpstreams {
    /// Of each destination, in the order of the proxy.
    destinations: Vec<Vec<Upstream>>,
    /// The settings that name them, with their new values.
    pub(super) settings: Vec<(String, Value)>,
}

impl NewUpstreams {
    /// What is new in `after`; `None` if that is nothing, or there are other destinations, which need a restart.
    pub(super) fn between(before: &ProxyOptions, after: &ProxyOptions) -> anyhow::Result<Option<Self>> {
        let (old, new) = (Destinations::of(before)?, Destinations::of(after)?);
        if old.upstreams == new.upstreams || old.served != new.served {
            return Ok(None);
        }
        let settings = new.settings.into_iter().filter(|setting| !old.settings.contains(setting)).collect();
        Ok(Some(Self { destinations: new.upstreams, settings }))
    }
}

impl RunController {
    /// Checks whether the proxy takes other upstreams, and lets alerts know them.
    pub(super) fn check_upstreams(
        &mut self,
        new: Option<&NewUpstreams>,
        resolver: &Resolver,
    ) -> Result<(), String> {
        let (Some(new), Some(proxy)) = (new, &self.workload.proxy) else { return Ok(()) };
        proxy.check_upstreams(&new.destinations, resolver).map_err(|error| error.to_string())?;
        let mut names = proxy.upstream_names();
        for upstream in new.destinations.iter().flatten() {
            let name = upstream.unweighted().to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        self.setup.alerts.name_upstreams(&names);
        Ok(())
    }

    /// Gives the proxy other upstreams, which it has been found to take, and records the change.
    pub(super) fn replace_upstreams(
        &mut self,
        new: Option<&NewUpstreams>,
        resolver: &Resolver,
        by: &str,
    ) -> Result<(), String> {
        let (Some(new), Some(proxy)) = (new, &self.workload.proxy) else { return Ok(()) };
        let before = proxy.settings();
        proxy.replace_upstreams(new.destinations.clone(), resolver).map_err(|error| error.to_string())?;
        let after = proxy.settings();
        for (before, after) in before.into_iter().zip(after) {
            if self.record_change(before, after, by) {
                self.experiments.disturb("upstreams were changed");
            }
        }
        Ok(())
    }

    /// Lets records and alerts know the upstreams that the proxy has now.
    pub(super) fn name_upstreams(&mut self) {
        let names = self.workload.upstream_names();
        self.publisher.name_upstreams(&names);
        self.setup.alerts.name_upstreams(&names);
    }
}
