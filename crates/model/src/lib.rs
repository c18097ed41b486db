//! What records say about runs: the [`Model`](runs::Model) that is built from them, and everything that is concluded from it.
//!
//! | room | content |
//! |---|---|
//! | [`runs`] | runs as they are built from records |
//! | [`history`] | reading journals: following, seeking, choosing runs, moments |
//! | [`insight`] | findings, advice on resumption, savings |
//! | [`figures`] | the catalogue of figures, and conditions on them |
//! | [`alerts`] | conditions that are watched while a run lasts |
//! | [`summary`] | a run in one document |

#![forbid(unsafe_code)]

pub mod alerts;
pub mod figures;
pub mod history;
pub mod insight;
pub mod runs;
pub mod summary;
#[cfg(test)]
#[path = "../../records/src/testing.rs"]
mod testing;
