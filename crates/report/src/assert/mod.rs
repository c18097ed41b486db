//! Conditions on a run, and their results.

mod assertion;
mod junit;

pub use assertion::{Assertion, AssertionError, AssertionOutcome};
pub use junit::{AssertionResult, JunitCase, junit};
