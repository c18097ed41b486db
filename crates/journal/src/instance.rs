//! An instance of journald: its socket and its folders.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

/// The file with the machine id, see machine-id(5).
const MACHINE_ID: &str = "/etc/machine-id";

/// The parents of journald's folders: the persistent one, and the volatile one.
const PARENTS: [&str; 2] = ["/var/log/journal", "/run/log/journal"];

/// The longest name of a namespace, in bytes: `MACHINE_ID.NAME` must be a valid file name.
const NAME_BYTES_MAX: usize = 221;

/// An instance of journald: the system's, or that of a journal namespace, see systemd-journald.service(8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JournaldInstance {
    namespace: Option<String>,
}

/// Why there is no such instance of journald.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The name is not valid for a namespace.
    #[error(
        "\"{0}\" is not the name of a journal namespace (letters, digits and :-_.@, at most {NAME_BYTES_MAX} bytes)"
    )]
    Name(String),
    /// The machine id, which names journald's folders, cannot be read.
    #[error("cannot tell where journald keeps its files: cannot read {MACHINE_ID}: {0}")]
    MachineId(io::Error),
}

impl JournaldInstance {
    /// The system's journald.
    pub fn system() -> Self {
        Self { namespace: None }
    }

    /// The journald of a namespace; systemd's `log_namespace_name_valid` checks the name in the same way.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn namespace(name: &str) -> Result<Self, InstanceError> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b":-_.@".contains(&b);
        let is_name = !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES_MAX;
        if is_name && name.bytes().all(is_allowed) {
            Ok(Self { namespace: Some(name.to_owned()) })
        } else {
            Err(InstanceError::Name(name.escape_debug().take(80).collect()))
        }
    }

    /// Returns the path of its socket for the [native protocol](https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
    pub fn socket(&self) -> PathBuf {
        match &self.namespace {
            None => "/run/systemd/journal/socket".into(),
            Some(name) => format!("/run/systemd/journal.{name}/socket").into(),
        }
    }

    /// Returns the folders where it may store files: the persistent one, then the volatile one. Neither need
    /// exist.
    ///
    /// # Errors
    /// If the machine id cannot be read.
    pub fn folders(&self) -> Result<[PathBuf; 2], InstanceError> {
        let id = fs::read_to_string(MACHINE_ID)
            .and_then(|text| machine_id(&text))
            .map_err(InstanceError::MachineId)?;
        let folder = match &self.namespace {
            None => id,
            Some(name) => format!("{id}.{name}"),
        };
        Ok(PARENTS.map(|parent| PathBuf::from(parent).join(&folder)))
    }
}

/// Parses the text of `/etc/machine-id`.
fn machine_id(text: &str) -> io::Result<String> {
    let id = text.trim_end();
    if id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(id.to_ascii_lowercase());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it does not hold 32 hexadecimal digits"))
}

impl FromStr for JournaldInstance {
    type Err = InstanceError;

    /// Parses `system` or `namespace:NAME`.
    fn from_str(text: &str) -> Result<Self, InstanceError> {
        match text.split_once(':') {
            None if text == "system" => Ok(Self::system()),
            Some(("namespace", name)) => Self::namespace(name),
            _ => Err(InstanceError::Name(text.escape_debug().take(80).collect())),
        }
    }
}

impl fmt::Display for JournaldInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            None => f.write_str("system"),
            Some(name) => write!(f, "namespace:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_round_trips_through_text() {
        for text in ["system", "namespace:tls", "namespace:a:b", "namespace:x@1.y-z_"] {
            assert_eq!(text.parse::<JournaldInstance>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn names_that_could_escape_the_folder_are_refused() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in ["", ".", "..", "a/b", "../x", "a b", "a\n", "ä", "a\0", "a\\b", "a\"", &long] {
            assert!(matches!(JournaldInstance::namespace(name), Err(InstanceError::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn each_namespace_has_its_own_socket() {
        let socket = |text: &str| text.parse::<JournaldInstance>().unwrap().socket();
        assert_eq!(socket("system"), PathBuf::from("/run/systemd/journal/socket"));
        assert_eq!(socket("namespace:tls"), PathBuf::from("/run/systemd/journal.tls/socket"));
    }

    #[test]
    fn a_machine_id_has_32_hex_digits() {
        let id = "0123456789abcdef0123456789ABCDEF\n";
        assert_eq!(machine_id(id).unwrap(), "0123456789abcdef0123456789abcdef");
        for text in ["", "uninitialized\n", "../../etc", "0123456789abcdef0123456789abcdeg"] {
            assert!(machine_id(text).is_err(), "{text:?}");
        }
    }
}
