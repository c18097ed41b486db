//! A comparison without a scenario.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::cells;
use crate::common::{self, make_certificate, run, stderr};

/// An application, and how many requests it got.
fn application() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || common::answer(stream, b"hello"));
        }
    });
    (address, asked)
}

#[test]
fn terminators_are_compared_by_their_names() {
    common::outside("nginx", "nginx");
    common::outside("haproxy", "haproxy");
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let args = ["bench", "--against", "nginx,haproxy", "--quick", "--rounds", "1", "--save"];
    let output = run(folder.path(), &[&args[..], &[saved.to_str().unwrap()]].concat());
    let (text, said) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(output.status.success(), "{text}{said}");
    let announced = [
        "tlsdash: --against nginx,haproxy: HTTP proxies beside tlsdash; seed ",
        "tlsdash: nginx: as `tlsdash bench templates nginx-http` prints it\n",
        "tlsdash: cases: full handshake; resumed handshake; 10 kB kept alive\n",
        "tlsdash: 9 cells in 1 rounds, about ",
    ];
    assert!(announced.iter().all(|line| said.contains(line)), "{said}");
    let cells = cells(&saved);
    assert_eq!(cells.len(), 9, "{said}");
    for cell in cells {
        assert!(cell["failure"].is_null(), "{cell}");
        let resumed = cell["figures"]["handshakes.resumed"].as_f64().unwrap();
        assert_eq!(resumed > 0.0, cell["case"] == "resumed handshake", "{cell}");
    }
}

#[test]
fn a_users_application_and_certificate_are_used() {
    common::outside("nginx", "nginx");
    common::outside("haproxy", "haproxy");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    make_certificate(&folder.path().join("c.pem"), &folder.path().join("k.pem"), "shop.example", 1, &[]);
    let (address, asked) = application();
    let (saved, upstream) = (path("saved"), format!("http://{address}/page"));
    let against = ["bench", "--against", "nginx-stream,haproxy", "--upstream", &upstream];
    let short = ["--case", "full*", "--quick", "--rounds", "1", "--save", &saved];
    let certificate = ["--cert", &path("c.pem"), "--key", &path("k.pem")];
    let output = run(folder.path(), &[&against[..], &short, &certificate].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let cells = cells(&folder.path().join("saved"));
    assert_eq!(cells.len(), 3, "{}", stderr(&output));
    assert!(cells.iter().all(|cell| cell["failure"].is_null()), "{cells:?}");
    let answered: f64 = cells.iter().map(|cell| cell["figures"]["requests.answered"].as_f64().unwrap()).sum();
    let asked = asked.load(Ordering::Relaxed);
    assert!(answered > 0.0 && asked as f64 >= answered, "{answered} of {asked}");
    let other_key = ["--cert", &path("c.pem"), "--key", &path("none.pem")];
    let refused = run(folder.path(), &[&against[..], &other_key].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("none.pem: No such file or directory"), "{}", stderr(&refused));
}

#[test]
fn a_named_terminator_that_is_missing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = common::tlsdash(folder.path());
    let output = command.args(["bench", "--against", "stunnel"]).env("PATH", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = "stunnel: there is no program stunnel4; Debian's package stunnel4 has it\n";
    assert!(stderr(&output).ends_with(words), "{}", stderr(&output));
}

#[test]
fn whoever_has_no_scenario_is_told_of_against() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["bench"][..], &["bench", "/etc/nginx/nginx.conf"], &["bench", "haproxy.cfg"]] {
        let output = run(folder.path(), args);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--against nginx,haproxy"), "{}", stderr(&output));
    }
}
