//! Serves HTTP on a port, forwarding to a Unix socket: `serve 127.0.0.1:8443 /tmp/app.sock`.

use std::io::Write as _;

use proxy_core::{Certificate, ProxyConfig, Tls};
use proxy_http::HttpConfig;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(listen), Some(path)) = (args.next(), args.next()) else {
        return Err("usage: serve LISTEN PATH".into());
    };
    let mut tls = Tls::new(Certificate::generate(&["localhost".to_owned()])?);
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let mut config = ProxyConfig::new(vec![listen.parse()?], format!("unix:{path}").parse()?, tls);
    config.workers = std::num::NonZeroUsize::MIN;
    let bound = proxy_http::bind(config, HttpConfig::default(), Vec::new())?;
    let _ = writeln!(std::io::stdout(), "{:?}", bound.local_addrs());
    let _proxy = bound.start()?;
    loop {
        std::thread::park();
    }
}
