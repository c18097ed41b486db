//! What stands between a client and hyper: frames and lines are looked at first.

pub(crate) mod floods;
pub(crate) mod frame_tap;
pub(crate) mod http1_tap;
