//! Lists of the addresses that may connect, and of those that may not.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use records::text::quantity::counted;

use super::networks::{Networks, ParseNetworkListError};

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The files of the lists, each with a network or an address on a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFiles {
    /// Only these addresses may connect; `None`: all may.
    pub allow: Option<PathBuf>,
    /// These addresses may not, even if they are allowed.
    pub deny: Option<PathBuf>,
}

/// Which addresses may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLists {
    files: AccessFiles,
    allowed: Option<Networks>,
    denied: Networks,
}

/// A list cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("address list {}: {problem}", path.display())]
pub struct AccessFileError {
    path: PathBuf,
    problem: AccessFileProblem,
}

#[derive(Debug, thiserror::Error)]
enum AccessFileProblem {
    #[error("cannot read it: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] ParseNetworkListError),
}

impl AccessFiles {
    /// True without any list.
    pub fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_none()
    }

    /// Reads the lists.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn load(self) -> Result<AccessLists, AccessFileError> {
        self.read_with(|path| File::open(path))
    }

    /// Reads the lists again. They must be regular files: nobody writes into a pipe a second time.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn read_again(&self) -> Result<AccessLists, AccessFileError> {
        self.clone().read_with(|path| {
            let is_regular = fs::metadata(path)?.is_file();
            if is_regular { File::open(path) } else { Err(io::Error::other("it is not a regular file")) }
        })
    }

    fn read_with(self, open: fn(&Path) -> io::Result<File>) -> Result<AccessLists, AccessFileError> {
        let read = |path: &PathBuf| {
            let read = open(path).map_err(AccessFileProblem::from).and_then(read);
            read.map_err(|problem| AccessFileError { path: path.clone(), problem })
        };
        let allowed = self.allow.as_ref().map(read).transpose()?;
        let denied = self.deny.as_ref().map(read).transpose()?.unwrap_or_default();
        Ok(AccessLists { files: self, allowed, denied })
    }
}

fn read(file: File) -> Result<Networks, AccessFileProblem> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(AccessFileProblem::TooLarge);
    }
    Ok(Networks::parse_list(&text)?)
}

impl AccessLists {
    /// The files that the lists were read from.
    pub fn files(&self) -> &AccessFiles {
        &self.files
    }

    /// Whether a client with this address may connect.
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(address))
            && !self.denied.contains(address)
    }
}

/// How many networks the lists have, after those that overlap or adjoin were merged.
impl fmt::Display for AccessLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(allowed) = &self.allowed {
            write!(f, "{} allowed, ", counted(allowed.len() as u64, "network"))?;
        }
        write!(f, "{} denied", counted(self.denied.len() as u64, "network"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_address_is_refused_even_if_it_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let [allow, deny] = ["allow", "deny"].map(|name| folder.path().join(name));
        fs::write(&allow, "10.0.0.0/8\n2001:db8::/32\n").unwrap();
        fs::write(&deny, "10.9.0.0/16\n").unwrap();
        let admitted = |allow: Option<&PathBuf>, deny: Option<&PathBuf>| {
            let lists = AccessFiles { allow: allow.cloned(), deny: deny.cloned() }.load().unwrap();
            ["10.1.1.1", "10.9.1.1", "192.0.2.1"].map(|address| lists.admits(address.parse().unwrap()))
        };
        assert_eq!(admitted(None, None), [true, true, true]);
        assert_eq!(admitted(Some(&allow), None), [true, true, false]);
        assert_eq!(admitted(None, Some(&deny)), [true, false, true]);
        assert_eq!(admitted(Some(&allow), Some(&deny)), [true, false, false]);
        let lists = AccessFiles { allow: Some(allow.clone()), deny: Some(deny) }.load().unwrap();
        assert_eq!(lists.to_string(), "2 networks allowed, 1 network denied");
        fs::write(&allow, "# nobody").unwrap();
        assert_eq!(admitted(Some(&allow), None), [false; 3], "an empty list allows nobody");
    }

    #[test]
    fn a_list_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deny");
        let files = AccessFiles { deny: Some(path.clone()), ..AccessFiles::default() };
        let error = files.clone().load().unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("No such file"), "{error}");
        fs::write(&path, "10.0.0.0/8\nx\n").unwrap();
        let error = files.clone().load().unwrap_err().to_string();
        assert!(error.contains("line 2: \"x\" is neither an address nor a network"), "{error}");
        let too_large = File::create(&path).and_then(|file| file.set_len(FILE_BYTES_MAX + 1));
        too_large.unwrap();
        assert!(files.clone().load().unwrap_err().to_string().ends_with("it has more than 67108864 bytes"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(files.read_again().unwrap_err().to_string().ends_with("it is not a regular file"));
    }
}
