//! The relay's own settings.

use std::sync::{Mutex, MutexGuard, PoisonError};

use records::setting::{Setting, SettingError, Value};

use crate::accept::descriptors::UpstreamSockets;
use crate::config::handler_settings::HandlerSettings;
use crate::config::options::fixed_setting;
use crate::upstream::route::NameRoute;
use crate::upstream::target::Upstream;

const MODE: &str = "proxy.mode";
const UPSTREAM: &str = "proxy.upstream";
const ROUTE: &str = "proxy.route";
const PASS: &str = "proxy.pass";

/// The own settings of a proxy that forwards bytes.
#[derive(Debug)]
pub(crate) struct RelaySettings {
    /// The upstreams of all other names, and the routes. Locked by the thread that lists or reloads them.
    lists: Mutex<(Vec<Upstream>, Vec<NameRoute>)>,
}

impl RelaySettings {
    pub(crate) fn new(upstreams: &[Upstream], routes: &[NameRoute]) -> Self {
        Self { lists: Mutex::new((upstreams.to_vec(), routes.to_vec())) }
    }

    fn lists(&self) -> MutexGuard<'_, (Vec<Upstream>, Vec<NameRoute>)> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandlerSettings for RelaySettings {
    fn list(&self) -> Vec<Setting> {
        let (upstreams, routes) = &*self.lists();
        let words = |is_passed: bool| {
            let routes = routes.iter().filter(|route| route.is_passed() == is_passed);
            routes.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let upstreams: Vec<_> = upstreams.iter().map(ToString::to_string).collect();
        vec![
            fixed_setting(MODE, "tcp".to_owned()),
            fixed_setting(UPSTREAM, upstreams.join(" ")),
            fixed_setting(ROUTE, words(false)),
            fixed_setting(PASS, words(true)),
        ]
    }

    fn set(&self, name: &str, _: &Value) -> Option<Result<Setting, SettingError>> {
        [MODE, UPSTREAM, ROUTE, PASS].contains(&name).then(|| Err(SettingError::Restart(name.to_owned())))
    }

    fn destinations(&self) -> Vec<Vec<Upstream>> {
        let (upstreams, routes) = &*self.lists();
        let of_routes = routes.iter().map(|route| route.upstreams().to_vec());
        std::iter::once(upstreams.clone()).chain(of_routes).collect()
    }

    fn own_destinations(&self) -> usize {
        1
    }

    fn set_destinations(&self, destinations: Vec<Vec<Upstream>>) {
        let (upstreams, routes) = &mut *self.lists();
        let mut destinations = destinations.into_iter();
        *upstreams = destinations.next().unwrap_or_default();
        routes.iter_mut().zip(destinations).for_each(|(route, of)| route.set_upstreams(of));
    }

    fn upstream_sockets(&self) -> UpstreamSockets {
        UpstreamSockets { per_client: 1, pooled: 0 }
    }
}
