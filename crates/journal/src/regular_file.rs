//! Opens what may be no regular file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading; `None` if something else is at the path, such as a pipe or a folder. It is not waited
/// for the other end of a pipe.
///
/// # Errors
///
/// As [`File::open`].
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}
