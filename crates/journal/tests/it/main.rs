//! Journals against journald, journalctl and damage.

#![allow(clippy::unwrap_used, reason = "this is test code, though outside of test functions")]

#[path = "../common/mod.rs"]
mod common;

mod archives;
mod damaged;
mod differential;
mod filter;
mod folder;
mod folders;
mod following;
mod hostile;
mod journalctl;
mod journald;
mod killed_writer;
mod many_files;
mod native_protocol;
mod racing;
mod rate_limit;
mod remote;
mod rotations;
mod sending;
mod values;
mod writing;
