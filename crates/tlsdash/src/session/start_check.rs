//! What a start finds outside the configuration file: what the host lacks, and files that cannot be used. `config check`
//! and a reload look for the same.

use proxy_core::AccessFiles;
use records::text::Cpus;

use super::SessionConfig;
use super::acme::AcmeOrder;
use crate::cli::appearance::Appearance;
use crate::cli::{ProxyOptions, RunOptions};
use crate::control::find_groups;
use crate::error::usage;
use crate::service::privileges::ServiceUser;

/// Checks the options of the process: user, groups, cores, records and appearance.
///
/// # Errors
/// With the option, and what is missing.
pub(crate) fn check_host(options: &ProxyOptions) -> anyhow::Result<()> {
    options.user.as_deref().map(ServiceUser::find).transpose()?;
    find_groups(options.control_group.as_deref(), options.control_readers.as_deref())?;
    options.cpus.as_deref().map_or(Ok(()), Cpus::check).map_err(usage)?;
    let run = options.run.clone();
    // As a service. A recording that exists may be that of the running one.
    let run = RunOptions { headless: true, append: run.append || run.record.is_some(), ..run };
    let duration = options.duration.as_ref().map(|duration| duration.0);
    let appearance = Appearance::resolve(&options.appearance, &options.tables)?;
    SessionConfig::resolve(&run, duration, appearance).map(drop)
}

/// Checks the files that `options` name and `in_use` do not. The others are read again anyway, and may be pipes.
///
/// # Errors
/// With the file, and why it cannot be used.
pub(super) fn check_files(options: &ProxyOptions, in_use: &ProxyOptions) -> anyhow::Result<()> {
    let run = &in_use.tls_files;
    if options.tls_files != *run {
        let mut files = options.tls_files.clone();
        if (&files.cert, &files.key) == (&run.cert, &run.key) {
            files.cert.clear();
            files.key.clear();
        }
        files.ticket_keys = files.ticket_keys.filter(|path| run.ticket_keys.as_ref() != Some(path));
        files.load(&options.tls, options.load.is_some())?;
    }
    if options.upstream_tls.files() != in_use.upstream_tls.files() {
        options.upstream_tls.load(options.is_tls_used())?;
    }
    if options.acme.acme_ca != in_use.acme.acme_ca {
        AcmeOrder::check(options)?;
    }
    let [access, access_in_use] =
        [options, in_use].map(|of| AccessFiles { allow: of.allow.clone(), deny: of.deny.clone() });
    if access != access_in_use {
        access.load().map_err(usage)?;
    }
    Ok(())
}
