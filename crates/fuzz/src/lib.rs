//! What all fuzz targets share.

use std::error::Error;
use std::fs;
use std::path::Path;

/// Writes a target's seeds and ends the process, instead of fuzzing, if `FUZZ_SEEDS` names a folder for them. A program
/// of its own would have to be built a second time, without the instrumentation.
///
/// # Panics
/// When the seeds cannot be written.
pub fn seeds_if_asked<E: Into<Box<dyn Error>>>(write: impl FnOnce(&Path) -> Result<(), E>) {
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
        let folder = Path::new(&folder);
        let written =
            fs::create_dir_all(folder).map_err(Into::into).and_then(|()| write(folder).map_err(Into::into));
        written.expect("a folder that can be written");
        std::process::exit(0);
    }
}
