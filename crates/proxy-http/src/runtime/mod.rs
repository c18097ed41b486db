//! What hyper runs on: the worker polls its futures, keeps their timers and moves their bytes.

pub(crate) mod io;
pub(crate) mod tasks;
pub(crate) mod timers;
pub(crate) mod written;
