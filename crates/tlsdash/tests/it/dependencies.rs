//! Holds all dependencies to the licences, sources and banned crates of deny.toml, as cargo-deny does, which takes minutes to
//! build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, Licensee};

#[derive(Deserialize)]
struct Policy {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<BannedCrate>,
}

#[derive(Deserialize)]
struct BannedCrate {
    name: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Policy {
    fn read() -> Self {
        toml::from_str(&std::fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
    }

    /// Why a dependency may not be used. `place` is empty for the usual registry.
    fn objection(&self, name: &str, place: &str, licence: &str) -> Option<&'static str> {
        let allowed: Vec<Licensee> =
            self.licenses.allow.iter().map(|name| Licensee::parse(name).unwrap()).collect();
        let expression = Expression::parse(&licence.replace('/', " OR "));
        let is_allowed = expression
            .is_ok_and(|expression| expression.evaluate(|one| allowed.iter().any(|it| it.satisfies(one))));
        if !is_allowed {
            Some("its licence is not allowed")
        } else if self.bans.deny.iter().any(|banned| name == banned.name) {
            Some("it is banned")
        } else if !place.is_empty() && !Path::new(place).starts_with(root()) {
            Some("its source is unknown")
        } else {
            None
        }
    }
}

/// Name, place and licence of all that the workspace needs on this platform, for tests too. `cargo metadata` would also give
/// what features need that are off.
fn dependencies() -> BTreeSet<[String; 3]> {
    let words = [
        "tree",
        "--locked",
        "--workspace",
        "--edges",
        "normal,build,dev",
        "--prefix",
        "none",
        "--format",
        "{p}|{l}",
    ];
    let output = Command::new(env!("CARGO")).args(words).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // `name v1.0.0 (proc-macro) (/place)|MIT`, and ` (*)` behind one that was listed before.
    let dependency = |line: &str| {
        let (package, licence) = line.split_once('|').unwrap();
        let (name, rest) = package.split_once(' ').unwrap();
        let place = rest.replace("(proc-macro)", "");
        let place = place.split_once('(').map_or("", |(_, place)| place.trim_end().trim_end_matches(')'));
        [name, place, licence.trim_end_matches(" (*)")].map(str::to_owned)
    };
    text.lines().filter(|line| !line.is_empty()).map(dependency).collect()
}

#[test]
fn dependencies_keep_to_the_policy() {
    let (policy, all) = (Policy::read(), dependencies());
    assert!(all.len() > 100, "all were looked at: {all:?}");
    let objection = |[name, place, licence]: &[String; 3]| {
        policy.objection(name, place, licence).map(|objection| format!("{name}: {objection}"))
    };
    let objections: Vec<_> = all.iter().filter_map(objection).collect();
    assert!(objections.is_empty(), "{objections:?}");
}

#[test]
fn other_licences_sources_and_banned_crates_are_found() {
    let policy = Policy::read();
    let place = root().join("crates/x").display().to_string();
    for allowed in [["x", "", "MIT OR GPL-3.0-only"], ["x", &place, "MIT/Apache-2.0"]] {
        assert_eq!(policy.objection(allowed[0], allowed[1], allowed[2]), None, "{allowed:?}");
    }
    for ([name, place, licence], expected) in [
        (["x", "", "GPL-3.0-only"], "its licence is not allowed"),
        (["x", "", "MIT AND GPL-3.0-only"], "its licence is not allowed"),
        (["x", "", ""], "its licence is not allowed"),
        (["openssl", "", "MIT"], "it is banned"),
        (["x", "https://example.org/x#1234", "MIT"], "its source is unknown"),
        (["x", "/elsewhere/x", "MIT"], "its source is unknown"),
    ] {
        assert_eq!(policy.objection(name, place, licence), Some(expected), "{name} {place} {licence}");
    }
}
