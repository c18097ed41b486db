//! Holds the edges between the crates, as docs/architecture.md draws them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Which crates of ours each may depend on.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("tlsdash-journal", &[]),
    ("tlsdash-output-file", &[]),
    ("tlsdash-hello", &[]),
    ("tlsdash-http-codec", &[]),
    ("tlsdash-records", &["tlsdash-journal"]),
    ("tlsdash-recorder", &["tlsdash-journal", "tlsdash-records"]),
    ("tlsdash-model", &["tlsdash-journal", "tlsdash-records"]),
    ("tlsdash-tls-client", &["tlsdash-records"]),
    (
        "tlsdash-log-store",
        &["tlsdash-journal", "tlsdash-output-file", "tlsdash-records", "tlsdash-tls-client"],
    ),
    ("tlsdash-acme", &["tlsdash-output-file", "tlsdash-tls-client"]),
    ("tlsdash-proxy-core", &["tlsdash-hello", "tlsdash-records", "tlsdash-tls-client"]),
    ("tlsdash-proxy-http", &["tlsdash-http-codec", "tlsdash-proxy-core", "tlsdash-records"]),
    ("tlsdash-loadgen", &["tlsdash-hello", "tlsdash-http-codec", "tlsdash-records", "tlsdash-tls-client"]),
    ("tlsdash-mix", &["tlsdash-loadgen", "tlsdash-records"]),
    ("tlsdash-observe", &["tlsdash-journal", "tlsdash-records", "tlsdash-recorder"]),
    ("tlsdash-wire", &["tlsdash-hello", "tlsdash-records", "tlsdash-recorder"]),
    ("tlsdash-tui", &["tlsdash-records", "tlsdash-model", "tlsdash-output-file"]),
    ("tlsdash-experiment", &["tlsdash-records", "tlsdash-model"]),
    ("tlsdash-report", &["tlsdash-records", "tlsdash-model", "tlsdash-experiment", "tlsdash-bench"]),
    (
        "tlsdash-bench",
        &[
            "tlsdash-records",
            "tlsdash-recorder",
            "tlsdash-model",
            "tlsdash-output-file",
            "tlsdash-experiment",
        ],
    ),
    (
        "benchmarks",
        &[
            "tlsdash-bench",
            "tlsdash-journal",
            "tlsdash-records",
            "tlsdash-recorder",
            "tlsdash-model",
            "tlsdash-loadgen",
            "tlsdash-observe",
            "tlsdash-wire",
            "tlsdash-tui",
            "tlsdash-experiment",
        ],
    ),
    (
        "fuzz",
        &[
            "tlsdash",
            "tlsdash-journal",
            "tlsdash-loadgen",
            "tlsdash-model",
            "tlsdash-observe",
            "tlsdash-proxy-core",
            "tlsdash-proxy-http",
            "tlsdash-records",
            "tlsdash-wire",
        ],
    ),
    (
        "tlsdash",
        &[
            "tlsdash-acme",
            "tlsdash-journal",
            "tlsdash-log-store",
            "tlsdash-output-file",
            "tlsdash-records",
            "tlsdash-recorder",
            "tlsdash-model",
            "tlsdash-proxy-core",
            "tlsdash-proxy-http",
            "tlsdash-loadgen",
            "tlsdash-mix",
            "tlsdash-observe",
            "tlsdash-wire",
            "tlsdash-tui",
            "tlsdash-experiment",
            "tlsdash-report",
            "tlsdash-bench",
        ],
    ),
];

/// Which more each may use in its tests and examples: those build runs from records, and records from counts.
const TESTS_MAY_KNOW: [&str; 2] = ["tlsdash-recorder", "tlsdash-model"];

/// The floors of a crate, from the lowest up, each with its rooms. A room imports only from its own floor and those below.
const FLOORS: &[(&str, &[&[&str]])] = &[
    (
        "records",
        &[
            &["text"],
            &["ids"],
            &["metrics"],
            &["histogram"],
            &["wire"],
            &["values"],
            &["setting"],
            &["kinds"],
            &["command"],
            &["codec"],
            &["delta"],
            &["slice"],
            &["downsample"],
            &["rollups"],
        ],
    ),
    ("recorder", &[&["host"], &["publish"], &["observer"]]),
    // The model has a run judged after each interval.
    ("model", &[&["runs", "insight"], &["history"], &["figures"], &["alerts"], &["summary"]]),
    (
        "tlsdash",
        &[
            &["error", "say"],
            &["value"],
            &["service"],
            &["journals"],
            &["cli"],
            &["control"],
            &["upgrade"],
            &["summary"],
            &["session"],
            &["commands"],
            &["command_line"],
        ],
    ),
];

/// The floors of the dashboard, from the lowest up, by room or by the file of a pane or screen. What is named nowhere is a
/// view.
const DASHBOARD: [&[&str]; 5] = [
    &[
        "clock",
        "format",
        "theme",
        "options",
        "input",
        "terminal",
        "table",
        "view_model",
        "model",
        "columns",
        "rows",
        "detail",
        "history",
        "levels",
    ],
    &["state", "form", "changes", "quick_control", "completion", "palette"],
    &["view"],
    &["frame"],
    &["app"],
];

/// Which crates of ours alone may depend on a library.
const CONFINED: &[(&str, &[&str])] = &[
    ("rustls", &["tlsdash-tls-client", "tlsdash-acme", "tlsdash-proxy-core", "tlsdash-loadgen"]),
    ("instant-acme", &["tlsdash-acme"]),
    ("ureq", &["tlsdash-log-store"]),
    ("aws-lc-rs", &["tlsdash-proxy-core", "tlsdash-proxy-http"]),
    ("x509-parser", &["tlsdash-acme", "tlsdash-proxy-core"]),
    ("ratatui", &["tlsdash-tui"]),
    ("crossterm", &["tlsdash-tui"]),
    ("clap", &["tlsdash"]),
    ("anyhow", &["tlsdash"]),
    ("systemd-journal-reader", &["tlsdash-journal"]),
    ("hdrhistogram", &["tlsdash-records"]),
    ("statrs", &["tlsdash-experiment"]),
    ("maud", &["tlsdash-report"]),
    ("prost", &["tlsdash-report"]),
    ("hyper", &["tlsdash-acme", "tlsdash-proxy-http", "tlsdash-loadgen"]),
    ("tokio", &["tlsdash-acme", "tlsdash-loadgen", "tlsdash-proxy-http"]),
    ("etherparse", &["tlsdash-wire"]),
    ("pcap-parser", &["tlsdash-wire"]),
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
    let metadata = metadata();
    let ours: BTreeSet<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    for with_dev in [false, true] {
        let known = dependencies(&metadata, with_dev);
        let found: BTreeSet<&str> = known.keys().map(String::as_str).collect();
        assert_eq!(found, ours, "a crate is missing in this test's table");
        for (name, allowed) in MAY_KNOW {
            for edge in known[*name].iter().map(String::as_str).filter(|dep| ours.contains(dep)) {
                let may = allowed.contains(&edge) || (with_dev && TESTS_MAY_KNOW.contains(&edge));
                assert!(may, "{name} must not know {edge}");
            }
        }
    }
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The rooms that a file names after `crate::`, without those of its comments and unit tests.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    lines.flat_map(|line| line.split("crate::").skip(1)).filter_map(move |rest| rest.split(ends).next())
}

#[test]
fn rooms_import_only_from_those_below() {
    for (name, floors) in FLOORS {
        let root = PathBuf::from(format!("{}/../{name}/src", env!("CARGO_MANIFEST_DIR")));
        let declared = std::fs::read_to_string(root.join("lib.rs")).expect("every crate has one");
        let declared = declared.lines().map(|line| line.strip_prefix("pub ").unwrap_or(line));
        let declared = declared.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        let declared = declared.filter(|room| !is_of_tests(Path::new(room)));
        assert_eq!(
            declared.collect::<BTreeSet<_>>(),
            floors.iter().copied().flatten().copied().collect(),
            "{name}"
        );
        let floor_of = |room: &str| floors.iter().position(|rooms| rooms.contains(&room));
        for room in floors.iter().copied().flatten() {
            let folder = root.join(room);
            let files =
                if folder.is_dir() { sources(&folder) } else { vec![root.join(format!("{room}.rs"))] };
            for file in files.iter().filter(|file| !is_of_tests(file)) {
                let text = std::fs::read_to_string(file).expect("a source file");
                let above = imported(&text).find(|other| floor_of(other) > floor_of(room));
                assert_eq!(above, None, "{}: what {room} must not know", file.display());
            }
        }
    }
}

/// The floor in the dashboard of a file, or of what is imported from it: `panes/hosts/model.rs`, `panes::hosts::model::HostRow`.
fn floor_in_dashboard(path: &str) -> usize {
    let names: Vec<&str> =
        path.trim_end_matches(".rs").split(['/', ':']).filter(|name| !name.is_empty()).collect();
    let floor_of = |name: &&str| DASHBOARD.iter().position(|floor| floor.contains(name));
    match names[..] {
        // The ids and the layout of panes, and the prompt, are state.
        ["panes" | "prompt"] | ["panes" | "prompt", "mod"] => 1,
        ["panes" | "prompt", item, ..] if item.starts_with(char::is_uppercase) => 1,
        ["panes" | "screens" | "prompt", ref within @ ..] => within.iter().find_map(floor_of).unwrap_or(2),
        [ref room, ..] => floor_of(room).unwrap_or(2),
        [] => 0,
    }
}

#[test]
fn in_the_dashboard_models_know_no_state_and_states_no_view() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tui/src"));
    let is_root = |file: &Path| file.parent() == Some(&root) && !file.ends_with("format.rs");
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut floors = [0; DASHBOARD.len()];
    for file in sources(&root).iter().filter(|file| !is_of_tests(file) && !is_root(file)) {
        let within =
            file.strip_prefix(&root).expect("a file of the dashboard").to_str().expect("a plain name");
        let floor = floor_in_dashboard(within);
        floors[floor] += 1;
        let text = std::fs::read_to_string(file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//") && !line.starts_with("pub(crate) mod"));
        let paths = lines.flat_map(|line| line.split("crate::").skip(1));
        let paths = paths.map(|rest| &rest[..rest.find(|c| !is_path(c)).unwrap_or(rest.len())]);
        let above: Vec<&str> = paths.filter(|path| floor_in_dashboard(path) > floor).collect();
        assert_eq!(above, [""; 0], "{within} is on floor {floor}");
    }
    assert!(floors.iter().all(|files| *files > 0), "{floors:?}");
}

/// Whether a file is compiled for unit tests only.
fn is_of_tests(file: &Path) -> bool {
    let named = |part: &str| part == "tests" || part == "testing" || part.ends_with("_tests");
    file.with_extension("").components().any(|part| part.as_os_str().to_str().is_some_and(named))
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
