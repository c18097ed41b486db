//! Privileges of a process that holds keys: `--user`, no core dumps, no debugger.

use std::path::Path;

use anyhow::Context;
use nix::unistd::{self, Gid, Group, Uid, User};
use records::kinds::{Level, NoticeRecord};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::error::usage;

/// Keeps memory, with its keys, from files and from other processes of the same user: no core dump, no debugger, no
/// `/proc/PID/mem`. To be called before keys are read.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn forbid_dumps() -> anyhow::Result<()> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .context("cannot rule out core dumps")
}

pub(crate) fn is_root() -> bool {
    Uid::effective().is_root()
}

/// A warning if the program serves as root.
pub(crate) fn warning_of_root() -> Option<NoticeRecord> {
    let text = "serving as root: use --user, or User= in the unit";
    Uid::effective().is_root().then(|| NoticeRecord::new(Level::Warning, "root", text))
}

/// The user that the program becomes.
#[derive(Clone, Debug)]
pub(crate) struct ServiceUser {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl ServiceUser {
    /// Looks up `NAME` or `NAME:GROUP`, whom the program is to become.
    ///
    /// # Errors
    /// When there is no such user or group, it is root, or the program does not run as root.
    pub(crate) fn resolve(text: &str) -> anyhow::Result<Self> {
        let user = Self::find(text)?;
        if !is_root() {
            return Err(usage(format!(
                "--user {text}: only root can become somebody else; start it as root"
            )));
        }
        Ok(user)
    }

    /// Looks up `NAME` or `NAME:GROUP`.
    ///
    /// # Errors
    /// When there is no such user or group, or it is root.
    pub(crate) fn find(text: &str) -> anyhow::Result<Self> {
        let (name, group) = text.split_once(':').map_or((text, None), |(name, group)| (name, Some(group)));
        let user = User::from_name(name).ok().flatten();
        let user = user.ok_or_else(|| usage(format!("--user {text}: there is no user {name:?}")))?;
        let gid = match group {
            None => user.gid,
            Some(group) => {
                let found = Group::from_name(group).ok().flatten();
                found.ok_or_else(|| usage(format!("--user {text}: there is no group {group:?}")))?.gid
            }
        };
        if user.uid.is_root() {
            return Err(usage(format!("--user {text}: that is root, whom it shall not stay")));
        }
        Ok(Self { name: user.name, uid: user.uid, gid })
    }

    /// Makes this user the owner of `folder`, so it can write there later.
    pub(crate) fn give(&self, folder: &Path) -> anyhow::Result<()> {
        std::os::unix::fs::chown(folder, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
            .with_context(|| format!("cannot give {} to {}", folder.display(), self.name))
    }

    /// Does something with no more rights than this user has, as root before and after. Call it while there is only one
    /// thread.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn act<T>(&self, action: impl FnOnce() -> T) -> anyhow::Result<T> {
        let name = std::ffi::CString::new(self.name.as_str())?;
        let (groups, own) = (unistd::getgroups()?, Gid::effective());
        unistd::initgroups(&name, self.gid)
            .and_then(|()| unistd::setegid(self.gid))
            .and_then(|()| unistd::seteuid(self.uid))
            .with_context(|| format!("cannot act as {}", self.name))?;
        let done = action();
        unistd::seteuid(Uid::from_raw(0))
            .and_then(|()| unistd::setegid(own))
            .and_then(|()| unistd::setgroups(&groups))
            .context("cannot act as root again")?;
        // The kernel has reset it.
        forbid_dumps()?;
        Ok(done)
    }

    /// Switches to this user permanently, with its supplementary groups. Call it while there is only one thread: the
    /// kernel changes the user of the calling thread only.
    ///
    /// # Errors
    /// If the kernel refuses, or would let the program become root again.
    pub(crate) fn switch_to(&self) -> anyhow::Result<()> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        anyhow::ensure!(threads == 1, "cannot become {}: there are {threads} threads already", self.name);
        let name = std::ffi::CString::new(self.name.as_str())?;
        // In this order, since only root may change groups.
        unistd::initgroups(&name, self.gid)
            .and_then(|()| unistd::setgid(self.gid))
            .and_then(|()| unistd::setuid(self.uid))
            .with_context(|| format!("cannot become {}", self.name))?;
        anyhow::ensure!(
            unistd::setuid(Uid::from_raw(0)).is_err(),
            "cannot become {}: the way back to root is open",
            self.name
        );
        rustix::thread::set_no_new_privs(true).context("cannot rule out new privileges")?;
        // The kernel resets who may dump a process that changed its user (`fs.suid_dumpable`).
        forbid_dumps()
    }
}
