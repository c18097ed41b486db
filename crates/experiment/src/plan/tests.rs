//! Plans as they are written, and as they fit the settings.

use super::*;

fn setting(name: &str, value: Value, applies: Applies) -> Setting {
    let range = matches!(value, Value::Number(_)).then_some((1.0, 256.0));
    Setting { name: name.to_owned(), value, unit: String::new(), applies, range }
}

fn settings() -> Vec<Setting> {
    vec![
        setting("proxy.workers", Value::Number(1.0), Applies::Live),
        setting("proxy.resumption", Value::Flag(true), Applies::NewConnections),
        setting("proxy.ciphers", Value::Text("default".to_owned()), Applies::NewConnections),
        setting("proxy.rate", Value::Number(1.0), Applies::Live),
        setting("load.rate", Value::Number(1.0), Applies::Live),
        setting("proxy.listen", Value::Text(":8443".to_owned()), Applies::Restart),
    ]
}

fn resolve(words: &str) -> Result<SettingChange, ExperimentPlanError> {
    words.parse::<ExperimentPlan>()?.resolve(&settings(), &[], Duration::from_secs(1))
}

#[test]
fn a_plan_has_defaults_and_each_word_changes_one() {
    let plan: ExperimentPlan = "workers=1..2".parse().unwrap();
    assert_eq!((plan.pairs, plan.calibration_pairs, plan.length()), (12, 6, Duration::from_secs(360)));
    let words = " proxy.workers = 1 .. 2 , metric=exchange.p99+cpu.per_exchange, pairs=20, aa=0, block=5s, discard=500ms, keep";
    let plan: ExperimentPlan = words.parse().unwrap();
    let names: Vec<_> = plan.metrics.iter().map(ComparableFigure::name).collect();
    assert_eq!(names, ["exchange.p99", "cpu.per_exchange"]);
    assert_eq!((&*plan.setting, &*plan.a, &*plan.b), ("proxy.workers", "1", "2"));
    assert_eq!((plan.pairs, plan.calibration_pairs, plan.flush), (20, 0, Some(false)));
    assert_eq!((plan.block, plan.discard), (Duration::from_secs(5), Duration::from_millis(500)));
    assert!((plan.alpha() - 0.025).abs() < 1e-12);
}

#[test]
fn a_length_by_name_stands_for_pairs_and_blocks() {
    let length = |words: &str| words.parse::<ExperimentPlan>().unwrap().length().as_secs();
    assert_eq!((length("workers=1..2,quick"), length("workers=1..2,normal")), (60, 360));
    assert_eq!(length("workers=1..2,careful"), 24 * 60);
    let plan: ExperimentPlan = "workers=1..2,quick,pairs=8".parse().unwrap();
    assert_eq!((plan.pairs, plan.block), (8, Duration::from_secs(5)));
}

#[test]
fn a_plan_says_what_it_can_show_before_it_starts() {
    let outlook = |words: &str| words.parse::<ExperimentPlan>().unwrap().outlook();
    assert_eq!(
        outlook("workers=1..2,quick"),
        "60s in all: 6 pairs of blocks of 5s, no A/A pairs; shows a difference of 5.7 % if pairs vary by 4 %, of 28.5 % if by 20 %"
    );
    let two = outlook("workers=1..2,quick,pairs=12,metric=exchange.p50+exchange.p99");
    assert!(two.contains("of 4.0 %"), "several figures share the error rate: {two}");
}

#[test]
fn values_may_hold_commas() {
    let plan: ExperimentPlan = "ciphers=A,B..C, D,E,pairs=20,flush".parse().unwrap();
    assert_eq!((&*plan.setting, &*plan.a, &*plan.b), ("ciphers", "A,B", "C, D,E"));
    assert_eq!((plan.pairs, plan.flush), (20, Some(true)));
    let plan: ExperimentPlan = "groups=x25519..x25519,p256".parse().unwrap();
    assert_eq!((&*plan.a, &*plan.b, plan.flush), ("x25519", "x25519,p256", None));
}

#[test]
fn unknown_words_are_refused_in_one_line() {
    for (words, expected) in [
        ("", "expected SETTING=A..B"),
        ("workers", "expected SETTING=A..B"),
        ("workers=1", "expected SETTING=A..B"),
        ("workers=1..", "expected SETTING=A..B"),
        ("workers=1..2,keep,often", "\"often\": expected quick"),
        ("workers=1..2,often=3", "\"often=3\": expected quick"),
        ("workers=1..2,keep,carefull", "\"carefull\": expected quick, "),
        ("workers=1..2,blocks=5s", "did you mean block=?"),
        ("workers=1..2,metric=p99", "there is no figure p99"),
        ("workers=1..2,metric=exchange.max", "exchange.max cannot be compared"),
        ("workers=1..2,pairs=many", "a number of pairs"),
        ("workers=1..2,pairs=5", "6 pairs are the fewest"),
        ("workers=1..2,aa=3", "6 pairs are the fewest"),
        ("workers=1..2,metric=exchange.p50+exchange.p99,pairs=12,aa=6", "7 pairs are the fewest"),
        ("workers=1..2,block=soon", "a time such as 10s"),
    ] {
        let error = words.parse::<ExperimentPlan>().unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{words}: {error}");
    }
}

#[test]
fn values_are_read_as_the_setting_has_them() {
    let change = resolve("workers=1..2").unwrap();
    assert_eq!((change.a, change.b, change.flush), (Value::Number(1.0), Value::Number(2.0), false));
    let change = resolve("proxy.resumption=on..off").unwrap();
    assert_eq!((change.a, change.b, change.flush), (Value::Flag(true), Value::Flag(false), true));
    assert!(!resolve("proxy.resumption=on..off,keep").unwrap().flush);
    assert_eq!(resolve("ciphers=x..y").unwrap().b, Value::Text("y".to_owned()));
    for (words, expected) in [
        ("rate=1..2", "there is no setting rate"),
        ("wokers=1..2", "did you mean workers?"),
        ("workers=1..2,quik", "\"quik\": expected quick, normal"),
        ("workers=1..2,quik", "did you mean quick?"),
        ("resumption=on..off,metric=resumed.ratio", "proxy.resumption itself sets it"),
        ("listen=:1..:2", "there is no setting listen"),
        ("workers=1..1000", "a number from 1 to 256"),
        ("workers=1..2,often", "\"often\": expected quick"),
        ("workers=1..two", "a number from 1 to 256"),
        ("resumption=on..maybe", "on or off"),
        ("workers=2..2.0", "both values are the same"),
        ("workers=1..2,block=3s", "less than two intervals"),
    ] {
        let error = resolve(words).unwrap_err().to_string();
        assert!(error.contains(expected), "{words}: {error}");
    }
}

#[test]
fn spellings_of_one_value_are_equal() {
    use records::setting::SettingKind;
    let parse = |text: &str| Some(if text == "1" { "off" } else { text }.to_owned());
    let kind = SettingKind::Parsed { parse, allowed: "" };
    let ciphers = SettingInfo { name: "proxy.ciphers".to_owned(), kind, ..SettingInfo::default() };
    let resolve = |words: &str| {
        let plan: ExperimentPlan = words.parse().unwrap();
        plan.resolve(&settings(), std::slice::from_ref(&ciphers), Duration::from_secs(1))
    };
    let error = resolve("ciphers=1..off").unwrap_err().to_string();
    assert_eq!(error, "proxy.ciphers 1 and off: both values are the same");
    assert_eq!(resolve("ciphers=1..2").unwrap().a, Value::Text("off".to_owned()));
}
