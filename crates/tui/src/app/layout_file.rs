//! The file that keeps columns and panes from one start to the next.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The maximum length of the file, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// Reads the file; `None` if there is none.
///
/// # Errors
/// With a sentence, if it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened,
    };
    let mut text = String::new();
    match file.and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(format!("cannot read the kept columns and panes from {}: {error}", path.display())),
    }
}

/// Replaces the file as a whole.
///
/// # Errors
/// With a sentence, if it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| format!("cannot keep columns and panes in {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_arrangement_reads_back() {
        let folder = std::env::temp_dir().join(format!("tlsdash-arrangement-{}", std::process::id()));
        let path = folder.join("dashboard.json");
        assert_eq!(read(&path), Ok(None));
        write(&path, "{}").unwrap();
        write(&path, "{ }").unwrap();
        assert_eq!(read(&path), Ok(Some("{ }".to_owned())));
        fs::write(&path, [0xff]).unwrap();
        assert!(read(&path).unwrap_err().starts_with("cannot read the kept columns and panes from "));
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "a file").unwrap();
        assert!(write(&path, "{}").unwrap_err().starts_with("cannot keep columns and panes in "));
        fs::remove_file(&folder).unwrap();
    }
}
