//! `packaging/install.sh`: what is not what its release names is not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::stderr;
use tempfile::TempDir;

/// A release for this machine with a program that says its version, and a place to install it.
struct Release(TempDir);

impl Release {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = "mkdir -p release root/usr/bin root/usr/share/man/man1
            printf '#!/bin/sh\\necho tlsdash 9.8.7\\n' >root/usr/bin/tlsdash
            chmod 755 root/usr/bin/tlsdash
            echo manual >root/usr/share/man/man1/tlsdash.1
            name=tlsdash-9.8.7-$(uname -m)-linux
            tar -C root --transform=\"s,^\\.,$name,\" -czf \"release/$name.tar.gz\" .
            cd release && sha256sum * >SHA256SUMS";
        let built = Command::new("sh").args(["-euc", script]).current_dir(&folder).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("release").join(name)
    }

    fn archive(&self) -> PathBuf {
        let mut all = fs::read_dir(self.file("")).unwrap().map(|entry| entry.unwrap().path());
        all.find(|path| path.extension().is_some_and(|end| end == "gz")).unwrap()
    }

    fn install_from(&self, from: &Path) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install.sh");
        Command::new("sh").arg(script).arg(from).arg(self.prefix()).output().unwrap()
    }

    fn prefix(&self) -> PathBuf {
        self.0.path().join("a prefix")
    }

    /// Tries to install, which must fail, leave nothing, and say this.
    fn is_refused(&self, from: &Path, why: &str) {
        let refused = self.install_from(from);
        assert!(!refused.status.success() && stderr(&refused).contains(why), "{}", stderr(&refused));
        assert!(!self.prefix().exists());
    }
}

#[test]
fn a_whole_release_is_installed_over_an_older_one() {
    let release = Release::new();
    for _ in 0..2 {
        let installed = release.install_from(&release.file(""));
        assert!(installed.status.success(), "{}", stderr(&installed));
        assert_eq!(String::from_utf8_lossy(&installed.stdout), "tlsdash 9.8.7\n");
        assert!(stderr(&installed).contains("not verified"), "{}", stderr(&installed));
    }
    for file in ["bin/tlsdash", "share/man/man1/tlsdash.1"] {
        assert!(release.prefix().join(file).exists(), "{file}");
    }
}

#[test]
fn a_changed_archive_is_not_installed() {
    let release = Release::new();
    let mut archive = fs::read(release.archive()).unwrap();
    *archive.last_mut().unwrap() ^= 1;
    fs::write(release.archive(), archive).unwrap();
    release.is_refused(&release.file(""), "is not what SHA256SUMS names");
}

#[test]
fn an_archive_without_a_checksum_is_not_installed() {
    let release = Release::new();
    fs::write(release.file("SHA256SUMS"), "").unwrap();
    release.is_refused(&release.file(""), "has nothing for");
}

#[test]
fn nothing_comes_without_encryption() {
    Release::new().is_refused(Path::new("http://127.0.0.1:9/release"), "over https");
}
