//! The dashboard itself: events in, effects out.

pub(crate) mod action;
pub(crate) mod export;
pub(crate) mod layout_file;
pub(crate) mod mouse;
pub(crate) mod navigation;
pub(crate) mod offscreen;
pub(crate) mod outcome;
pub(crate) mod plain;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod typing;
pub(crate) mod update;
mod want;
