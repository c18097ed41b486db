use std::time::Duration;

use proxy_http::RouteTimeouts;

use super::*;
use crate::cli::configuration::other_mode::tests::{options, refused};

#[test]
fn a_route_of_tcp_mode_is_a_host_and_reads_back() {
    let text = "upstream = \"h:9\"\n[[route]]\nhost = \"*.Example\"\nupstreams = [\"unix:/a\", \"h:1\"]\n";
    let routes = |options: &ProxyOptions| -> Vec<_> {
        options.name_routes().unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(routes(&options(text)), ["*.example=unix:/a,h:1"]);
    let printed = options(text).to_toml().unwrap();
    assert_eq!(options(&printed).to_toml().unwrap(), printed);
    assert_eq!(routes(&options(&printed)), ["*.example=unix:/a,h:1"]);
}

#[test]
fn passed_names_have_tables_of_their_own_and_none_is_terminated_too() {
    let pass = "[[pass]]\nhost = \"x\"\nupstreams = \"h:1\"\n";
    let given = options(pass);
    let routes = given.name_routes().unwrap();
    assert!(routes[0].is_passed() && given.any_route().is_some());
    let printed = given.to_toml().unwrap();
    assert!(printed.contains("\n[[pass]]\nhost = \"x\"\n"), "{printed}");
    assert_eq!(options(&printed).to_toml().unwrap(), printed);
    let both = format!("{pass}[[route]]\nhost = \"x\"\nupstreams = \"h:1\"\n");
    assert_eq!(refused(&both), "the route in line 4 and the pass in line 1 both serve x");
    let twice = pass.replace("h:1", "tls://h:1");
    assert!(refused(&twice).contains("name the upstream without a scheme"));
    let both = "mode = \"http\"\n[[pass]]\nhost = \"x\"\nupstreams = \"h:1\"\n\
                [[route]]\nhost = \"x\"\npath = \"/a\"\nupstreams = \"h:1\"\n";
    assert_eq!(refused(both), "the route in line 5 and the pass in line 2 both serve x");
    let path = pass.replace("\"x\"", "\"x\"\npath = \"/a\"");
    assert!(refused(&path).starts_with("the pass in line 1: the path /a: the server name alone"));
}

#[test]
fn a_route_of_the_other_mode_is_refused_with_its_place() {
    let file =
        |mode: &str, table: &str| format!("mode = \"{mode}\"\nupstream = \"h:9\"\n[[route]]\n{table}\n");
    for (mode, table, part) in [
        (
            "tcp",
            "path = \"/a\"\nupstreams = \"h:1\"",
            "the route in line 3: the path /a goes with --mode http only",
        ),
        ("tcp", "host = \"x\"\npath = \"/\"\nupstreams = \"h:1\"", "the path / goes with"),
        (
            "http",
            "host = \"x\"\nupstreams = \"h:1\"",
            "the route in line 3: \"x\" is not a route: the path is missing",
        ),
    ] {
        assert!(refused(&file(mode, table)).contains(part), "{}", refused(&file(mode, table)));
    }
    let mut flags = options("upstream = \"h:9\"");
    flags.route = ["x=h:1", "y/a=h:1"].map(|text| text.parse().unwrap()).to_vec();
    assert!(flags.name_routes().unwrap_err().to_string().starts_with("--route 2: the path /a"));
    flags.route = ["x=h:1", "X.=h:2"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(flags.name_routes().unwrap_err().to_string(), "--route 1 and --route 2 both serve x");
    for (text, part) in [
        ("=h:1", "the host is missing: --upstream serves all other names"),
        ("x", "the upstream is missing"),
        ("x:443=h:1", "the host has a port"),
        (
            "x y=h:1",
            "\"x y=h:1\" is not a route: the host is malformed; expected HOST=UPSTREAM[,UPSTREAM...]",
        ),
        ("x=h:1,h:1", "the upstream h:1 is given twice"),
    ] {
        let error = text.parse::<RouteOption>().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn routes_of_a_file_are_tables_and_read_back() {
    let text = "mode = \"http\"\nupstream = \"h:9\"\n[[route]]\nhost = \"*.example\"\npath = \"/a/\"\n\
                upstreams = [\"unix:/a\", \"h:1\"]\n[[route]]\npath = \"/b\"\nupstreams = \"h:2\"\n";
    let config = options(text).http_config().unwrap().unwrap();
    let routes: Vec<_> = config.routes.iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["*.example/a=unix:/a,h:1", "/b=h:2"]);
    let printed = options(text).to_toml().unwrap();
    assert_eq!(options(&printed).to_toml().unwrap(), printed);
    assert_eq!(options(&printed).http_config().unwrap().unwrap().routes, config.routes);
    assert!(
        printed.contains("\n# proxy-protocol = ") && printed.contains("\nheader-timeout = "),
        "{printed}"
    );
}

#[test]
fn a_route_of_a_file_has_timeouts_of_its_own() {
    let timeouts = RouteTimeouts::NAMES.map(|name| format!("{name} = \"90s\"\n")).concat();
    let text = format!("mode = \"http\"\n[[route]]\npath = \"/a\"\nupstreams = \"h:1\"\n{timeouts}");
    let config = options(&text).http_config().unwrap().unwrap();
    let given: Vec<_> = config.routes[0].timeouts.given().collect();
    assert_eq!(given, RouteTimeouts::NAMES.map(|name| (name, Duration::from_secs(90))));
    let printed = options(&text).to_toml().unwrap();
    assert!(printed.contains("\nqueue-timeout = \"90s\"\n"), "{printed}");
    assert_eq!(options(&printed).http_config().unwrap().unwrap().routes, config.routes);
}

#[test]
fn two_equal_routes_are_named_with_their_places() {
    let a = "[[route]]\npath = \"/a\"\nupstreams = \"h:1\"\n";
    let file = format!("mode = \"http\"\n{a}\n{a}");
    assert_eq!(refused(&file), "the route in line 2 and the route in line 6 both serve /a");
    let mut flags = options("mode = \"http\"\nupstream = \"h:9\"");
    flags.route = ["/=h:1", "x/=h:2"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(flags.http_config().unwrap_err().to_string(), "--route 1 and --upstream both serve /");
    flags.route = ["/b=h:1", "x/=h:2", "/b/=h:3"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(flags.http_config().unwrap_err().to_string(), "--route 1 and --route 3 both serve /b");
}

#[test]
fn a_malformed_route_of_a_file_is_named_with_its_line() {
    for (table, part) in [
        ("path = \"a\"\nupstreams = \"h:1\"", "line 5: route: \"a\" is not a route: the path is missing"),
        ("path = \"/a\"\nupstreams = []", "line 6: route: \"/a\" is not a route: the upstream is missing"),
        ("path = \"/a\"\nupstreams = \"h\"", "line 7: route: h: "),
        ("path = \"/a\"\nupstream = \"h:1\"", "line 7: route: unknown field `upstream`"),
        (
            "path = \"/a\"\nupstreams = \"h:1\"\nheader-timeout = \"1s\"",
            "line 8: route: unknown field `header-timeout`, expected one of `host`, `path`, `upstreams`, \
             `connect-timeout`, `queue-timeout`, `response-timeout`, `body-timeout`",
        ),
        (
            "path = \"/a\"\nupstreams = \"h:1\"\nqueue-timeout = \"2days\"",
            "line 8: route: queue-timeout: \"2days\": expected a time from 1ms to 24h, such as 10s",
        ),
        (
            "path = \"/a\"\nupstreams = \"h:1\"\nbody-timeout = [5]",
            "line 8: route: body-timeout: [5]: expected a time from 1ms to 24h",
        ),
    ] {
        let text =
            format!("mode = \"http\"\n[[route]]\npath = \"/x\"\nupstreams = \"h:1\"\n[[route]]\n{table}");
        let error = ProxyOptions::parse(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
