//! Finds programs that a target needs and that are not installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scenario::{BenchTarget, Server};

/// Programs that are missing, with the Debian package that has each.
pub(super) fn missing_program(target: &BenchTarget, tlsdash: &Path) -> Option<String> {
    let Server::Commands(servers) = &target.server else { return None };
    let missing = servers.iter().find(|server| {
        let program = server.command[0].replace("{tlsdash}", &tlsdash.display().to_string());
        // What is built first is there later.
        let program =
            if program.contains('{') { server.prepare.first().cloned().unwrap_or_default() } else { program };
        !program.is_empty() && !is_program(&program)
    })?;
    let program = &missing.command[0];
    let program = if program.contains('{') { &missing.prepare[0] } else { program };
    let package = missing.package.as_deref();
    let package = package.map_or_else(String::new, |package| format!("; Debian's package {package} has it"));
    Some(format!("{}: there is no program {program}{package}", target.name))
}

/// True if the program is an executable file, of a path or in one of the folders of `PATH`.
fn is_program(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |path: PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(program.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_executable(folder.join(program)))
}
