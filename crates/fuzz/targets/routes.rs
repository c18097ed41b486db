//! Selects a route for any host and path: nothing panics, and whatever an upstream takes a path for, it is of the same
//! route.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_http::harness::RouteHarness;

/// The index of the route of `/admin`.
const ADMIN: usize = 1;

static ROUTES: LazyLock<RouteHarness> = LazyLock::new(|| {
    let routes = ["/=h:1", "/admin=h:2", "shop.example/admin=h:3", "*.example/admin/x=h:4"];
    RouteHarness::new(&routes).expect("routes")
});

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (host, path) = text.split_once(' ').unwrap_or(("a", text));
    let selected = ROUTES.select(host, path);
    // Other targets are refused before a route is selected, and a query is no part of the path.
    if !path.starts_with('/') || path.contains('?') {
        return;
    }
    // As others read a path: escapes first, then `..`.
    let resolved = resolve(path);
    let is_admin = |path: &str| path == "/admin" || path.starts_with("/admin/");
    if host == "a"
        && let Some(route) = selected
    {
        assert_eq!(route == ADMIN, is_admin(&resolved), "{path:?} is {resolved:?}");
        assert_eq!(route == ADMIN, is_admin(path), "{path:?}");
    }
});

/// The path without escapes, empty segments, `.` and `..`.
fn resolve(path: &str) -> String {
    let bytes = path.as_bytes();
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?)).flatten();
        decoded.push(escaped.map_or(bytes[at], |byte| byte as u8));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    let mut segments = Vec::new();
    for segment in decoded.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if segment == ".." {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    format!("/{}", segments.join("/"))
}

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let seeds = [
        "a /",
        "a /admin",
        "a /admin/../x",
        "a /x/%2e%2e/admin",
        "a //admin",
        "a /%61dmin",
        "a /x\\..\\admin",
        "a /x/..%2fadmin",
        "a /x\\y/../admin",
        "shop.example:8443 /admin",
        "x.example /admin/x",
    ];
    for (nth, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(nth.to_string()), seed)?;
    }
    Ok(())
}
