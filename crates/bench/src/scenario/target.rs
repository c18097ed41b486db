//! Reads the `[[target]]` tables.

use std::collections::BTreeMap;

use super::error::{ScenarioError, unknown};
use super::launch::{self, LaunchError};
use super::table::Table;
use super::{
    BenchTarget, BenchTlsConfig, CommandServer, ExternalServer, Server, UpstreamKind, absolute,
    absolute_program,
};
use crate::template::ServerTemplate;

/// The keys of which a target must have exactly one.
const KINDS: [&str; 4] = ["template", "chain", "command", "address"];
const WORKERS_MAX: u32 = 1_024;
const CHAIN_MAX: usize = 8;
/// The fewest descriptors with which a server can start.
const DESCRIPTORS_MIN: u64 = 32;

#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) workers: u32,
    pub(super) tls: BenchTlsConfig,
}

impl BenchTarget {
    /// The template of the server that clients reach; `None` if it has none.
    pub fn template(&self) -> Option<&str> {
        let Server::Commands(servers) = &self.server else { return None };
        servers.first().map(|server| &*server.template).filter(|template| !template.is_empty())
    }

    /// Whether clients reach it over TLS.
    pub fn has_tls(&self) -> bool {
        match &self.server {
            Server::Commands(servers) => servers.first().is_some_and(|server| server.tls),
            Server::Address(server) => server.url.starts_with("https://"),
        }
    }

    /// Whether it needs the upstream of the scenario; `None` of a running server, whose upstream is not known.
    pub fn needs_upstream(&self) -> Option<bool> {
        match &self.server {
            Server::Commands(servers) => servers.last().map(|server| server.upstream != UpstreamKind::None),
            Server::Address(_) => None,
        }
    }

    /// Whether it answers `POST /echo` with the body; of a running server this is not known.
    pub fn echoes(&self) -> bool {
        match &self.server {
            Server::Commands(servers) => servers.last().is_some_and(|server| server.echo),
            Server::Address(_) => false,
        }
    }

    /// Whether it speaks HTTP/2. True for a running server, which is asked later.
    pub fn speaks_http2(&self) -> bool {
        match &self.server {
            Server::Commands(servers) => servers.first().is_some_and(|server| server.http2),
            Server::Address(_) => true,
        }
    }
}

pub(super) fn read(mut table: Table<'_>, defaults: &Defaults) -> Result<BenchTarget, ScenarioError> {
    let name = table.require("name")?;
    let certificate = table.get("certificate")?.unwrap_or(defaults.tls.key);
    let workers = workers(&mut table)?.unwrap_or(defaults.workers);
    let descriptors = table.get("descriptors")?;
    if descriptors.is_some_and(|descriptors| descriptors < DESCRIPTORS_MIN) {
        return Err(table.error_of("descriptors", format!("allow {DESCRIPTORS_MIN} at least")));
    }
    let start_timeout = table.time("start-timeout")?;
    let server = server(&mut table)?;
    table.finish(&[])?;
    match &server {
        Server::Commands(servers) => check_chain(&table, servers)?,
        Server::Address(_) => {
            let own = ["certificate", "workers", "descriptors", "start-timeout"];
            if let Some(key) = own.into_iter().find(|key| table.has(key)) {
                return Err(table.error_of(key, "a server that runs already has its own; remove this"));
            }
        }
    }
    Ok(BenchTarget { name, line: table.line(), certificate, workers, descriptors, start_timeout, server })
}

/// The workers of a scenario or a target.
pub(super) fn workers(table: &mut Table<'_>) -> Result<Option<u32>, ScenarioError> {
    let workers = table.get::<u32>("workers")?;
    if workers.is_some_and(|workers| workers > WORKERS_MAX) {
        return Err(
            table.error_of("workers", format!("at most {WORKERS_MAX} are possible; 0 is one for each core"))
        );
    }
    Ok(workers)
}

fn server(table: &mut Table<'_>) -> Result<Server, ScenarioError> {
    let mut kinds = KINDS.into_iter().filter(|kind| table.has(kind));
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return Err(table.error(format!("give exactly one of {}", KINDS.join(", "))));
    };
    Ok(match kind {
        "template" => {
            let name: String = table.require("template")?;
            let mut server = template(table, "template", &name)?;
            if let Some(program) = table.get::<String>("program")? {
                server.command[0] = absolute_program(&program);
            }
            Server::Commands(vec![server])
        }
        "chain" => {
            let names: Vec<String> = table.require("chain")?;
            Server::Commands(
                names.iter().map(|name| template(table, "chain", name)).collect::<Result<_, _>>()?,
            )
        }
        "command" => Server::Commands(vec![command(table)?]),
        _ => Server::Address(address(table)?),
    })
}

fn template(table: &Table<'_>, key: &str, name: &str) -> Result<CommandServer, ScenarioError> {
    let template = ServerTemplate::named(name).ok_or_else(|| {
        let names: Vec<&str> = ServerTemplate::all().iter().map(|template| template.name).collect();
        table.error_of(key, unknown("template", name, &names))
    })?;
    template.server().map_err(|error| table.error_of(key, error.to_string()))
}

/// Reads the keys of a server that is a command: of a target, or of a template.
pub(crate) fn command(table: &mut Table<'_>) -> Result<CommandServer, ScenarioError> {
    let mut server = CommandServer {
        template: String::new(),
        command: table.require("command")?,
        prepare: table.get("prepare")?.unwrap_or_default(),
        environment: table.get("environment")?.unwrap_or_default(),
        needs: table.get("needs")?.unwrap_or_default(),
        files: table.get::<BTreeMap<String, String>>("files")?.unwrap_or_default(),
        package: table.get("package")?,
        tls: table.get("tls")?.unwrap_or(true),
        http2: table.get("http2")?.unwrap_or(false),
        echo: table.get("echo")?.unwrap_or(true),
        upstream: table.get("upstream")?.unwrap_or_default(),
    };
    if server.command.is_empty() {
        return Err(table.error_of("command", "give a program and its arguments"));
    }
    for program in [server.command.first_mut(), server.prepare.first_mut()].into_iter().flatten() {
        *program = absolute_program(program);
    }
    if let Some(name) = server.files.keys().find(|name| !is_file_name(name)) {
        return Err(table.error_of("files", format!("{name:?} must be a file name, without a folder")));
    }
    Ok(server)
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && !name.contains(char::is_control)
}

fn address(table: &mut Table<'_>) -> Result<ExternalServer, ScenarioError> {
    let server = ExternalServer {
        url: table.require("address")?,
        pid: table.get("pid")?,
        unit: table.get("unit")?,
        ca: table.get::<String>("ca")?.map(|path| absolute(&path).into()),
    };
    let host = server.url.strip_prefix("https://").or_else(|| server.url.strip_prefix("http://"));
    let is_plain =
        |host: &str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && !b"/?#@".contains(&b));
    if !host.is_some_and(is_plain) {
        return Err(table.error_of("address", "write https://HOST:PORT or http://HOST:PORT without a path"));
    }
    if server.pid.is_some() && server.unit.is_some() {
        return Err(table.error_of("unit", "give a pid or a unit, not both"));
    }
    Ok(server)
}

/// Refuses a chain whose servers do not fit together, and placeholders without a value.
fn check_chain(table: &Table<'_>, servers: &[CommandServer]) -> Result<(), ScenarioError> {
    if servers.is_empty() || servers.len() > CHAIN_MAX {
        return Err(table.error_of("chain", format!("name 1 to {CHAIN_MAX} templates")));
    }
    for pair in servers.windows(2) {
        if pair[0].upstream == UpstreamKind::None {
            let problem = format!("{} answers itself, so nothing can stand behind it", pair[0].template);
            return Err(table.error_of("chain", problem));
        }
        if pair[1].tls {
            let problem = format!("{} speaks TLS, so nothing can stand before it", pair[1].template);
            return Err(table.error_of("chain", problem));
        }
    }
    let listen = std::iter::once(UpstreamKind::Tcp).chain(servers.iter().map(|server| server.upstream));
    for (server, listen) in servers.iter().zip(listen) {
        launch::try_placeholders(server, listen).map_err(|error| match &error {
            // Text in the scenario itself has a line number.
            LaunchError::Placeholder { text, .. } | LaunchError::Unquoted { text, .. } => {
                table.error_at_text(text, error.to_string())
            }
            LaunchError::Path(_) => table.error(error.to_string()),
        })?;
    }
    Ok(())
}
