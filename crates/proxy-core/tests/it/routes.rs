//! Routes of TCP mode: the server name selects the upstreams.

use std::io::Write as _;
use std::sync::Arc;

use proxy_core::{Certificate, NameRoute, ProxyConfig};
use records::metrics::ProxyCounter;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, Tls, read_all};

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
