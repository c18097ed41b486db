//! What goes wrong names its line and quotes the target, and nothing is left running.

use std::fs;
use std::net::TcpListener;

use super::{CASE, TLSDASH, bench, cells, processes_of, scenario, shell_target};
use crate::common::{self, stderr};

/// Runs a target that fails, after one that does not; returns the message about it, without the line that it must name.
fn failure_of(target: &str) -> String {
    let folder = scenario(1, &format!("{TLSDASH}{target}"));
    let output = bench(folder.path(), "--save saved");
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    assert!(output.status.success(), "the other target has figures: {}", stderr(&output));
    let cells = cells(&folder.path().join("saved"));
    let of = |name: &str| cells.iter().find(|cell| cell["target"] == name).unwrap();
    assert!(of("good")["failure"].is_null(), "{cells:?}");
    let failure = of("bad")["failure"].as_str().unwrap();
    assert!(stderr(&output).contains(failure), "it is said while it runs: {}", stderr(&output));
    let message = failure.strip_prefix("scenario.toml line 6: target bad: ");
    message.unwrap_or_else(|| panic!("no line in: {failure}")).to_owned()
}

#[test]
fn a_target_that_dies_at_once_is_quoted() {
    let message = failure_of(&shell_target("bad", "echo my last words >&2; exit 3 # {port}"));
    assert_eq!(message, "it ended with exit code 3 before it listened; it said: my last words");
}

#[test]
fn a_port_in_use_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = port.local_addr().unwrap().port();
    let listen = "exec python3 -m http.server --bind 127.0.0.1";
    let message = failure_of(&shell_target("bad", &format!("{listen} {taken} # {{port}}")));
    assert!(message.contains(" is in use by another process; it said: "), "{message}");
    assert!(message.contains("Address already in use"), "{message}");
}

#[test]
fn a_target_that_never_listens_is_given_up() {
    let target = shell_target("bad", "echo still loading; sleep 1000; # {port}");
    let message = failure_of(&format!("{target}start-timeout = \"500ms\"\n"));
    let (start, end) = ("it does not listen on 127.0.0.1:", " after 0.5 s; it said: still loading");
    assert!(message.starts_with(start) && message.ends_with(end), "{message}");
}

#[test]
fn a_target_that_needs_root_says_so() {
    // Not even root may write this.
    let message = failure_of(&shell_target("bad", "echo {port} > /proc/sys/kernel/ostype"));
    assert!(message.contains("for lack of permission: run it as root, or change what it does; it said: "));
    assert!(message.contains("ostype: Permission denied"), "{message}");
}

#[test]
fn a_target_that_answers_502_is_quoted() {
    common::outside("nginx", "nginx");
    // Nothing stands behind it.
    let message = failure_of(
        r#"[[target]]
name = "bad"
tls = false
upstream = "none"
command = ["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"]
[target.files]
"nginx.conf" = '''
daemon off; pid {dir}/pid; error_log stderr error;
events { }
http {
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    access_log off; server { listen {listen}; location / { proxy_pass http://127.0.0.1:1; } }
}
'''
"#,
    );
    assert!(message.starts_with("/echo is not answered as it should be: status 502"), "{message}");
    assert!(message.contains("the target said: ") && message.contains("Connection refused"), "{message}");
}

#[test]
fn a_target_that_dies_under_load_and_leaks_a_child_leaves_nothing() {
    // Forked twice into a session of its own: it has no parent left.
    let leak = "setsid sh -c \"sleep 1000 & exec true\"";
    let script = format!(
        "{leak}; \"{{tlsdash}}\" bench-upstream --unix sock --tcp {{port}} & \
         while [ ! -e {{dir}}/../../dies ]; do sleep 0.05; done; echo out of memory; exit 9"
    );
    let targets = format!("{TLSDASH}{}", shell_target("bad", &script));
    let folder = scenario(1, &targets);
    let path = folder.path().join("scenario.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("700ms", "60s")).unwrap();
    let mut command = super::bench_command(folder.path(), "--save saved --only bad");
    command.env("TMPDIR", folder.path());
    let running = common::TlsdashProcess::start(command);
    // The load itself keeps a journal here; the checks before it do not.
    let journals = || fs::read_dir(folder.path().join("saved/cells")).map_or(0, Iterator::count);
    common::until("the target is under load", || journals() > 0);
    fs::write(folder.path().join("dies"), "").unwrap();
    let (_, said) = running.wait();
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    let cells = cells(&folder.path().join("saved"));
    let failure = cells[0]["failure"].as_str().unwrap();
    assert!(failure.starts_with("scenario.toml line 6: target bad: the target ended under load; "), "{said}");
    assert!(failure.contains("2 processes outlived the command"), "{failure}");
    assert!(failure.contains("the target ended with exit code 9; the target said: "), "{failure}");
    assert!(failure.ends_with("out of memory"), "{failure}");
}

#[test]
fn a_target_that_is_slow_to_stop_has_its_time() {
    let slow = r#""{tlsdash}" bench-upstream --unix sock --tcp {port} & trap "sleep 1; echo > {dir}/../../stopped" TERM; wait"#;
    let folder = scenario(1, &shell_target("slow", slow));
    let mut command = super::bench_command(folder.path(), "--save saved");
    let output = command.env("TMPDIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.path().join("stopped").exists(), "it was killed while it stopped");
    assert_eq!(cells(&folder.path().join("saved"))[0]["remarks"], serde_json::json!([]));
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
}

#[test]
fn mistakes_in_a_scenario_name_its_line() {
    let folder = scenario(1, TLSDASH);
    let text = format!("{TLSDASH}{}", CASE.replace("connections", "conections"));
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    let output = bench(folder.path(), "");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("scenario.toml line 8: ") && said.contains("connections"), "{said}");
    // What `load` refuses.
    let text = format!("{TLSDASH}{}", CASE.replace("connections = 2", "connections = 0"));
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    let said = stderr(&bench(folder.path(), ""));
    assert!(said.contains("scenario.toml line 8: ") && said.contains("--connections"), "{said}");
}

#[test]
fn a_process_that_had_to_be_killed_is_a_remark() {
    let script =
        r#"(trap "" TERM; exec sleep 1000) & exec "{tlsdash}" bench-upstream --unix sock --tcp {port}"#;
    let folder = scenario(1, &shell_target("stubborn", script));
    let output = bench(folder.path(), "--save saved");
    assert!(output.status.success(), "{}", stderr(&output));
    let words = "when the target was stopped, 1 process did not end at SIGTERM and had to be killed";
    assert_eq!(cells(&folder.path().join("saved"))[0]["remarks"], serde_json::json!([words]));
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
}
