//! Finds programs and files that a target needs and that are not there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scenario::{BenchTarget, CommandServer, Server};
use crate::target::program_folders;

/// A target that cannot run, since a program or a file is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTarget {
    pub name: String,
    /// What is missing, and a remedy.
    pub reason: String,
}

/// A program that is missing, with the Debian package that has it, or a variable that names no file.
pub(super) fn missing_program(target: &BenchTarget, tlsdash: &Path) -> Option<String> {
    let Server::Commands(servers) = &target.server else { return None };
    if let Some(variable) = servers.iter().find_map(CommandServer::missing_variable) {
        return Some(format!(
            "{}: the variable {variable} names no file; set it to the path of one",
            target.name
        ));
    }
    let missing = servers.iter().find(|server| {
        let program = server.command[0].replace("{tlsdash}", &tlsdash.display().to_string());
        // A program that is built first exists later.
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

/// True if the program is an executable file, of a path or in a folder of programs.
pub fn is_program(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |path: PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(program.into());
    }
    program_folders().iter().any(|folder| is_executable(folder.join(program)))
}
