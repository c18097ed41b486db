//! Reads any text as a configuration file: nothing panics, what is refused is refused in one line, and what is printed
//! of what is taken is taken again and prints the same.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use tlsdash::read_configuration;

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match read_configuration(text) {
        Ok(printed) => assert_eq!(read_configuration(&printed).as_ref(), Ok(&printed), "{text}"),
        Err(error) => {
            let reason = error.to_string();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
        }
    }
});

/// Writes the configuration with all its words, and each line of it alone.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let defaults = read_configuration("").expect("an empty configuration");
    let all = defaults.replace("# ", "");
    assert!(read_configuration(&all).is_ok(), "{all}");
    for (i, seed) in [&*defaults, &*all].into_iter().chain(all.lines()).enumerate() {
        std::fs::write(folder.join(i.to_string()), seed)?;
    }
    Ok(())
}
