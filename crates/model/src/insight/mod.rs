//! Conclusions from a run's figures: findings, advice on resumption, the cost of handshakes, and the savings of
//! changes.
//!
//! They are computed from records, so a recording gives the same answers as the live screen.

pub(crate) mod findings;
mod resumption;
mod savings;
mod shares;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::runs::findings::{Evidence, Finding, FindingText, Severity};
pub use findings::{Expiry, FindingSummary, expiry_of, findings_among_hosts, first_expiry};
pub use resumption::{Advice, advice, full_by_load};
pub use savings::{DurationStats, HandshakeMix, HowTo, Saving, SavingChange, UncertainValue, savings};
