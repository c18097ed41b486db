//! Checks files whose writer was stopped with `journalctl --verify`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The offset of `tail_object_offset` in the file header.
const TAIL_OBJECT_OFFSET: usize = 136;

/// Checks a file with journalctl, which may only complain about links of an unfinished flush.
///
/// Such links lead behind the last object that the header knows. Which one is found first depends on the
/// buckets, and so on the random file id.
pub(crate) fn assert_valid_or_unfinished_links(path: &Path) {
    let Some(complaint) = complaint(path) else { return };
    let without_target = ["Invalid data object at hash entry", "Tail hash pointer mismatch"];
    let with_target = ["Data object references invalid entry at ", "Invalid array offset "];
    let is_unfinished_link = without_target.iter().any(|link| complaint.contains(link))
        || with_target.iter().any(|link| {
            let target = complaint.split_once(link).and_then(|(_, rest)| rest.split_whitespace().next());
            target.is_some_and(|target| u64::from_str_radix(target, 16).unwrap() > last_known_object(path))
        });
    assert!(is_unfinished_link, "{complaint}");
}

/// Returns journalctl's complaint about a file.
pub(crate) fn complaint(path: &Path) -> Option<String> {
    let output = Command::new("journalctl")
        .arg(format!("--file={}", path.display()))
        .arg("--verify")
        .output()
        .expect("journalctl cannot be run: install the Debian package systemd");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn last_known_object(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    u64::from_le_bytes(bytes[TAIL_OBJECT_OFFSET..][..8].try_into().unwrap())
}
