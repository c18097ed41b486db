//! Conditions on a run, and what came of them.

mod assertion;
mod junit;

pub use assertion::{Assertion, AssertionError, Verdict, WrongUnit};
pub use junit::{Checked, junit};
