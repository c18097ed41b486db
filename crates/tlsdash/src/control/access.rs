//! Who may read and who may write, by the credentials that the kernel gives for the peer (`SO_PEERCRED`).

use std::os::unix::net::UnixStream;

use anyhow::Context;
use nix::unistd::{Gid, Group, Uid, User};
use rustix::net::sockopt::socket_peercred;

use crate::error::usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    None,
    /// Ask for figures and settings.
    Read,
    /// Change things too.
    Write,
}

#[derive(Clone, Debug)]
pub(crate) struct ControlGroup {
    pub(crate) gid: Gid,
    members: Vec<String>,
}

impl ControlGroup {
    /// Looks up the group of an option.
    ///
    /// # Errors
    /// If there is no such group.
    pub(crate) fn find(option: &str, name: &str) -> anyhow::Result<Self> {
        let group = Group::from_name(name).ok().flatten();
        let group = group.ok_or_else(|| usage(format!("{option} {name}: there is no such group")))?;
        Ok(Self { gid: group.gid, members: group.mem })
    }

    fn holds(&self, peer: &ControlPeer) -> bool {
        peer.gid == self.gid || peer.user.as_ref().is_some_and(|user| self.members.contains(user))
    }
}

/// The client process of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ControlPeer {
    uid: Uid,
    /// Its primary group.
    gid: Gid,
    pid: i32,
    /// The name of its user; `None` if there is none.
    user: Option<String>,
}

impl ControlPeer {
    /// The peer of a connection, when it connected.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub(crate) fn of(stream: &UnixStream) -> anyhow::Result<Self> {
        let credentials = socket_peercred(stream).context("cannot tell who connects")?;
        let uid = Uid::from_raw(credentials.uid.as_raw());
        let user = User::from_uid(uid).ok().flatten().map(|user| user.name);
        let gid = Gid::from_raw(credentials.gid.as_raw());
        Ok(Self { uid, gid, pid: credentials.pid.as_raw_nonzero().get(), user })
    }

    /// The name for records, such as `alice (uid 1000, pid 4711)`.
    pub(crate) fn name(&self) -> String {
        let Self { uid, pid, user, .. } = self;
        match user {
            Some(user) => format!("{} (uid {uid}, pid {pid})", records::text::clean::line(user)),
            None => format!("uid {uid} (pid {pid})"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AccessRules {
    /// The user of the service, who may write.
    pub(crate) owner: Uid,
    /// The group of `--control-group`, whose members may write.
    pub(crate) writers: Option<ControlGroup>,
    /// The group of `--control-readers`, whose members may read.
    pub(crate) readers: Option<ControlGroup>,
}

impl AccessRules {
    /// Whether root or the service's own user connects. Needs no look-up of names.
    pub(crate) fn is_owner(&self, stream: &UnixStream) -> bool {
        let uid = socket_peercred(stream).map(|peer| Uid::from_raw(peer.uid.as_raw()));
        uid.is_ok_and(|uid| uid.is_root() || uid == self.owner)
    }

    pub(crate) fn of(&self, peer: &ControlPeer) -> Access {
        let is_in = |group: &Option<ControlGroup>| group.as_ref().is_some_and(|group| group.holds(peer));
        if peer.uid.is_root() || peer.uid == self.owner || is_in(&self.writers) {
            Access::Write
        } else if is_in(&self.readers) {
            Access::Read
        } else {
            Access::None
        }
    }

    /// The mode of the socket: if one group has access, the kernel keeps everybody else out.
    pub(crate) fn mode(&self) -> u32 {
        match (&self.writers, &self.readers) {
            (_, Some(_)) => 0o666,
            (Some(_), None) => 0o660,
            (None, None) => 0o600,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: u32, gid: u32, user: &str) -> ControlPeer {
        ControlPeer { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), pid: 7, user: Some(user.to_owned()) }
    }

    fn group(gid: u32, members: &[&str]) -> ControlGroup {
        let members = members.iter().map(|&member| member.to_owned()).collect();
        ControlGroup { gid: Gid::from_raw(gid), members }
    }

    #[test]
    fn root_the_service_and_the_groups_have_access() {
        let rules = AccessRules {
            owner: Uid::from_raw(500),
            writers: Some(group(600, &["anna"])),
            readers: Some(group(700, &["ben"])),
        };
        for (peer, access) in [
            (peer(0, 0, "root"), Access::Write),
            (peer(500, 500, "tlsdash"), Access::Write),
            (peer(1000, 600, "carl"), Access::Write),
            (peer(1001, 1001, "anna"), Access::Write),
            (peer(1002, 700, "dora"), Access::Read),
            (peer(1003, 1003, "ben"), Access::Read),
            (peer(1004, 1004, "emil"), Access::None),
        ] {
            assert_eq!(rules.of(&peer), access, "{peer:?}");
        }
    }

    #[test]
    fn without_groups_only_root_and_the_service_reach_the_socket() {
        let mut rules = AccessRules { owner: Uid::from_raw(500), writers: None, readers: None };
        assert_eq!((rules.of(&peer(1000, 1000, "anna")), rules.mode()), (Access::None, 0o600));
        rules.writers = Some(group(600, &[]));
        assert_eq!(rules.mode(), 0o660);
        rules.readers = Some(group(700, &[]));
        assert_eq!(rules.mode(), 0o666);
    }
}
