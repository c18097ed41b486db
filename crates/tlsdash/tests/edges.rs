//! Holds the edges between the crates, as docs/architecture.md draws them.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Which crates of ours each may depend on, whatever the kind of dependency.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("tlsdash-journal", &[]),
    ("tlsdash-telemetry", &["tlsdash-journal"]),
    ("tlsdash-http-codec", &[]),
    ("tlsdash-proxy-core", &["tlsdash-telemetry"]),
    ("tlsdash-proxy-http", &["tlsdash-http-codec", "tlsdash-proxy-core", "tlsdash-telemetry"]),
    ("tlsdash-loadgen", &["tlsdash-http-codec", "tlsdash-telemetry"]),
    ("tlsdash-observe", &["tlsdash-journal", "tlsdash-telemetry"]),
    ("tlsdash-tui", &["tlsdash-telemetry"]),
    ("tlsdash-experiment", &["tlsdash-telemetry"]),
    ("tlsdash-report", &["tlsdash-telemetry", "tlsdash-experiment", "tlsdash-bench"]),
    ("tlsdash-bench", &["tlsdash-telemetry", "tlsdash-experiment"]),
    (
        "benchmarks",
        &["tlsdash-bench", "tlsdash-journal", "tlsdash-telemetry", "tlsdash-loadgen", "tlsdash-experiment"],
    ),
    (
        "tlsdash",
        &[
            "tlsdash-journal",
            "tlsdash-telemetry",
            "tlsdash-proxy-core",
            "tlsdash-proxy-http",
            "tlsdash-loadgen",
            "tlsdash-observe",
            "tlsdash-tui",
            "tlsdash-experiment",
            "tlsdash-report",
            "tlsdash-bench",
        ],
    ),
];

/// Which crates of ours alone may depend on a library.
const CONFINED: &[(&str, &[&str])] = &[
    ("rustls", &["tlsdash-proxy-core", "tlsdash-loadgen"]),
    ("aws-lc-rs", &["tlsdash-proxy-core"]),
    ("x509-parser", &["tlsdash-proxy-core"]),
    ("ratatui", &["tlsdash-tui"]),
    ("crossterm", &["tlsdash-tui"]),
    ("clap", &["tlsdash"]),
    ("anyhow", &["tlsdash"]),
    ("systemd-journal-reader", &["tlsdash-journal"]),
    ("hdrhistogram", &["tlsdash-telemetry"]),
    ("statrs", &["tlsdash-experiment"]),
    ("maud", &["tlsdash-report"]),
    ("hyper", &["tlsdash-proxy-http", "tlsdash-loadgen"]),
    ("tokio", &["tlsdash-loadgen"]),
];

/// What the manifests say. Without their dependencies, which would have to be fetched for every platform.
fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata works in the workspace")
}

/// Direct dependencies of each crate of ours; those for its tests alone only if `with_dev`.
fn dependencies(metadata: &Metadata, with_dev: bool) -> BTreeMap<String, BTreeSet<String>> {
    let direct = |package: &cargo_metadata::Package| {
        let kept =
            package.dependencies.iter().filter(|dep| with_dev || dep.kind != DependencyKind::Development);
        kept.map(|dep| dep.name.clone()).collect()
    };
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.to_string(), direct(package)))
        .collect()
}

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let known = dependencies(&metadata(), true);
    let ours: BTreeSet<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = known.keys().map(String::as_str).collect();
    assert_eq!(found, ours, "a crate is missing in this test's table");
    for (name, allowed) in MAY_KNOW {
        let edges: Vec<_> = known[*name].iter().filter(|dep| ours.contains(dep.as_str())).collect();
        for edge in edges {
            assert!(allowed.contains(&edge.as_str()), "{name} must not know {edge}");
        }
    }
}

#[test]
fn libraries_stay_where_they_belong() {
    for (name, libraries) in dependencies(&metadata(), false) {
        for (library, homes) in CONFINED {
            assert!(
                !libraries.contains(*library) || homes.contains(&name.as_str()),
                "{name} must not use {library}: it belongs to {homes:?}"
            );
        }
    }
}

#[test]
fn the_reader_of_record_and_the_fixed_libraries_are_in_use() {
    let all: BTreeSet<String> = dependencies(&metadata(), false).into_values().flatten().collect();
    for library in ["ratatui", "crossterm", "hyper", "rustls", "hdrhistogram", "systemd-journal-reader"] {
        assert!(all.contains(library), "{library} is not used");
    }
}
