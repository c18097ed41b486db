//! The end of a process's output.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the end of a file is read.
const BYTES_MAX: u64 = 4096;
/// How many lines are quoted at most.
const LINES_MAX: usize = 6;

/// Returns the last lines of a file as one printable line, separated by ` | `; empty if there are none.
pub(super) fn output_tail(path: &Path) -> String {
    let bytes = read_end(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| records::text::clean::text(line.trim_end()))
        .collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join(" | ")
}

fn read_end(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_quoted_and_they_are_printable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        assert_eq!(output_tail(&path), "");
        let text = (0..2_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        std::fs::write(&path, [text.as_bytes(), b"\n\x1b[31mred\xff\n"].concat()).unwrap();
        let tail = output_tail(&path);
        assert!(tail.starts_with("line 1995 | line 1996 |") && tail.ends_with("[31mred\u{fffd}"), "{tail}");
        assert!(!tail.contains('\x1b'), "{tail}");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        assert!(output_tail(&path).len() < 300, "a line is bounded");
    }
}
