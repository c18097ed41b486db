//! The terminators and servers that the program can start by name.

use crate::scenario::{CommandServer, ScenarioError, read_template};

/// A server that the program can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTemplate {
    pub name: &'static str,
    /// A `[[target]]` of a scenario, to copy and change.
    pub text: &'static str,
}

macro_rules! templates {
    ($($name:literal $(with $file:literal)?),* $(,)?) => {
        &[$(ServerTemplate {
            name: $name,
            text: concat!(
                include_str!(concat!($name, ".toml")),
                $("\n[target.files]\n\"", $file, "\" = '''\n", include_str!($file), "'''\n",)?
            ),
        }),*]
    };
}

const TEMPLATES: &[ServerTemplate] = templates![
    "tlsdash-tcp",
    "tlsdash-http",
    "nginx-stream",
    "nginx-http",
    "nginx-native",
    "nginx-plain",
    "haproxy-tcp",
    "haproxy-http",
    "hitch",
    "stunnel",
    "nghttpx",
    "go-proxy" with "server.go",
    "go-native" with "server.go",
    "go-plain" with "server.go",
    "node-native" with "server.js",
    "node-plain" with "server.js",
    "sozu",
    "spring-gateway",
];

impl ServerTemplate {
    pub fn all() -> &'static [Self] {
        TEMPLATES
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|template| template.name == name)
    }

    /// The server that it describes.
    ///
    /// # Errors
    /// None in practice: a test reads each.
    pub fn server(&self) -> Result<CommandServer, ScenarioError> {
        Ok(CommandServer { template: self.name.to_owned(), ..read_template(self.name, self.text)? })
    }
}
