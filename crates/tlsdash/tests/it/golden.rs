//! Recordings of released versions (`just golden`) give the figures that those versions gave (docs/formats.md).

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;

use crate::common::{outside, run, stderr};

/// Asserts that all of `golden` is in `today`, which may have more fields.
fn assert_kept(golden: &Value, today: &Value, place: &str) {
    match (golden, today) {
        (Value::Object(golden), Value::Object(today)) => {
            for (key, value) in golden {
                let place = format!("{place}.{key}");
                assert_kept(value, today.get(key).unwrap_or_else(|| panic!("{place} is gone")), &place);
            }
        }
        (Value::Array(golden), Value::Array(today)) => {
            assert!(golden.len() <= today.len(), "{place} has fewer entries: {today:?}");
            for (index, (golden, today)) in golden.iter().zip(today).enumerate() {
                assert_kept(golden, today, &format!("{place}[{index}]"));
            }
        }
        // jq writes 1.0 as 1.
        (Value::Number(golden), Value::Number(today)) => {
            assert_eq!(today.as_f64(), golden.as_f64(), "{place}");
        }
        _ => assert_eq!(today, golden, "{place}"),
    }
}

#[test]
fn recordings_of_earlier_versions_give_the_same_figures() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
    let mut compared = 0;
    for file in fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("golden.journal");
        let unpacked = File::create(&recording).unwrap();
        assert!(outside("gzip", "gzip").arg("-dc").arg(&file).stdout(unpacked).status().unwrap().success());
        let report = run(folder.path(), &["report", recording.to_str().unwrap(), "--json", "-"]);
        assert!(report.status.success() && report.stderr.is_empty(), "{file:?}: {}", stderr(&report));
        let golden = file.with_extension("").with_extension("json");
        let golden = serde_json::from_slice(&fs::read(golden).unwrap()).unwrap();
        assert_kept(&golden, &serde_json::from_slice(&report.stdout).unwrap(), &file.display().to_string());
        compared += 1;
    }
    assert!(compared >= 2, "{compared}");
}
