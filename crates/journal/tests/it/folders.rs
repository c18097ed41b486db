//! Several folders followed as one: those of a journald instance, and folders of many hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::*;
use journal::{FileWriter, ReadError, Start, Tail, Timestamps};
use rustix::process::{Pid, Signal, kill_process};

/// Appends numbered entries.
fn append(writer: &mut FileWriter, numbers: std::ops::Range<u64>) {
    for number in numbers {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
}

fn write(path: &Path, numbers: std::ops::Range<u64>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = create(path, &small());
    append(&mut writer, numbers);
    writer.close().unwrap();
}

/// Reads the numbers of the current entries.
fn read(tail: &mut Tail) -> Vec<String> {
    let mut read = Vec::new();
    drain(tail, |entry| read.extend(entry.text("NUMBER").map(str::to_owned)));
    read
}

#[test]
fn subfolders_are_followed_with_their_folder() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("0123/system.journal"), 0..2);
    write(&dir.path().join("remote/remote-a.journal"), 2..4);
    write(&dir.path().join("here.journal"), 4..6);
    write(&dir.path().join("remote/deeper/b.journal"), 100..101);
    write(&dir.path().join(".hidden/c.journal"), 100..101);
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    assert_eq!(read(&mut tail), numbers(0..6));

    write(&dir.path().join("0123/user-1000.journal"), 6..8);
    assert_eq!(read(&mut tail), numbers(6..8));
    write(&dir.path().join("4567/system.journal"), 8..10);
    assert_eq!(read(&mut tail), numbers(8..10));
    fs::remove_dir_all(dir.path().join("0123")).unwrap();
    write(&dir.path().join("4567/system.journal"), 10..12);
    assert_eq!(read(&mut tail), numbers(10..12));
}

#[test]
fn missing_folders_are_waited_for_and_may_vanish() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [dir.path().join("var/id"), dir.path().join("run/id")];
    let mut tail = Tail::open_folders(&folders, Start::Oldest).unwrap();
    assert_eq!(read(&mut tail), numbers(0..0));
    write(&folders[1].join("system.journal"), 0..2);
    assert_eq!(read(&mut tail), numbers(0..2));
    write(&folders[0].join("system.journal"), 2..4);
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    assert_eq!(read(&mut tail), numbers(2..4));
    fs::remove_dir_all(dir.path().join("var")).unwrap();
    assert_eq!(read(&mut tail), numbers(0..0));
    write(&folders[0].join("system.journal"), 4..6);
    assert_eq!(read(&mut tail), numbers(4..6));
}

#[test]
fn an_open_file_of_a_removed_folder_is_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [dir.path().join("var"), dir.path().join("run")];
    fs::create_dir(&folders[1]).unwrap();
    let mut writer = create(&folders[1].join("system.journal"), &small());
    let mut tail = Tail::open_folders(&folders, Start::Oldest).unwrap();
    append(&mut writer, 0..10);
    assert_eq!(read(&mut tail), numbers(0..10));
    append(&mut writer, 10..20);
    fs::remove_dir_all(&folders[1]).unwrap();
    assert_eq!(read(&mut tail), numbers(10..20));
}

/// The system's journald in private mounts, which keeps entries in `/run` until it is asked to flush them.
struct SystemJournald {
    process: ChildProcess,
    root: tempfile::TempDir,
    /// Its `/run/log`, in memory: journald removes files there only from a memory file system.
    volatile: tempfile::TempDir,
}

impl SystemJournald {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let volatile =
            tempfile::tempdir_in("/dev/shm").expect("this test needs /dev/shm, a file system in memory");
        for folder in ["run-systemd", "var-log", "etc"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let config = "[Journal]\nStorage=auto\nRateLimitIntervalSec=0\nReadKMsg=no\nAudit=no\n\
            RuntimeMaxUse=16M\nRuntimeKeepFree=1M\n";
        fs::write(root.path().join("etc/journald.conf"), config).unwrap();
        let mount_namespace_args: &[&str] =
            if rustix::process::geteuid().is_root() { &["-m"] } else { &["--user", "--map-root-user", "-m"] };
        let mounts = "mount --bind \"$0/run-systemd\" /run/systemd && mount --bind \"$1\" /run/log \
            && mount --bind \"$0/var-log\" /var/log && mount --bind \"$0/etc\" /etc/systemd \
            && exec /lib/systemd/systemd-journald";
        let stderr = root.path().join("stderr");
        let process = Command::new("unshare")
            .args(mount_namespace_args)
            .args(["--propagation", "private", "sh", "-c", mounts])
            .args([root.path(), volatile.path()])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&stderr).unwrap())
            .spawn();
        let process = process.expect("unshare cannot be run: install the Debian package util-linux");
        let mut system = Self { process: ChildProcess(process), root, volatile };
        wait_until("a private journald", || {
            assert!(
                system.process.0.try_wait().unwrap().is_none(),
                "no private journald can be started: this test needs the Debian package systemd, and root or \
                 user namespaces that may mount\n{}",
                fs::read_to_string(&stderr).unwrap()
            );
            system.journals().is_some() && UnixDatagram::unbound().unwrap().connect(system.socket()).is_ok()
        });
        system
    }

    fn socket(&self) -> PathBuf {
        self.root.path().join("run-systemd/journal/socket")
    }

    /// Returns the folder in `/run`, once it has a readable file.
    fn journals(&self) -> Option<PathBuf> {
        let folder = fs::read_dir(self.volatile.path().join("journal")).ok()?.next()?.ok()?.path();
        Tail::open(&folder.join("system.journal"), Start::File).is_ok().then_some(folder)
    }

    /// Returns the folders in `/var` and in `/run`.
    fn folders(&self) -> [PathBuf; 2] {
        let volatile = self.journals().unwrap();
        let id = volatile.file_name().unwrap();
        [self.root.path().join("var-log/journal").join(id), volatile]
    }

    fn send(&self, numbers: std::ops::Range<u64>) {
        let socket = UnixDatagram::unbound().unwrap();
        for number in numbers {
            socket.send_to(format!("NUMBER={number}\nMESSAGE=x\n").as_bytes(), self.socket()).unwrap();
        }
    }

    /// Makes journald copy its entries to `/var`, as systemd-journal-flush.service does at boot.
    fn flush(&self) {
        fs::create_dir(self.root.path().join("var-log/journal")).unwrap();
        kill_process(Pid::from_child(&self.process.0), Signal::USR1).unwrap();
        wait_until("the flush", || self.root.path().join("run-systemd/journal/flushed").exists());
    }
}

#[test]
fn entries_that_journald_copies_to_var_are_returned_once() {
    let system = SystemJournald::start();
    let folders = system.folders();
    let mut tail = Tail::open_folders(&folders, Start::Oldest).unwrap();
    let mut found = Vec::new();
    let mut wait_for = |end: u64| {
        wait_until("the entries", || {
            found.extend(read(&mut tail));
            found.len() as u64 >= end
        });
        assert_eq!(found, numbers(0..end));
    };
    system.send(0..20);
    wait_for(20);
    // These may be read from either folder.
    system.send(20..40);
    system.flush();
    system.send(40..60);
    wait_for(60);
    let copied: Vec<_> = values(&folders[0], Start::Oldest, "NUMBER");
    assert_eq!(copied.iter().filter(|number| !number.is_empty()).count(), 60);
    assert!(!folders[1].exists());
}

#[test]
fn a_permission_error_names_the_group_that_may_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("system.journal");
    write(&path, 0..1);
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        say_not_run(
            "a_permission_error_names_the_group_that_may_read",
            "only root can give files to a group, the rest of it runs",
        );
    }
    // Every system has this group. A user who is not root can only deny everyone.
    let (mode, who) = if is_root { (0o640, "as a member of the group adm") } else { (0o000, "as the user") };
    if is_root {
        let groups = fs::read_to_string("/etc/group").unwrap();
        let adm =
            groups.lines().find_map(|line| line.strip_prefix("adm:x:")?.split(':').next()?.parse().ok());
        std::os::unix::fs::chown(&path, None, adm).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    as_nobody(|| {
        for path in [&path, dir.path()] {
            let error = Tail::open(path, Start::Oldest).unwrap_err();
            assert!(matches!(error, ReadError::PermissionDenied { .. }), "{error}");
            assert!(
                error.to_string().contains(&format!("permission denied; run as root or {who}")),
                "{error}"
            );
        }
    });

    // The readable file is read, and the other one reported.
    let other = dir.path().join("user-65534.journal");
    write(&other, 1..2);
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    as_nobody(|| {
        let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
        assert_eq!(read(&mut tail), ["1"]);
        assert!(
            matches!(tail.refusal(), Some(ReadError::PermissionDenied { path, .. }) if path.ends_with("system.journal"))
        );
    });
}

/// Runs a function on a thread without privileges.
fn as_nobody(run: impl FnOnce() + Send) {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    std::thread::scope(|scope| {
        scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            run();
        });
    });
}
