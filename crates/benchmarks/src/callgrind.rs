//! Instruction counts by thread and by function, from callgrind's output.
//!
//! The format is valgrind's "Callgrind Format Specification". Names are written uncompressed, so each line
//! can be read without the ones before it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// Callgrind counts a repeated instruction once per repetition, so a copy by `rep movsb` would cost an
/// instruction per byte. glibc uses it above these sizes; the settings make it always copy with vector
/// instructions.
const TUNABLES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=0x7fffffff:glibc.cpu.x86_rep_stosb_threshold=0x7fffffff";

/// Returns a command that runs under callgrind and writes its counts beside `out`, one file per thread.
///
/// # Errors
/// If valgrind is not installed.
pub fn command(out: &Path) -> Result<Command> {
    let found = Command::new("valgrind").arg("--version").output();
    found.map_err(|error| format!("cannot run valgrind (Debian package valgrind): {error}"))?;
    let mut command = Command::new("valgrind");
    command.env("GLIBC_TUNABLES", TUNABLES);
    command.args(["--quiet", "--tool=callgrind", "--separate-threads=yes", "--compress-strings=no"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    Ok(command)
}

/// Runs this program again, under callgrind and with `--part NAME ARGUMENTS`, and returns the counts.
///
/// # Errors
/// If valgrind cannot be run, or the part fails.
pub fn run_part(name: &str, arguments: &[&str]) -> Result<Vec<Thread>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("counts");
    let ended =
        command(&out)?.arg(std::env::current_exe()?).args(["--part", name]).args(arguments).output()?;
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).into_owned().into());
    }
    Thread::read_all(&out)
}

/// Callgrind's counts of one thread.
#[derive(Debug)]
pub struct Thread {
    text: String,
}

impl Thread {
    /// Reads all threads of the program that wrote to `out`.
    ///
    /// # Errors
    /// If the counts cannot be read, or there are none.
    pub fn read_all(out: &Path) -> Result<Vec<Self>> {
        let (folder, name) = (out.parent().unwrap_or_else(|| Path::new(".")), out.file_name());
        let prefix = format!("{}-", name.unwrap_or_default().to_string_lossy());
        let is_thread = |path: &PathBuf| {
            path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(&prefix))
        };
        let paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(is_thread);
        let threads: Vec<Self> = paths
            .map(|path| fs::read_to_string(path).map(|text| Self { text }))
            .collect::<std::io::Result<_>>()?;
        if threads.is_empty() {
            return Err(format!("callgrind has left no counts beside {}", out.display()).into());
        }
        Ok(threads)
    }

    /// Returns all instructions.
    pub fn total(&self) -> u64 {
        self.lines_after("totals: ").next().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns whether a function whose name contains `part` ran in this thread.
    pub fn ran(&self, part: &str) -> bool {
        self.lines_after("fn=").any(|name| name.contains(part))
    }

    /// Returns the instructions of calls to functions whose name ends in `end`, including their callees. Such
    /// a function must not be inlined, and must not call another one of them.
    pub fn within(&self, end: &str) -> u64 {
        let mut instructions = 0;
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if line.strip_prefix("cfn=").is_some_and(|name| name.ends_with(end)) {
                // `calls=COUNT TARGET`; the next line has the position and cost of the call.
                let cost = lines.nth(1).and_then(|line| line.split(' ').nth(1));
                instructions += cost.and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            }
        }
        instructions
    }

    /// Returns the instructions of code whose source path contains one of `parts`, inlined code included.
    pub fn in_files(&self, parts: &[&str]) -> u64 {
        self.instructions_of(|file, _| parts.iter().any(|part| file.contains(part)))
    }

    /// Returns the instructions of all code except the cryptographic library, which selects its code by the
    /// processor.
    pub fn without_cryptography(&self) -> u64 {
        self.instructions_of(|file, function| !file.contains("/aws-lc-") && !function.contains("aws_lc_"))
    }

    /// Returns the instructions of the code that `counts` accepts by source file and function.
    fn instructions_of(&self, counts: impl Fn(&str, &str) -> bool) -> u64 {
        let (mut instructions, mut file, mut function, mut is_call) = (0, "", "", false);
        let mut is_counted = false;
        for line in self.text.lines() {
            if let Some(name) = ["fl=", "fi=", "fe="].iter().find_map(|prefix| line.strip_prefix(prefix)) {
                file = name;
                is_counted = counts(file, function);
            } else if let Some(name) = line.strip_prefix("fn=") {
                function = name;
                is_counted = counts(file, function);
            } else if line.starts_with("calls=") {
                is_call = true;
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                // The line after `calls=` is the cost of the call, which the callee's own lines include too.
                if is_counted && !is_call {
                    let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                    instructions += cost.unwrap_or(0);
                }
                is_call = false;
            }
        }
        instructions
    }

    fn lines_after(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(move |line| line.strip_prefix(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: &str = "version: 1\nthread: 4\npositions: line\nevents: Ir\n\nfl=a.rs\nfn=main\n10 7\n\
        cfn=proxy::connection::read\ncalls=3 20\n11 300\ncfi=b.rs\ncfn=proxy::connection::write\ncalls=1 +5\n+2 40\n\n\
        fl=b.rs\nfn=proxy::connection::read\n20 300\n\ntotals: 347\n";

    #[test]
    fn instructions_are_read_by_thread_and_by_function() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::write(folder.path().join("out-04"), OUT).unwrap();
        fs::write(&out, "").unwrap();
        let threads = Thread::read_all(&out).unwrap();
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0].total(), 347);
        assert_eq!(threads[0].within("connection::read"), 300);
        assert_eq!(threads[0].within("connection::"), 0);
        assert_eq!(threads[0].in_files(&["a.rs"]), 7);
        assert_eq!(threads[0].in_files(&["b.rs", "c.rs"]), 300);
        assert_eq!(threads[0].without_cryptography(), 307);
        assert!(threads[0].ran("connection::read") && !threads[0].ran("connection::write"));
    }

    #[test]
    fn missing_counts_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Thread::read_all(&folder.path().join("out")).is_err());
    }
}
