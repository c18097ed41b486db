//! The controller's part in the configuration: it writes the options with the settings in force to a file.

use anyhow::Context;

use super::RunController;
use crate::session::recording::file_of_now;

impl RunController {
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
