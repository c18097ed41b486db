//! The list of upstreams changes while the proxy runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proxy_core::{Proxy, Resolver, Upstream, UpstreamListError};
use records::kinds::UpstreamState::{Down, Gone, Up};
use records::metrics::UpstreamCounter;

use crate::names::{ask, ask_anew, named};
use crate::support::{TLS13, TestProxy, eventually, reserved_address};

fn upstream(addr: SocketAddr) -> Upstream {
    addr.to_string().parse().unwrap()
}

/// Gives the proxy these upstreams, and its routes what they had.
fn replace(proxy: &Proxy, default: &[Upstream], of_route: &[Upstream]) -> Result<(), UpstreamListError> {
    let resolver = proxy.look_up()(&[default, of_route].concat());
    proxy.replace_upstreams(vec![default.to_vec(), of_route.to_vec()], &resolver)
}

#[test]
fn a_reloaded_list_fails_no_connection_and_keeps_what_is_known() {
    let [a, c] = [b'a', b'c'].map(|name| upstream(named("127.0.0.1", name)));
    let (_reserved, refusing) = reserved_address();
    let b = upstream(refusing);
    let of_route = [upstream(named("127.0.0.1", b'r'))];
    let mut proxy = TestProxy::start_with(&a, |config| {
        config.upstreams = vec![a.clone(), b.clone()];
        config.upstream_check = Some("tcp,interval=100ms,fall=1".parse().unwrap());
        config.routes = vec![format!("*.test={}", of_route[0]).parse().unwrap()];
    });
    eventually("b is found down", || {
        proxy.collect();
        proxy.total.upstreams.all().get(1).is_some_and(|b| b.status.as_ref().unwrap().state == Down)
    });
    let mut open = proxy.connect(&proxy.client(&TLS13));
    assert_eq!(ask(&mut open), 'a');
    let (config, addr) = (proxy.client(&TLS13), proxy.addr());
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = [0; 4].map(|_| {
        let (config, is_over) = (Arc::clone(&config), Arc::clone(&is_over));
        thread::spawn(move || {
            let mut served = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let mut tls = crate::support::tls_over(crate::support::tcp_to(addr), &config);
                served.push(ask(&mut tls));
            }
            served
        })
    });
    thread::sleep(Duration::from_millis(100));
    replace(&proxy.proxy, &[b, c], &of_route).unwrap();
    eventually("c is used", || ask_anew(&proxy) == Some('c'));
    assert!((0..10).all(|_| ask_anew(&proxy) == Some('c')));
    is_over.store(true, Ordering::Relaxed);
    let served: Vec<char> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(served.contains(&'a') && served.contains(&'c'), "before and after");
    assert_eq!(ask(&mut open), 'a', "an open connection stays");

    eventually("c is checked", || {
        proxy.collect();
        let of_c = proxy.total.upstreams.all().get(3);
        of_c.is_some_and(|c| c.counters[UpstreamCounter::Checks] > 0)
    });
    let all = proxy.total.upstreams.all();
    let status = |index: usize| all[index].status.as_ref().unwrap();
    assert_eq!([0, 1, 2, 3].map(|index| status(index).state), [Gone, Down, Up, Up]);
    assert!(status(1).age > status(0).age, "b has been down since before the reload");
    assert_eq!(all[0].open_change, 1);
    assert!(all[1].counters[UpstreamCounter::ChecksFailed] > 0);
    let checks_of_a = all[0].counters[UpstreamCounter::Checks];
    thread::sleep(Duration::from_millis(300));
    proxy.collect();
    assert_eq!(proxy.total.upstreams.all()[0].counters[UpstreamCounter::Checks], checks_of_a);
    assert_eq!(proxy.proxy.upstream_names().len(), 4);
}

#[test]
fn a_list_that_the_proxy_cannot_have_changes_nothing() {
    let a = upstream(named("127.0.0.1", b'a'));
    let proxy = TestProxy::start(&a);
    let own = upstream(proxy.addr());
    let before = proxy.proxy.settings();
    for (other, reason) in [
        (own, "is where the proxy itself listens"),
        ("tls://127.0.0.1:1".parse().unwrap(), "speaks TLS, and no upstream did at the start"),
        ("h2c://127.0.0.1:1".parse().unwrap(), "speaks another version of HTTP"),
        ("no-such-host.invalid:1".parse().unwrap(), "cannot resolve the upstream no-such-host.invalid:1: "),
    ] {
        let list = [a.clone(), other];
        let resolver = proxy.proxy.look_up()(&list);
        let error = proxy.proxy.replace_upstreams(vec![list.to_vec()], &resolver).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(ask_anew(&proxy), Some('a'));
    assert_eq!(proxy.proxy.settings(), before);
    assert_eq!(proxy.proxy.upstream_names(), [a.to_string()]);
}

#[test]
fn a_new_name_is_looked_up_before_and_resolved_again_later() {
    let [a, b, c] = [b'a', b'b', b'c'].map(|name| named("127.0.0.1", name));
    let of_app = Arc::new(std::sync::Mutex::new(b));
    let answer = Arc::clone(&of_app);
    let proxy = TestProxy::start_with(&upstream(a), |config| {
        config.resolver =
            Resolver::new(move |host, _| Ok(vec![if host == "app" { *answer.lock().unwrap() } else { a }]));
    });
    let app: Upstream = "app:80".parse().unwrap();
    let resolver = proxy.proxy.look_up()(std::slice::from_ref(&app));
    proxy.proxy.replace_upstreams(vec![vec![app]], &resolver).unwrap();
    assert_eq!(ask_anew(&proxy), Some('b'));
    *of_app.lock().unwrap() = c;
    proxy.proxy.resolve_upstreams();
    eventually("the name is followed", || ask_anew(&proxy) == Some('c'));
    let upstreams = proxy.proxy.settings().into_iter().find(|it| it.name == "proxy.upstream").unwrap();
    assert_eq!(upstreams.value.to_string(), "app:80");
}
