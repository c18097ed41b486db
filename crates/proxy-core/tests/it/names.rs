//! Upstreams with a name: its addresses change while the proxy runs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use proxy_core::{Proxy, ProxyConfig, Resolver};
use records::kinds::Level;
use records::metrics::ProxyCounter;

use crate::support::{TLS13, TestProxy, Tls, end, eventually, read_all, reserved_address};

/// The addresses of every name, or why there are none.
#[derive(Clone)]
struct NameService(Arc<Mutex<Result<Vec<SocketAddr>, &'static str>>>);

impl NameService {
    fn with(addrs: &[SocketAddr]) -> Self {
        Self(Arc::new(Mutex::new(Ok(addrs.to_vec()))))
    }

    fn set(&self, answer: Result<&[SocketAddr], &'static str>) {
        *self.0.lock().unwrap() = answer.map(<[_]>::to_vec);
    }

    fn resolver(&self) -> Resolver {
        let answer = Arc::clone(&self.0);
        Resolver::new(move |host, port| {
            assert_eq!((host, port), ("app", 80));
            answer.lock().unwrap().clone().map_err(io::Error::other)
        })
    }

    /// A proxy in front of `app:80`.
    fn proxy(&self) -> TestProxy {
        TestProxy::start_with(&"app:80".parse().unwrap(), |config| config.resolver = self.resolver())
    }
}

/// Listens at a free port of `ip`, and answers every byte with `name`.
pub(crate) fn named(ip: &str, name: u8) -> SocketAddr {
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while stream.read(&mut [0; 1]).is_ok_and(|n| n > 0) && stream.write_all(&[name]).is_ok() {}
            });
        }
    });
    addr
}

pub(crate) fn ask(tls: &mut Tls) -> char {
    tls.write_all(b"?").unwrap();
    let mut name = [0];
    tls.read_exact(&mut name).unwrap();
    name[0].into()
}

/// Asks on a new connection; `None` if it was turned away.
pub(crate) fn ask_anew(proxy: &TestProxy) -> Option<char> {
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    let mut name = [0];
    let asked = tls.write_all(b"?").and_then(|()| tls.read_exact(&mut name));
    asked.ok().map(|()| {
        end(&mut tls);
        read_all(&mut tls);
        name[0].into()
    })
}

fn texts(proxy: &TestProxy) -> Vec<(Level, String)> {
    proxy.proxy.take_notices().into_iter().map(|notice| (notice.level, notice.text)).collect()
}

#[test]
fn connections_spread_over_all_addresses_of_a_name() {
    let names = NameService::with(&[named("127.0.0.1", b'4'), named("::1", b'6')]);
    let proxy = names.proxy();
    let asked: Vec<_> = (0..20).map(|_| ask_anew(&proxy).unwrap()).collect();
    assert_eq!(asked.iter().filter(|&&name| name == '4').count(), 10, "{asked:?}");
    proxy.finish();
}

#[test]
fn an_address_that_refuses_costs_no_connection() {
    let (_reserved, gone) = reserved_address();
    let names = NameService::with(&[gone, named("127.0.0.1", b'a')]);
    let mut proxy = names.proxy();
    assert!((0..20).all(|_| ask_anew(&proxy) == Some('a')));
    assert_eq!(proxy.count(ProxyCounter::UpstreamConnectsFailed), 0);
    assert_eq!(texts(&proxy), []);
}

#[test]
fn new_connections_follow_a_changed_name_and_open_ones_stay() {
    let (a, b) = (named("127.0.0.1", b'a'), named("127.0.0.1", b'b'));
    let names = NameService::with(&[a]);
    let proxy = names.proxy();
    let mut open = proxy.connect(&proxy.client(&TLS13));
    assert_eq!(ask(&mut open), 'a');
    names.set(Ok(&[b]));
    proxy.proxy.resolve_upstreams();
    eventually("the change is followed", || ask_anew(&proxy) == Some('b'));
    assert!((0..10).all(|_| ask_anew(&proxy) == Some('b')));
    assert_eq!(ask(&mut open), 'a');
    assert_eq!(texts(&proxy), [(Level::Notice, "the upstream app:80 has the address 127.0.0.1".to_owned())]);
}

#[test]
fn changes_under_load_fail_no_connection() {
    let addrs = [b'a', b'b', b'c'].map(|name| named("127.0.0.1", name));
    let names = NameService::with(&addrs[..1]);
    let proxy = Arc::new(names.proxy());
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (proxy, is_over) = (Arc::clone(&proxy), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut served = 0;
                while !is_over.load(Ordering::Relaxed) {
                    ask_anew(&proxy).expect("it is served");
                    served += 1;
                }
                served
            })
        })
        .collect();
    for (present, name) in [(&addrs[1..2], 'b'), (&addrs[1..], 'c'), (&addrs[..1], 'a')] {
        names.set(Ok(present));
        proxy.proxy.resolve_upstreams();
        eventually("the change is followed", || ask_anew(&proxy) == Some(name));
    }
    is_over.store(true, Ordering::Relaxed);
    let served: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let total = Arc::into_inner(proxy).unwrap().finish();
    assert!(total.counters[ProxyCounter::UpstreamConnects] > served, "the changes were asked about too");
    assert_eq!(total.counters[ProxyCounter::UpstreamConnectsFailed], 0);
}

#[test]
fn a_failed_connection_has_the_name_resolved_again() {
    let (_reserved, gone) = reserved_address();
    let names = NameService::with(&[gone]);
    let proxy = names.proxy();
    names.set(Ok(&[named("127.0.0.1", b'a')]));
    eventually("the name is resolved", || ask_anew(&proxy) == Some('a'));
    let said = texts(&proxy);
    let has = |text: &str| said.iter().any(|(_, said)| said.contains(text));
    assert!(has("cannot be reached") && has("has the address") && has("reached again"), "{said:?}");
}

#[test]
fn a_name_that_cannot_be_resolved_keeps_its_addresses() {
    let a = named("127.0.0.1", b'a');
    let names = NameService::with(&[a]);
    let proxy = names.proxy();
    let mut said = Vec::new();
    let mut expect_notice = |level, text: &str| {
        proxy.proxy.resolve_upstreams();
        eventually(text, || {
            said = texts(&proxy);
            !said.is_empty()
        });
        assert_eq!(said, [(level, text.to_owned())]);
        assert_eq!(ask_anew(&proxy), Some('a'));
    };
    names.set(Err("no answer"));
    let lost = "the upstream app:80 cannot be resolved: no answer; its last addresses are kept";
    expect_notice(Level::Warning, lost);
    names.set(Ok(&[a]));
    let found = "the upstream app:80 can be resolved again, and has the address 127.0.0.1";
    expect_notice(Level::Notice, found);
    // The proxy would forward to itself.
    names.set(Ok(&[proxy.addr()]));
    let itself = "the upstream app:80 cannot be resolved: that is where the proxy itself listens; its last \
                  addresses are kept";
    expect_notice(Level::Warning, itself);
}

#[test]
fn a_look_up_that_hangs_holds_up_neither_clients_nor_the_end() {
    let addr = named("127.0.0.1", b'a');
    let (begun, has_begun) = mpsc::channel();
    let is_started = AtomicBool::new(false);
    // The look-up never ends, as no message comes.
    let (_never, end) = mpsc::channel::<()>();
    let end = Mutex::new(end);
    let resolver = Resolver::new(move |_, _| {
        if is_started.swap(true, Ordering::Relaxed) {
            begun.send(()).unwrap();
            end.lock().unwrap().recv().unwrap();
        }
        Ok(vec![addr])
    });
    let proxy = TestProxy::start_with(&"app:80".parse().unwrap(), |config| config.resolver = resolver);
    proxy.proxy.resolve_upstreams();
    has_begun.recv().unwrap();
    assert_eq!(ask_anew(&proxy), Some('a'));
    proxy.finish();
}

#[test]
fn a_name_that_is_unknown_at_the_start_is_an_error() {
    let names = NameService::with(&[]);
    let mut config = ProxyConfig::new(
        vec!["127.0.0.1:0".parse().unwrap()],
        "app:80".parse().unwrap(),
        proxy_core::Certificate::generate(&[]).unwrap(),
    );
    config.resolver = names.resolver();
    for (answer, problem) in [(Ok([].as_slice()), "the name has no address"), (Err("no answer"), "no answer")]
    {
        names.set(answer);
        let error = Proxy::start(config.clone()).unwrap_err().to_string();
        assert_eq!(error, format!("cannot resolve the upstream app:80: {problem}"));
    }
}
