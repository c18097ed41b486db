//! When requests fall due, and how a thread's load runs, pauses and ends.

mod course;
mod pacer;
mod random;
mod segments;

pub(crate) use course::{Course, Obeyed};
pub(crate) use pacer::{Due, Pacer, Part};
pub(crate) use segments::Segment;
