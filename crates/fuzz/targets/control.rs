//! Sends anything to the control socket of a service: nothing panics, each line gets one answer in one line, who may only
//! read changes nothing, and what is carried out reads the same when it is sent again.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tlsdash::answer_control_requests;

/// The requests that change nothing.
const READS: [&str; 4] = ["access", "status", "settings", "clients"];
/// An answer quotes at most what it answers, each byte escaped.
const ANSWER_OVER_LINE: usize = 6;

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let answered = answer(input, true);
    let asked: Vec<String> = answer(input, false);
    for request in &asked {
        assert!(READS.contains(&name(request).as_str()), "{request}");
    }
    assert!(asked.iter().all(|request| answered.contains(request)));
    for request in answered {
        assert_eq!(answer(format!("{request}\n").as_bytes(), true), [request]);
    }
});

/// Returns the requests that are carried out.
fn answer(input: &[u8], may_write: bool) -> Vec<String> {
    let mut carried_out = Vec::new();
    let answers = answer_control_requests(input, may_write, &mut carried_out);
    // What follows the last line break is no request yet.
    let lines = input.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let lines: Vec<&[u8]> = lines.collect();
    assert!(answers.len() == lines.len(), "{} of {}", answers.len(), lines.len());
    for (answer, line) in answers.iter().zip(lines) {
        assert!(answer.ends_with('\n') && answer.trim_end().lines().count() == 1, "{answer:?}");
        assert!(answer.len() <= 1_024 + ANSWER_OVER_LINE * line.len(), "{answer:?}");
        let answer: Value = serde_json::from_str(answer).expect("JSON");
        assert!(
            answer["version"] == 1 && answer["ok"].is_boolean() && answer["text"].is_string(),
            "{answer}"
        );
    }
    carried_out
}

fn name(request: &str) -> String {
    let request: Value = serde_json::from_str(request).expect("JSON");
    request["request"].as_str().expect("a name").to_owned()
}

/// Writes each request alone, and all of them together.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let seeds = [
        r#"{"request":"access"}"#,
        r#"{"request":"status"}"#,
        r#"{"request":"settings"}"#,
        r#"{"request":"clients","limit":3}"#,
        r#"{"request":"set","name":"load.rate","value":"200","for_s":600.0}"#,
        r#"{"request":"mark","text":"kernel update"}"#,
        r#"{"request":"reload"}"#,
        r#"{"request":"drain"}"#,
        r#"{"request":"forget-sessions"}"#,
        r#"{"request":"load","running":true}"#,
        r#"{"request":"experiment","words":"workers=1..2,pairs=12"}"#,
        r#"{"request":"end-experiment"}"#,
        r#"{"request":"calibrate"}"#,
    ];
    let mut carried_out = Vec::new();
    for (nth, seed) in seeds.iter().enumerate() {
        let line = format!("{seed}\n");
        answer_control_requests(line.as_bytes(), true, &mut carried_out);
        std::fs::write(folder.join(nth.to_string()), line)?;
    }
    assert_eq!(carried_out, seeds, "each seed is a request");
    std::fs::write(folder.join("all"), seeds.join("\n") + "\n")
}
