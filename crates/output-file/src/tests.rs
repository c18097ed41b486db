use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;

use super::*;

struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & PERMISSION_BITS
}

#[test]
fn a_new_file_is_its_owners_and_a_replaced_one_keeps_its_mode() {
    let folder = TestFolder::new();
    let new = folder.at("new.html");
    check(&new).unwrap();
    assert!(folder.names().is_empty(), "looking leaves nothing behind");
    write(&new, "first").unwrap();
    assert_eq!(mode(&new), 0o600);
    fs::set_permissions(&new, Permissions::from_mode(0o644)).unwrap();
    write(&new, "second").unwrap();
    assert_eq!((mode(&new), fs::read_to_string(&new).unwrap()), (0o644, "second".to_owned()));
    assert_eq!(folder.names(), ["new.html"]);
}

#[test]
fn a_file_is_replaced_as_a_whole_and_not_written_into() {
    let folder = TestFolder::new();
    let file = folder.with("a.html", "old");
    fs::hard_link(&file, folder.at("kept.html")).unwrap();
    write(&file, "new").unwrap();
    assert_eq!(fs::read_to_string(folder.at("kept.html")).unwrap(), "old");
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
}

#[test]
fn links_and_folders_are_refused_as_outputs() {
    let folder = TestFolder::new();
    let target = folder.with("target", "precious");
    for (name, to) in
        [("link", &*target), ("dangling", Path::new("/nowhere/x")), ("null", Path::new("/dev/null"))]
    {
        symlink(to, folder.at(name)).unwrap();
        for result in [check(&folder.at(name)), write(&folder.at(name), "x")] {
            assert!(matches!(result, Err(OutputError::Link)), "{name}: {result:?}");
        }
        assert!(matches!(write_new(&folder.at(name), "x"), Err(OutputError::Exists)));
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    assert!(matches!(check(folder.0.path()), Err(OutputError::Folder)));
    assert!(check(&folder.at("..")).is_err() && check(Path::new("/")).is_err());
}

#[test]
fn a_recording_is_never_overwritten_under_any_name() {
    let folder = TestFolder::new();
    let recording = folder.with("a.journal", [&JOURNAL_SIGNATURE[..], b"and more"].concat());
    fs::hard_link(&recording, folder.at("a.html")).unwrap();
    for name in ["a.journal", "a.html"] {
        for result in [check(&folder.at(name)), write(&folder.at(name), "x")] {
            assert!(matches!(result, Err(OutputError::Journal)), "{name}: {result:?}");
        }
    }
    let damaged = folder.with("damaged.journal", "");
    for path in [&damaged, &folder.at("new.journal")] {
        assert!(matches!(check(path), Err(OutputError::JournalName)), "{}", path.display());
    }
    assert!(fs::read(recording).unwrap().starts_with(&JOURNAL_SIGNATURE));
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_temporary_one() {
    let folder = TestFolder::new();
    let file = folder.with("a.html", "old");
    // A rename onto a folder fails last of all.
    fs::create_dir(folder.at("folder")).unwrap();
    assert!(filled(&folder.at("folder"), "x").unwrap().persist(folder.at("folder")).is_err());
    assert!(matches!(write_new(&file, "new"), Err(OutputError::Exists)));
    for result in [check(&folder.at("nowhere/x")), write(&folder.at("nowhere/x"), "x")] {
        let Err(OutputError::Io(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(folder.names(), ["a.html", "folder"]);
}

#[test]
fn pipes_and_devices_are_written_straight() {
    let folder = TestFolder::new();
    let pipe = folder.at("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    check(&pipe).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&pipe, "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    write(Path::new("/dev/null"), "x").unwrap();
    let full = write(Path::new("/dev/full"), "x").unwrap_err();
    assert!(full.to_string().contains("No space left"), "{full}");
}

#[test]
fn a_pipe_that_another_user_may_have_planted_is_not_written() {
    let owners = |file, folder_mode| Owners { ours: 1_000, file, folder: 0, folder_mode };
    assert!(may_be_planted(&owners(1_001, 0o41_777)));
    for (file, folder_mode) in [(1_000, 0o41_777), (0, 0o41_777), (1_001, 0o40_755)] {
        assert!(!may_be_planted(&owners(file, folder_mode)), "{file} {folder_mode:o}");
    }
}

#[test]
fn a_file_is_the_same_by_every_path() {
    let folder = TestFolder::new();
    let file = folder.with("a", "");
    fs::hard_link(&file, folder.at("b")).unwrap();
    symlink(&file, folder.at("c")).unwrap();
    let same = [folder.at("b"), folder.at("c"), folder.at("../").join(folder.0.path()).join("./a")];
    for path in same {
        assert_eq!(FileIdentity::of(&path).unwrap(), FileIdentity::of(&file).unwrap());
    }
    let new = FileIdentity::of(&folder.at("new")).unwrap();
    assert_eq!(new, FileIdentity::of(&folder.at("./new")).unwrap());
    assert_ne!(new, FileIdentity::of(&folder.at("newer")).unwrap());
}
