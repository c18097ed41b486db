//! `tlsdash config`: checks a configuration file, or compares it with the running service.

use std::path::Path;

use anyhow::Context;

use super::{ctl, proxy};
use crate::cli::config::{ConfigArgs, ConfigRequest};
use crate::cli::{ProxyOptions, read_file};
use crate::control::protocol::ControlRequest;
use crate::summary;

/// Checks or compares.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    match &args.request {
        ConfigRequest::Check { file } => check(file),
        ConfigRequest::Diff { file, control, format } => {
            let request = ControlRequest::CompareConfiguration { text: read_file(file)? };
            ctl::send(control.as_deref(), &request, *format)
        }
    }
}

/// Finds the errors of a start, except those that only binding can find.
fn check(file: &Path) -> anyhow::Result<()> {
    let options = ProxyOptions::read(file)?.with_defaults()?;
    let in_file = || format!("configuration {}", file.display());
    let checked = proxy::check(&options).with_context(in_file)?;
    for warning in checked.tls.warnings() {
        crate::say(format_args!("warning: {warning}"));
    }
    summary::print_text(&format!("{} can be used\n", file.display()))
}
