//! Targets whose workers run as another user than bench.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::geteuid;

use super::{bench_command, cells, scenario};
use crate::common::not_run::say_not_run;
use crate::common::{self, stderr};

/// nginx as Debian starts it: root, with workers of its own user. The first forwards to the upstream, the second serves
/// files.
const NGINX: &str = r#"
[[target]]
name = "proxy"
command = ["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"]
[target.files]
"nginx.conf" = '''
user www-data; daemon off; pid {dir}/pid; error_log stderr error;
events { }
http {
    access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    server {
        listen {listen} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve {group};
        location / { proxy_pass http://unix:{upstream}; }
    }
}
'''

[[target]]
name = "files"
echo = false
upstream = "none"
command = ["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"]
[target.files]
"nginx.conf" = '''
user www-data; daemon off; pid {dir}/pid; error_log stderr error;
events { }
http {
    access_log off;
    server {
        listen {listen} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve {group};
        root {www};
    }
}
'''

[[target]]
name = "chain"
chain = ["hitch", "nginx-plain"]
"#;

#[test]
fn workers_of_another_user_reach_the_upstream_and_files() {
    const NAME: &str = "workers_of_another_user_reach_the_upstream_and_files";
    if !geteuid().is_root() {
        say_not_run(NAME, "only root can start workers of another user");
        return;
    }
    common::outside("nginx", "nginx");
    common::outside("hitch", "hitch");
    let folder = scenario(1, NGINX);
    let bench = bench_command(folder.path(), "--save saved");
    // The strictest umask: what others need, bench allows them.
    let mut strict = Command::new("sh");
    strict.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(bench.get_program()).args(bench.get_args());
    strict.current_dir(folder.path()).env("STATE_DIRECTORY", folder.path()).env("TMPDIR", "/tmp");
    let output = strict.output().unwrap();
    let cells = cells(&folder.path().join("saved"));
    assert_eq!(cells.len(), 3, "{}", stderr(&output));
    assert!(cells.iter().all(|cell| cell["failure"].is_null()), "{cells:?}");
}

#[test]
fn a_temporary_folder_that_others_may_not_enter_is_told() {
    const NAME: &str = "a_temporary_folder_that_others_may_not_enter_is_told";
    if !geteuid().is_root() {
        say_not_run(NAME, "only root can start workers of another user");
        return;
    }
    let folder = scenario(1, "[[target]]\nname = \"dies\"\ncommand = [\"false\"]\n");
    let own = fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder.path(), own).unwrap();
    let said = stderr(&bench_command(folder.path(), "").env("TMPDIR", folder.path()).output().unwrap());
    let words = format!("other users may not enter {}, so", folder.path().display());
    assert!(said.contains(&words), "{said}");
    let said = stderr(&bench_command(folder.path(), "").env("TMPDIR", "/tmp").output().unwrap());
    assert!(!said.contains("other users"), "{said}");
}
