//! Addresses, and who may listen at them.

use std::process::Command;

use proxy_core::{
    Certificate, ListenAddr, ListenError, Proxy, ProxyConfig, ProxyStartError, Upstream, UpstreamListError,
};
use records::delta::ProxyDelta;

use crate::support::{TLS13, TestProxy, TestUpstream, echo, serve_echo};

const ADDR_VARIABLE: &str = "PROXY_CORE_TEST_ADDR";

fn config(listen: &[ListenAddr]) -> ProxyConfig {
    let upstream = Upstream::unix("/nonexistent");
    ProxyConfig::new(listen.to_vec(), upstream, Certificate::generate(&[]).unwrap())
}

fn start_error(config: ProxyConfig) -> ProxyStartError {
    Proxy::start(config).unwrap_err()
}

#[test]
fn a_second_proxy_on_a_port_is_refused_and_the_first_goes_on() {
    let served = TestUpstream::unix(serve_echo);
    let first = TestProxy::start(&served.upstream);
    let port = first.addr().port();
    for second in [ListenAddr::Addr(first.addr()), ListenAddr::DualStack(port)] {
        let error = start_error(config(&[second]));
        assert!(matches!(error, ProxyStartError::Listen(ListenError::InUse(_))), "{error:?}");
        assert!(error.to_string().contains("in use"), "{error}");
    }
    let client = first.client(&TLS13);
    for _ in 0..10 {
        echo(&mut first.connect(&client), b"hello");
    }
}

#[test]
fn a_second_proxy_in_another_process_is_refused() {
    let served = TestUpstream::unix(serve_echo);
    let first = TestProxy::start(&served.upstream);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "listening::another_process_tries_the_port"])
        .env(ADDR_VARIABLE, first.addr().to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "the other process of a_second_proxy_in_another_process_is_refused"]
fn another_process_tries_the_port() {
    let addr = std::env::var(ADDR_VARIABLE).unwrap().parse().unwrap();
    let error = start_error(config(&[addr]));
    assert!(matches!(error, ProxyStartError::Listen(ListenError::InUse(_))), "{error:?}");
}

#[test]
fn a_port_held_by_any_program_is_refused() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = start_error(config(&[ListenAddr::Addr(holder.local_addr().unwrap())]));
    assert!(matches!(error, ProxyStartError::Listen(ListenError::InUse(_))), "{error:?}");
}

#[test]
fn of_several_addresses_one_that_is_taken_leaves_the_others_free() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let free = ([127, 0, 0, 2], taken.port()).into();
    start_error(config(&[ListenAddr::Addr(free), ListenAddr::Addr(taken)]));
    std::net::TcpListener::bind(free).unwrap();
}

#[test]
fn every_address_given_is_served() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.listen = vec![":0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
    });
    let client = proxy.client(&TLS13);
    for addr in proxy.proxy.local_addrs() {
        let socket = std::net::TcpStream::connect(("127.0.0.1", addr.port())).unwrap();
        echo(&mut crate::support::tls_over(socket, &client), b"hello");
    }
}

#[test]
fn an_unusable_configuration_is_refused_at_the_start() {
    let addr: ListenAddr = "127.0.0.1:0".parse().unwrap();
    assert!(matches!(start_error(config(&[])), ProxyStartError::NoListener));
    let mut unresolvable = config(&[addr]);
    unresolvable.upstreams = vec!["no-such-host.invalid:80".parse().unwrap()];
    let error = start_error(unresolvable);
    assert!(
        matches!(error, ProxyStartError::Upstreams(UpstreamListError::Resolve(_)))
            && error.to_string().contains("no-such-host"),
        "{error}"
    );
    let mut greedy = config(&[addr]);
    greedy.limits.connections_max = Some(1 << 40);
    assert!(matches!(start_error(greedy), ProxyStartError::Descriptors(_)));
}

#[test]
fn a_bound_proxy_keeps_connections_waiting_until_it_starts() {
    let served = TestUpstream::unix(serve_echo);
    let mut config = config(&["127.0.0.1:0".parse().unwrap()]);
    config.upstreams = vec![served.upstream];
    let certificate = config.tls.certificates[0].leaf_der().to_vec();
    let bound = Proxy::bind(config).unwrap();
    let waiting = std::net::TcpStream::connect(bound.local_addrs()[0]).unwrap();
    let proxy = TestProxy { proxy: bound.start().unwrap(), total: ProxyDelta::default(), certificate };
    echo(&mut crate::support::tls_over(waiting, &proxy.client(&TLS13)), b"hello");
}

#[test]
fn a_bound_proxy_that_is_dropped_gives_its_addresses_back() {
    let bound = Proxy::bind(config(&["127.0.0.1:0".parse().unwrap()])).unwrap();
    let addr = bound.local_addrs()[0];
    drop(bound);
    std::net::TcpListener::bind(addr).unwrap();
}
