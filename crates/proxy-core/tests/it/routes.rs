//! Routes of TCP mode: the server name selects the upstreams.

use std::io::Write as _;
use std::sync::Arc;

use proxy_core::{Certificate, NameRoute, ProxyConfig, ServerNames};
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use records::setting::Value;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, Tls, eventually, read_all};

/// An upstream that says its name and ends.
macro_rules! named {
    ($name:literal) => {
        TestUpstream::unix(|stream, _| {
            stream.write_all($name).unwrap();
            stream.end();
        })
    };
}

fn route(host: &str, upstream: &TestUpstream) -> NameRoute {
    NameRoute::new(host, vec![upstream.upstream.clone()]).unwrap()
}

/// A proxy with a certificate for these names.
fn start(names: &[&str], upstream: &TestUpstream, change: impl FnOnce(&mut ProxyConfig)) -> TestProxy {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let certificate = Certificate::generate(&names).unwrap();
    let leaf = certificate.leaf_der().to_vec();
    let proxy = TestProxy::start_with(&upstream.upstream, |config| {
        config.tls = certificate.into();
        change(config);
    });
    TestProxy { certificate: leaf, ..proxy }
}

fn connect(proxy: &TestProxy, config: &Arc<ClientConfig>, name: &str) -> Tls {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), proxy.tcp())
}

fn answer(proxy: &TestProxy, config: &Arc<ClientConfig>, name: &str) -> String {
    let mut tls = connect(proxy, config, name);
    tls.flush().unwrap();
    String::from_utf8(read_all(&mut tls).0).unwrap()
}

#[test]
fn the_server_name_selects_the_upstreams() {
    let [rest, api, below] = [named!(b"rest"), named!(b"api"), named!(b"below")];
    let names = ["localhost", "127.0.0.1", "shop.test", "*.shop.test", "*.www.shop.test"];
    let proxy = start(&names, &rest, |config| {
        config.routes = vec![route("*.shop.test", &below), route("api.shop.test", &api)];
    });
    for version in [&TLS13, &TLS12] {
        let config = proxy.client(version);
        for (name, expected) in [
            ("api.shop.test", "api"),
            ("API.Shop.Test", "api"),
            ("www.shop.test", "below"),
            ("a.www.shop.test", "below"),
            ("shop.test", "rest"),
            ("localhost", "rest"),
            // No name is sent for an address.
            ("127.0.0.1", "rest"),
        ] {
            assert_eq!(answer(&proxy, &config, name), expected, "{name}");
        }
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::UpstreamConnects], 14);
}

#[test]
fn a_route_without_its_upstreams_does_not_fall_back_to_others() {
    let [rest, api] = [named!(b"rest"), named!(b"api")];
    let gone = NameRoute::new("gone.shop.test", vec!["unix:/nonexistent/app.sock".parse().unwrap()]).unwrap();
    let mut proxy = start(&["*.shop.test"], &rest, |config| {
        config.routes = vec![route("api.shop.test", &api), gone];
    });
    let config = proxy.client(&TLS13);
    assert_eq!(answer(&proxy, &config, "gone.shop.test"), "");
    assert_eq!(answer(&proxy, &config, "api.shop.test"), "api");
    proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);
}

/// The error of a client that asks for this name.
fn refusal(proxy: &TestProxy, config: &Arc<ClientConfig>, name: &str) -> String {
    connect(proxy, config, name).flush().unwrap_err().to_string()
}

const REFUSED: &str = "received fatal alert: UnrecognisedName";

#[test]
fn without_a_default_names_of_no_route_are_refused() {
    let api = named!(b"api");
    let proxy = start(&["*.shop.test", "localhost"], &api, |config| {
        config.upstreams.clear();
        config.routes = vec![route("api.shop.test", &api)];
    });
    let config = proxy.client(&TLS13);
    assert_eq!(answer(&proxy, &config, "api.shop.test"), "api");
    for name in ["www.shop.test", "localhost", "127.0.0.1"] {
        assert_eq!(refusal(&proxy, &config, name), REFUSED, "{name}");
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::FailedName], 3);
}

#[test]
fn strict_server_names_refuse_clients_without_a_name_of_a_certificate() {
    let rest = named!(b"rest");
    let proxy = start(&["www.shop.test", "*.api.shop.test"], &rest, |config| {
        config.tls.settings.server_names = ServerNames::Strict;
    });
    let long = format!("{0}.{0}.{0}.test", "x".repeat(63));
    for version in [&TLS13, &TLS12] {
        let config = proxy.client(version);
        for name in ["www.shop.test", "WWW.Shop.Test", "a.api.shop.test"] {
            assert_eq!(answer(&proxy, &config, name), "rest");
        }
        for name in ["shop.test", "a.b.api.shop.test", "other.test", "127.0.0.1", &long] {
            assert_eq!(refusal(&proxy, &config, name), REFUSED, "{name}");
        }
    }
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::FailedName], 10);
    let done = [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed];
    assert_eq!(total.counters.sum(&done), 6);
    let failed = total.connections.iter().filter(|one| one.outcome == ConnectionOutcome::UnrecognizedName);
    let names: Vec<_> = failed.map(|record| &*record.sni).collect();
    assert!(names.len() == 10 && names.contains(&&*long) && names.contains(&""), "{names:?}");
}

#[test]
fn the_policy_on_server_names_changes_live_for_new_connections() {
    let rest = named!(b"rest");
    let proxy = start(&["www.shop.test"], &rest, |_| {});
    let config = proxy.client(&TLS13);
    let set = |policy: &str| proxy.proxy.set("proxy.sni", &Value::Text(policy.to_owned()));
    let is_refused = || refusal(&proxy, &config, "other.test") == REFUSED;
    assert!(!is_refused(), "the client itself refuses the certificate");
    set("strict").unwrap();
    // Workers take changes over in their next turn.
    eventually("the new policy is in force", is_refused);
    assert_eq!(answer(&proxy, &config, "www.shop.test"), "rest");
    let error = set("some").unwrap_err().to_string();
    assert!(error.contains("known: any, strict"), "{error}");
}
