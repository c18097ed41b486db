//! What is refused before anything starts.

use std::path::PathBuf;
use std::time::Duration;

use loadgen::{Load, LoadConfig, LoadStartError, Template, Trust};

use crate::support::plan;

fn refused(url: &str, plan_text: &str, change: impl FnOnce(&mut LoadConfig)) -> LoadStartError {
    let mut config = LoadConfig::new(url.parse().unwrap(), plan(plan_text), Trust::Insecure);
    change(&mut config);
    Load::start(config).expect_err("this cannot start")
}

#[test]
fn a_host_without_an_address_is_named() {
    let error = refused("https://nothing.invalid/", "connections=1", |_| {});
    assert!(matches!(error, LoadStartError::Resolve { .. }));
    assert!(error.to_string().starts_with("cannot resolve nothing.invalid: "), "{error}");
}

#[test]
fn a_plan_made_by_a_program_obeys_the_same_rules() {
    let no_connection = refused("https://127.0.0.1:1/", "", |config| config.plan.connections = 0);
    assert!(no_connection.to_string().starts_with("connections=0 in the load plan: "), "{no_connection}");
    let no_thread = refused("https://127.0.0.1:1/", "", |config| config.plan.threads = 0);
    assert!(matches!(no_thread, LoadStartError::Plan(_)), "{no_thread}");
    let no_time = refused("https://127.0.0.1:1/", "", |config| config.request_timeout = Duration::ZERO);
    assert!(matches!(no_time, LoadStartError::Timeout), "{no_time}");
}

#[test]
fn source_addresses_need_loopback() {
    for url in ["https://192.0.2.1/", "https://[::1]/"] {
        let error = refused(url, "connections=1,source-addresses=4", |_| {});
        assert!(error.to_string().contains("source-addresses=4 needs a target on IPv4 loopback"), "{error}");
    }
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for path in [PathBuf::from("/nonexistent/ca.pem"), empty, folder.path().to_owned()] {
        let error = refused("https://127.0.0.1:1/", "connections=1", |config| {
            config.trust = Trust::CaFile(path.clone());
        });
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_template_that_cannot_be_sent_is_named() {
    let error = refused("https://127.0.0.1:1/", "connections=1", |config| {
        config.requests = vec![Template::get("/fine"), Template::get("not fine")];
    });
    assert!(error.to_string().starts_with("request GET not fine: the path must"), "{error}");
}

/// Runs itself anew under a hard limit on descriptors.
#[test]
fn too_few_descriptors_are_reported_before_the_start() {
    const CHILD: &str = "LOADGEN_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        let error = refused("https://127.0.0.1:1/", "connections=1000", |_| {});
        assert!(
            matches!(error, LoadStartError::Descriptors { connections: 1000, limit: 256, .. }),
            "{error}"
        );
        // As many as there are can be had, though the soft limit is lower still.
        let config = LoadConfig::new(
            "https://127.0.0.1:1/".parse().unwrap(),
            plan("connections=100"),
            Trust::Insecure,
        );
        assert!(Load::start(config).is_ok());
        return;
    }
    let itself = std::env::current_exe().unwrap();
    let name = "start::too_few_descriptors_are_reported_before_the_start";
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -Sn 64 && ulimit -Hn 256 && exec \"$0\" --exact \"$1\""])
        .arg(itself)
        .arg(name)
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
