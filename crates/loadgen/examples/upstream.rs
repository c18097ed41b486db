//! The demo's upstream alone, on a Unix socket: `upstream /tmp/app.sock`.

use loadgen::{DemoUpstream, UpstreamAddr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: upstream PATH")?;
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(path.into()))?;
    loop {
        std::thread::park();
    }
}
