//! The relay's own settings.

use records::setting::{Setting, SettingError, Value};

use crate::accept::descriptors::UpstreamSockets;
use crate::config::options::{HandlerSettings, fixed_setting};

const MODE: &str = "proxy.mode";

/// The own settings of a proxy that forwards bytes.
#[derive(Debug)]
pub(crate) struct RelaySettings;

impl HandlerSettings for RelaySettings {
    fn list(&self) -> Vec<Setting> {
        vec![fixed_setting(MODE, "tcp".to_owned())]
    }

    fn set(&self, name: &str, _: &Value) -> Option<Result<Setting, SettingError>> {
        (name == MODE).then(|| Err(SettingError::Restart(name.to_owned())))
    }

    fn upstream_sockets(&self) -> UpstreamSockets {
        UpstreamSockets::PerClient
    }
}
