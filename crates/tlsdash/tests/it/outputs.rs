//! Files that commands write: nothing is lost, nobody else reads them, nothing half written is left.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{outside, run, stderr, tlsdash};
use tempfile::TempDir;

/// A folder with a recording of two seconds, `a.journal`, and what else a test needs.
struct OutputFolder(TempDir);

impl OutputFolder {
    fn with_recording() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let place = format!("file:{}", folder.at("a.journal").display());
        let args = ["demo", "--headless", "--duration", "2s", "--journal", &place, "--load", "rate=100"];
        let made = run(folder.path(), &args);
        assert!(made.status.success(), "{}", stderr(&made));
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// Runs the words in the folder.
    fn run(&self, words: &str) -> Output {
        tlsdash(self.path()).args(words.split(' ')).current_dir(self.path()).output().unwrap()
    }

    /// Runs the words, which are refused with one line that has `part`, and without anything printed.
    #[track_caller]
    fn refuses(&self, words: &str, part: &str) {
        let output = self.run(words);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{words}: {said}");
        assert!(said.contains(part) && output.stdout.is_empty(), "{words}: {said}");
    }

    #[track_caller]
    fn succeeds(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Every flag that names a file to write, with what it takes besides.
const WRITERS: [&str; 12] = [
    "report a.journal --html",
    "report a.journal --json",
    "report a.journal --csv",
    "report a.journal --md",
    "report a.journal --hgrm",
    "report a.journal --hlog",
    "check a.journal --assert errors>=0 --junit",
    "compare a.journal@..1s a.journal@1s.. --html",
    "compare a.journal@..1s a.journal@1s.. --json",
    "compare a.journal@..1s a.journal@1s.. --md",
    "load http://127.0.0.1:1/ --headless --journal off -n 1 --hgrm",
    "load http://127.0.0.1:1/ --headless --journal off -n 1 --hlog",
];

#[test]
fn no_recording_is_replaced_by_whatever_name_and_no_link_is_followed() {
    let folder = OutputFolder::with_recording();
    let before = fs::read(folder.at("a.journal")).unwrap();
    fs::hard_link(folder.at("a.journal"), folder.at("hard.html")).unwrap();
    fs::write(folder.at("precious"), "kept").unwrap();
    symlink("a.journal", folder.at("soft.html")).unwrap();
    symlink("precious", folder.at("elsewhere.html")).unwrap();
    symlink("nothing", folder.at("dangling.html")).unwrap();
    let folder_name = folder.path().file_name().unwrap().to_str().unwrap();
    let by_the_parent = format!("../{folder_name}/a.journal");
    let names = folder.names();
    for writer in WRITERS {
        for (path, part) in [
            ("a.journal", "it is a journal"),
            ("./a.journal", "it is a journal"),
            (&*by_the_parent, "it is a journal"),
            ("hard.html", "it is a journal"),
            ("soft.html", "it is a symbolic link"),
            ("elsewhere.html", "it is a symbolic link"),
            ("dangling.html", "it is a symbolic link"),
            ("new.journal", "a name that ends in .journal"),
            (".", "it is a folder"),
        ] {
            folder.refuses(&format!("{writer} {path}"), part);
        }
    }
    assert_eq!(folder.names(), names);
    assert_eq!(folder.read("precious"), "kept");
    assert!(fs::read(folder.at("a.journal")).unwrap() == before, "the recording is as it was");
}

#[test]
fn a_file_that_is_read_is_not_written() {
    let folder = OutputFolder::with_recording();
    fs::write(folder.at("conditions"), "errors >= 0\n").unwrap();
    fs::hard_link(folder.at("conditions"), folder.at("same")).unwrap();
    for path in ["conditions", "./conditions", "same"] {
        folder.refuses(&format!("check a.journal --assert-file conditions --junit {path}"), "it is read too");
        let load = "load http://127.0.0.1:1/ --headless --journal off -n 1 --targets conditions";
        folder.refuses(&format!("{load} --hgrm {path}"), "it is read too");
    }
    assert_eq!(folder.read("conditions"), "errors >= 0\n");
}

#[test]
fn two_outputs_do_not_go_to_one_place() {
    let folder = OutputFolder::with_recording();
    for stdout in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let words = format!("report a.journal --html - --md {stdout}");
        folder.refuses(&words, "--html and --md both go to standard output");
    }
    folder.refuses("report a.journal --hgrm - --hlog -", "--hgrm and --hlog both go to standard output");
    folder.refuses("compare a.journal@..1s a.journal@1s.. --html - --json -", "both go to standard output");
    folder.refuses("report a.journal --html x --md ./x", "--html and --md are the same file");
    fs::write(folder.at("x"), "").unwrap();
    fs::hard_link(folder.at("x"), folder.at("y")).unwrap();
    folder.refuses("report a.journal --csv x --json y", "--json and --csv are the same file");
    folder.succeeds("report a.journal --html /dev/null --md /dev/null");
}

#[test]
fn a_new_file_is_its_owners_and_a_replaced_one_keeps_its_mode() {
    let folder = OutputFolder::with_recording();
    let mode = |name: &str| fs::metadata(folder.at(name)).unwrap().mode() & 0o777;
    folder.succeeds("report a.journal --html new --json shared --csv c --md m --hgrm h --hlog l");
    for name in ["new", "shared", "c", "m", "h", "l"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    fs::set_permissions(folder.at("shared"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(folder.at("shared"), "old").unwrap();
    folder.succeeds("check a.journal --assert errors>=0 --junit shared");
    assert!(folder.read("shared").starts_with("<?xml") && mode("shared") == 0o644);
    assert_eq!(folder.names(), ["a.journal", "c", "h", "l", "m", "new", "shared"]);
}

#[test]
fn standard_output_is_written_straight_and_holds_one_thing() {
    let folder = OutputFolder::with_recording();
    let xml = folder.succeeds("check a.journal --assert errors>=0 --junit -");
    assert!(xml.starts_with("<?xml") && xml.trim_end().ends_with("</testsuite>"), "{xml}");
    for name in ["-", "/dev/stdout"] {
        let file = OpenOptions::new().append(true).create(true).open(folder.at("all")).unwrap();
        let words = ["report", "a.journal", "--md", name];
        let mut command = tlsdash(folder.path());
        let status = command.args(words).current_dir(folder.path()).stdout(file).status().unwrap();
        assert!(status.success(), "{name}");
    }
    assert_eq!(folder.read("all").matches("# tlsdash: ").count(), 2, "what was there is kept");
    assert!(fs::symlink_metadata("/dev/null").unwrap().mode() & 0o777 == 0o666, "a device stays one");
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_beside_it() {
    let folder = OutputFolder::with_recording();
    fs::create_dir(folder.at("disk")).unwrap();
    let mut command = outside("unshare", "util-linux");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let script = "mount -t tmpfs -o size=16k tmpfs disk && echo old > disk/a.html && \
                  \"$0\" report a.journal --html disk/a.html; echo $?; ls -A disk; cat disk/a.html";
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tlsdash")]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = stderr(&output);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1\na.html\nold\n", "{said}");
    assert_eq!(said, "tlsdash: cannot write --html disk/a.html: No space left on device (os error 28)\n");
}

#[test]
fn a_copy_that_was_not_finished_is_not_there() {
    let folder = OutputFolder::with_recording();
    fs::create_dir(folder.at("disk")).unwrap();
    let mut command = outside("unshare", "util-linux");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let script = "mount -t tmpfs -o size=200k tmpfs disk && \
                  \"$0\" compact a.journal disk/b.journal; echo $?; ls -A disk";
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tlsdash")]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = stderr(&output);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1\n", "{said}");
    assert!(said.lines().count() == 1 && said.contains("No space left"), "{said}");
}
