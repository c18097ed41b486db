//! The relay's own settings.

use records::setting::{Setting, SettingError, Value};

use crate::accept::descriptors::UpstreamSockets;
use crate::config::options::{HandlerSettings, fixed_setting};
use crate::upstream::route::NameRoute;

const MODE: &str = "proxy.mode";
const ROUTE: &str = "proxy.route";

/// The own settings of a proxy that forwards bytes.
#[derive(Debug)]
pub(crate) struct RelaySettings(Vec<Setting>);

impl RelaySettings {
    pub(crate) fn new(routes: &[NameRoute]) -> Self {
        let terminated = routes.iter().filter(|route| !route.is_passed());
        let routes: Vec<_> = terminated.map(ToString::to_string).collect();
        Self(vec![fixed_setting(MODE, "tcp".to_owned()), fixed_setting(ROUTE, routes.join(" "))])
    }
}

impl HandlerSettings for RelaySettings {
    fn list(&self) -> Vec<Setting> {
        self.0.clone()
    }

    fn set(&self, name: &str, _: &Value) -> Option<Result<Setting, SettingError>> {
        let is_own = self.0.iter().any(|setting| setting.name == name);
        is_own.then(|| Err(SettingError::Restart(name.to_owned())))
    }

    fn upstream_sockets(&self) -> UpstreamSockets {
        UpstreamSockets { per_client: 1, pooled: 0 }
    }
}
