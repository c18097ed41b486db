//! A client of HTTP/2: the h2 crate over TLS.

use std::future::Future;
use std::sync::Arc;

use h2::client::{Builder, SendRequest};
use http::{HeaderMap, Method, Request};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::support::{PATIENCE, TestHttpProxy};

pub(crate) type Bytes = bytes::Bytes;

/// Runs a client to its end.
pub(crate) fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, client).await.expect("no end in time") })
}

pub(crate) async fn connect(
    proxy: &TestHttpProxy,
) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    connect_with(proxy, &Builder::new()).await
}

pub(crate) async fn connect_with(
    proxy: &TestHttpProxy,
    settings: &Builder,
) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let socket = TcpStream::connect(proxy.addr()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&proxy.client_config(&["h2"])));
    let tls = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    let (client, connection) = settings.handshake(tls).await.unwrap();
    (client, tokio::spawn(connection))
}

pub(crate) fn request(method: Method, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://localhost{path}")).body(()).unwrap()
}

pub(crate) async fn read(mut body: h2::RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, body.trailers().await?))
}

pub(crate) async fn get(client: &SendRequest<Bytes>, path: &str) -> Result<(u16, Vec<u8>), h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, _) = client.send_request(request(Method::GET, path), true)?;
    let response = response.await?;
    let status = response.status().as_u16();
    Ok((status, read(response.into_body()).await?.0))
}

/// Asks for these paths at once; the statuses and contents come in any order.
pub(crate) async fn get_all(
    client: &SendRequest<Bytes>,
    paths: impl IntoIterator<Item = String>,
) -> Vec<(String, u16, Vec<u8>)> {
    let mut all = tokio::task::JoinSet::new();
    for path in paths {
        let client = client.clone();
        all.spawn(async move {
            let (status, body) = get(&client, &path).await.unwrap();
            (path, status, body)
        });
    }
    all.join_all().await
}

/// Asks for 100 paths at once, and checks that each response is that of an echo, or a megabyte for `/big`.
pub(crate) async fn get_hundred(client: &SendRequest<Bytes>) {
    let path = |n| if n % 10 == 0 { "/big".to_owned() } else { format!("/{n}") };
    let responses = get_all(client, (0..100).map(path)).await;
    assert_eq!(responses.len(), 100);
    for (path, status, body) in responses {
        assert_eq!(status, 200, "{path}");
        assert!(body.len() == 1_000_000 || body == path.as_bytes());
    }
}
