//! When requests fall due, and how a thread's load runs, pauses and ends.

mod pacer;
mod random;
mod script;
mod segments;
mod thread_load_state;

pub(crate) use pacer::{DueRequest, Pacer, ThreadPart};
pub(crate) use segments::Segment;
pub(crate) use thread_load_state::{ControlChange, ThreadLoadState};
