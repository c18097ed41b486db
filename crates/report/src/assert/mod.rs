//! Conditions on a run, and what came of them.

mod assertion;
mod junit;

pub use assertion::{Assertion, AssertionError, AssertionOutcome, WrongUnit};
pub use junit::{AssertionResult, junit};
