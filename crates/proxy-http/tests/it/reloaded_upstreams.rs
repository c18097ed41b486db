//! The list of upstreams changes while requests are served.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use proxy_core::{Resolver, Upstream};
use records::kinds::UpstreamState::{Down, Gone, Up};
use records::metrics::{HttpCounter, UpstreamCounter};

use crate::support::{TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream, nowhere};

fn replace(proxy: &TestHttpProxy, upstreams: &[&Upstream]) {
    let upstreams: Vec<Upstream> = upstreams.iter().map(|&upstream| upstream.clone()).collect();
    proxy.proxy.replace_upstreams(vec![upstreams], &Resolver::default()).unwrap();
}

#[test]
fn a_list_that_changes_under_load_fails_no_request_and_keeps_what_is_known() {
    // What is gone has an address in one direction, and a path in the other.
    let (a, c) = (ScriptedUpstream::tcp(serve), ScriptedUpstream::answering(HELLO));
    let b = nowhere();
    let mut proxy = TestHttpProxy::start_with(&a.upstream, |config, _| config.upstreams.push(b.clone()));
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = [0; 4].map(|_| {
        let (mut client, is_over) = (proxy.connect(), Arc::clone(&is_over));
        thread::spawn(move || {
            let mut answered = 0;
            while !is_over.load(Ordering::Relaxed) {
                client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                assert_eq!(client.answer().status, 200);
                answered += 1;
            }
            answered
        })
    });
    let mut asked = 0;
    let mut use_anew = |proxy: &TestHttpProxy, used: &ScriptedUpstream| {
        let before = used.heads().len();
        eventually("it is used", || {
            asked += 1;
            assert_eq!(proxy.get("/").status, 200);
            used.heads().len() > before
        });
    };
    use_anew(&proxy, &a);
    eventually("b is found down", || {
        proxy.get("/");
        proxy.collect();
        proxy.total.upstreams.all()[1].counters.sum(&UpstreamCounter::FAILED) > 0
    });
    replace(&proxy, &[&b, &c.upstream]);
    use_anew(&proxy, &c);
    let of_a = a.heads().len();
    for _ in 0..50 {
        use_anew(&proxy, &c);
    }
    assert!(a.heads().len() <= of_a + 4, "only what had begun");
    proxy.collect();
    let all = proxy.total.upstreams.all();
    let status = |index: usize| all[index].status.as_ref().unwrap();
    assert_eq!([0, 1, 2].map(|index| status(index).state), [Gone, Down, Up]);
    assert!(status(1).age > status(0).age, "b has been down since before the reload");
    assert!(all[1].counters.sum(&UpstreamCounter::FAILED) > 0);
    eventually("the idle connections of a are closed", || {
        proxy.collect();
        let a = &proxy.total.upstreams.all()[0];
        (a.open_change, a.idle_change) == (0, 0)
    });

    let requests = proxy.total.upstreams.all()[0].counters[UpstreamCounter::Exchanges];
    replace(&proxy, &[&a.upstream, &b]);
    use_anew(&proxy, &a);
    eventually("the idle connections of c are closed", || {
        proxy.collect();
        let c = &proxy.total.upstreams.all()[2];
        (c.open_change, c.idle_change) == (0, 0)
    });
    assert!(
        proxy.total.upstreams.all()[0].counters[UpstreamCounter::Exchanges] > requests,
        "its counts go on"
    );
    is_over.store(true, Ordering::Relaxed);
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let http = proxy.finish().http.unwrap();
    assert!(answered > 0 && http.counters[HttpCounter::Status2xx] >= answered + asked);
    assert_eq!(http.counters[HttpCounter::Requests], http.counters[HttpCounter::Status2xx]);
    assert_eq!(http.counters[HttpCounter::Retried], 0);
}

fn serve(mut peer: crate::upstream::ScriptedConn) {
    while peer.head().is_some() {
        peer.send(HELLO);
    }
}

#[test]
fn a_request_in_flight_ends_and_its_connection_with_it() {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = Mutex::new(may_go_on);
    let old = ScriptedUpstream::unix(move |mut peer| {
        while peer.head().is_some() {
            begun.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
            peer.send(HELLO);
        }
    });
    let new = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start(&old.upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    has_begun.recv().unwrap();
    replace(&proxy, &[&new.upstream]);
    assert_eq!(proxy.get("/").status, 200);
    go_on.send(()).unwrap();
    assert_eq!(client.answer().text(), "hello");
    eventually("its connection is closed", || {
        proxy.collect();
        proxy.total.upstreams.all()[0].open_change == 0
    });
    assert_eq!((old.connections(), new.connections()), (1, 1));
    proxy.finish();
}

#[test]
fn ten_thousand_lists_need_no_more_memory_than_a_few() {
    let [a, b] = [0; 2].map(|_| ScriptedUpstream::answering(HELLO));
    let mut proxy = TestHttpProxy::start(&a.upstream);
    let rss_kb = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let mut before = 0;
    for n in 0..10_000 {
        let [old, new] = if n % 2 == 0 { [&a, &b] } else { [&b, &a] };
        replace(&proxy, &[&new.upstream]);
        if n % 500 == 0 {
            assert_eq!(proxy.get("/").status, 200);
            eventually("the former one is closed", || {
                proxy.collect();
                proxy.total.upstreams.all().iter().map(|it| it.open_change).sum::<i64>() == 1
            });
            assert!(old.connections() <= new.connections() + 1);
        }
        if n == 2_000 {
            before = rss_kb();
        }
    }
    // Other tests run beside this one: 8,000 lists of 1 KiB each would be 8 MiB.
    assert!(rss_kb() < before + (8 << 10), "{before} then {} KiB", rss_kb());
    assert_eq!(proxy.proxy.upstream_names().len(), 2);
    proxy.finish();
}

#[test]
fn upstreams_that_come_one_after_another_under_load_fail_no_request() {
    let served = ScriptedUpstream::unix(serve);
    let proxy = TestHttpProxy::start(&served.upstream);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = [0; 8].map(|_| {
        let (mut client, is_over) = (proxy.connect(), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                assert_eq!(client.answer().status, 200);
            }
        })
    });
    // The same socket under many names.
    let path = served.upstream.to_string().replacen("unix:", "", 1);
    for n in 1..60 {
        replace(&proxy, &[&Upstream::unix(format!("{}{path}", "/".repeat(n)))]);
        thread::sleep(Duration::from_millis(5));
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    assert!(proxy.proxy.failure().is_none());
    proxy.finish();
}

#[test]
fn a_request_that_waited_for_an_upstream_that_is_gone_leaves_no_connection() {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = Mutex::new(may_go_on);
    let old = ScriptedUpstream::unix(move |mut peer| {
        while peer.head().is_some() {
            begun.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
            peer.send(HELLO);
        }
    });
    let new = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start_with(&old.upstream, |_, http| {
        http.limits.upstream_connections_max = 1;
        http.limits.upstream_idle_timeout = Duration::from_secs(600);
    });
    let mut clients = [proxy.connect(), proxy.connect()];
    clients[0].send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    has_begun.recv().unwrap();
    clients[1].send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    eventually("it waits", || proxy.collect().gauges.queued == 1);
    replace(&proxy, &[&new.upstream]);
    for client in &mut clients {
        go_on.send(()).unwrap();
        assert_eq!(client.answer().text(), "hello");
    }
    assert_eq!(old.connections(), 2);
    eventually("its connection is closed", || {
        proxy.collect();
        proxy.total.upstreams.all()[0].open_change == 0
    });
    proxy.finish();
}
