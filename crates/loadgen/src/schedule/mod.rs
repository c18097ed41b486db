//! When requests fall due, and how a thread's load runs, pauses and ends.

mod load_state;
mod pacer;
mod random;
mod segments;

pub(crate) use load_state::{ControlChange, LoadState};
pub(crate) use pacer::{Due, Pacer, ThreadPart};
pub(crate) use segments::Segment;
