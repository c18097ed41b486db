//! A folder of journal files, which come and go.

pub(super) mod follower;
pub(super) mod set;
