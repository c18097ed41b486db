//! What `journalctl --verify` may say of a file whose writer was stopped.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Where a file's header has the offset of its last object.
const TAIL_OBJECT_OFFSET: usize = 136;

/// Has journalctl check a file; what it finds must be links of a flush that was cut short.
///
/// They lead behind the last object that the header knows. Which of them is met first depends on the buckets, and so
/// on the random id of the file.
pub(crate) fn assert_valid_or_unfinished_links(path: &Path) {
    let Some(complaint) = complaint(path) else { return };
    let without_target = ["Invalid data object at hash entry", "Tail hash pointer mismatch"];
    let with_target = ["Data object references invalid entry at ", "Invalid array offset "];
    let is_loose_end = without_target.iter().any(|loose_end| complaint.contains(loose_end))
        || with_target.iter().any(|loose_end| {
            let target = complaint.split_once(loose_end).and_then(|(_, rest)| rest.split_whitespace().next());
            target.is_some_and(|target| u64::from_str_radix(target, 16).unwrap() > last_known_object(path))
        });
    assert!(is_loose_end, "{complaint}");
}

/// Gives what journalctl finds wrong with a file.
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
