//! The controller's part in the configuration: it writes the options with the settings in force to a file.

use anyhow::Context;
use records::setting::{Setting, SettingError, Value};

use super::RunController;
use crate::session::recording::file_of_now;

impl RunController {
    /// Checks whether a new value of a setting goes with the files of TLS.
    pub(super) fn check_setting(&self, name: &str, value: &Value) -> Result<(), SettingError> {
        let settings = self.workload.settings();
        let changed = settings.into_iter().find(|setting| setting.name == name && setting.value != *value);
        let (Some(setting), Some(configuration)) = (changed, &self.setup.configuration) else {
            return Ok(());
        };
        let mut options = configuration.options.clone();
        if !options.take(&Setting { value: value.clone(), ..setting }).unwrap_or(false) {
            // No option is this setting, or the proxy itself refuses the value.
            return Ok(());
        }
        options.tls_files.check(&options.tls, options.load.is_some()).map_err(|reason| {
            SettingError::Refused {
                name: name.to_owned(),
                value: value.to_string(),
                reason: reason.to_string(),
            }
        })
    }

    /// Writes a new configuration file into the working directory, so paths in it stay valid. Returns a sentence that
    /// names it.
    pub(super) fn write_configuration(&self) -> anyhow::Result<String> {
        let configuration = self.setup.configuration.as_deref();
        let configuration =
            configuration.context("no configuration was written: only a proxy reads a configuration file")?;
        let options = &configuration.options;
        let settings = self.run_record().settings;
        let changed = settings.into_iter().filter(|setting| {
            self.at_start.get(&setting.name).is_some_and(|at_start| *at_start != setting.value)
        });
        let text = options.effective_options(changed).to_toml()?;
        let path = file_of_now("toml");
        output_file::write_new(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        let lacks = if options.is_without_upstream() { "; it lacks an upstream" } else { "" };
        Ok(format!("{} has the settings in force{lacks}", path.display()))
    }
}
