//! Tests whose outcome depends on the time that the machine has for them: `.ci/test` runs no others beside them.

mod bench;
mod bench_targets;
mod bench_templates;
mod floods;
mod likes;
mod observe;
mod wire;
