//! The scenario of `--against`: tlsdash beside other terminators, by their names alone.

use std::fmt::Write as _;
use std::net::ToSocketAddrs as _;

use crate::scenario::{
    BenchTarget, CertificatePaths, CheckFlags, CommandServer, Endpoint, Scenario, Server, UpstreamKind,
    absolute,
};
use crate::template::ServerTemplate;

const NAME: &str = "--against";
/// The baseline.
const TLSDASH: &str = "tlsdash";
const CASES: &str = include_str!("cases.toml");
/// What the name of a case says of the body that bench's own upstream answers with.
const SIZE: &str = "10 kB ";
/// The templates that cannot be told to connect over TCP by another address alone.
const UNIX_ONLY: [&str; 3] = ["hitch", "nghttpx", "go-proxy"];

/// The comparison of tlsdash with other terminators.
#[derive(Clone, Debug)]
pub struct Against<'a> {
    /// Names of templates, or their first words, such as `nginx`.
    pub names: &'a [String],
    /// The certificate of all; `None` for one that is made.
    pub certificate: Option<CertificatePaths>,
    /// The server behind all, such as `127.0.0.1:8080` or `http://app:80/page`; `None` for one that is started.
    pub upstream: Option<&'a str>,
}

impl Against<'_> {
    /// Makes its scenario. All are HTTP proxies, if each has such a template; otherwise those forward bytes that can.
    ///
    /// # Errors
    /// If there is no such terminator, or it cannot have the upstream.
    pub fn scenario(&self, check: CheckFlags<'_>) -> Result<Scenario, String> {
        let mut contenders = vec![(TLSDASH, terminators(TLSDASH))];
        for name in self.names.iter().map(String::as_str) {
            let terminators = terminators(name);
            if terminators.is_empty() {
                return Err(unknown(name));
            }
            if contenders.iter().all(|(known, _)| *known != name) {
                contenders.push((name, terminators));
            }
        }
        if contenders.len() == 1 {
            return Err(format!("{NAME}: name other terminators, such as nginx,haproxy"));
        }
        let is_http = contenders.iter().all(|(_, templates)| templates.iter().any(|server| server.http2));
        let names: Vec<&str> = contenders.iter().skip(1).map(|(name, _)| *name).collect();
        let kind = if is_http { "HTTP" } else { "TCP" };
        let mut text = format!("title = \"{kind} proxies beside tlsdash\"\nrounds = 6\n");
        for (name, servers) in &contenders {
            // One that has only the other kind is compared all the same.
            let server = servers.iter().find(|server| server.http2 == is_http).unwrap_or(&servers[0]);
            let template = &server.template;
            let _ = writeln!(text, "\n[[target]]\nname = \"{name}\"\ntemplate = \"{template}\"");
        }
        let name = format!("{NAME} {}", names.join(","));
        let scenario = Scenario::parse(&name, &(text + CASES), check).map_err(|error| error.to_string())?;
        let scenario = Scenario { certificate: self.certificate.clone(), ..scenario };
        match self.upstream {
            Some(upstream) => with_upstream(scenario, upstream),
            None => Ok(scenario),
        }
    }
}

/// Puts the user's server behind all targets.
fn with_upstream(mut scenario: Scenario, text: &str) -> Result<Scenario, String> {
    let (endpoint, path) = parse_upstream(text).map_err(|reason| format!("--upstream {text}: {reason}"))?;
    for BenchTarget { server, .. } in &mut scenario.targets {
        let Server::Commands(servers) = server else { continue };
        for server in servers {
            connect_to(server, &endpoint).map_err(|reason| format!("--upstream {text}: {reason}"))?;
        }
    }
    for case in &mut scenario.cases {
        case.path.clone_from(&path);
        case.name = case.name.replace(SIZE, "");
    }
    scenario.notes.push(format!("the upstream is {endpoint}, asked for {path}; its CPU time is unknown"));
    scenario.upstream = Some(endpoint);
    Ok(scenario)
}

/// Where a server listens, and the path that is asked for.
fn parse_upstream(text: &str) -> Result<(Endpoint, String), String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok((Endpoint::Unix(absolute(path).into()), "/".to_owned()));
    }
    let rest = text.strip_prefix("http://").unwrap_or(text);
    if rest.contains("://") {
        return Err("the targets speak HTTP without TLS to it; give HOST:PORT or unix:PATH".to_owned());
    }
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("percent-encode the path".to_owned());
    }
    let mut addresses = host.to_socket_addrs().map_err(|error| format!("{error}; give HOST:PORT"))?;
    let address = addresses.next().ok_or("it has no address")?;
    Ok((Endpoint::Tcp(address), path.to_owned()))
}

/// Lets a template's server connect to an endpoint of another kind than its own upstream.
fn connect_to(server: &mut CommandServer, endpoint: &Endpoint) -> Result<(), String> {
    // The user's server answers no `POST /echo`.
    server.echo = false;
    match (endpoint, server.upstream) {
        (Endpoint::Unix(_), UpstreamKind::Tcp) => {
            return Err(format!("{} has TCP to its upstream; give HOST:PORT", server.template));
        }
        (Endpoint::Tcp(_), UpstreamKind::Unix) if UNIX_ONLY.contains(&&*server.template) => {
            return Err(format!("{} has a Unix socket to its upstream; give unix:PATH", server.template));
        }
        (Endpoint::Tcp(_), UpstreamKind::Unix) => {
            server.upstream = UpstreamKind::Tcp;
            for text in server.command.iter_mut().chain(server.files.values_mut()) {
                *text =
                    text.replace("unix:{upstream}", "{upstream}").replace("unix@{upstream}", "{upstream}");
            }
        }
        _ => {}
    }
    Ok(())
}

/// The templates of this name, or those whose first word it is, that terminate TLS before an upstream.
fn terminators(name: &str) -> Vec<CommandServer> {
    let is_named = |template: &&ServerTemplate| template.name == name || first_word(template) == name;
    let servers = ServerTemplate::all().iter().filter(is_named).filter_map(|template| template.server().ok());
    servers.filter(|server| server.tls && server.upstream != UpstreamKind::None).collect()
}

fn first_word(template: &ServerTemplate) -> &'static str {
    template.name.split_once('-').map_or(template.name, |(word, _)| word)
}

fn unknown(name: &str) -> String {
    let mut words: Vec<&str> = ServerTemplate::all().iter().map(first_word).collect();
    words.dedup();
    words.retain(|word| *word != TLSDASH && !terminators(word).is_empty());
    let name = records::text::clean::text(name);
    format!("{NAME} {name}: there is no such terminator; there are {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(names: &[&str], upstream: Option<&str>) -> Result<Scenario, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        Against { names: &names, certificate: None, upstream }.scenario(&|_| Ok(()))
    }

    /// The names of the targets with their templates, or why there are none.
    fn targets(names: &[&str]) -> Result<Vec<String>, String> {
        let scenario = scenario(names, None)?;
        assert_eq!(scenario.baseline, TLSDASH);
        let shown =
            |target: &BenchTarget| format!("{} {}", target.name, target.template().unwrap_or_default());
        Ok(scenario.targets.iter().map(shown).collect())
    }

    #[test]
    fn like_is_compared_with_like() {
        let http = ["tlsdash tlsdash-http", "nginx nginx-http", "haproxy haproxy-http"];
        assert_eq!(targets(&["nginx", "haproxy", "nginx"]).unwrap(), http);
        let tcp = ["tlsdash tlsdash-tcp", "nginx nginx-stream", "hitch hitch"];
        assert_eq!(targets(&["nginx", "hitch"]).unwrap(), tcp);
        let named = ["tlsdash tlsdash-tcp", "haproxy-tcp haproxy-tcp"];
        assert_eq!(targets(&["haproxy-tcp", "tlsdash"]).unwrap(), named);
        assert_eq!(targets(&["go", "hitch"]).unwrap()[1], "go go-proxy", "it has no other kind");
    }

    #[test]
    fn names_of_no_terminator_are_refused() {
        let words = "there is no such terminator; there are nginx, haproxy, hitch, stunnel, nghttpx, go, sozu, spring";
        for name in ["ngnix", "", "nginx-plain", "node"] {
            assert_eq!(targets(&[name]).unwrap_err(), format!("--against {name}: {words}"));
        }
        let none = targets(&["tlsdash"]).unwrap_err();
        assert_eq!(none, "--against: name other terminators, such as nginx,haproxy");
    }

    #[test]
    fn every_target_has_the_users_upstream() {
        let all = ["nginx", "haproxy", "stunnel", "sozu"];
        let made = scenario(&all, Some("http://127.0.0.1:8080/page?a=b")).unwrap();
        assert_eq!(made.upstream, Some(Endpoint::Tcp(([127, 0, 0, 1], 8080).into())));
        assert!(made.cases.iter().all(|case| case.path == "/page?a=b"), "{:?}", made.cases);
        let names: Vec<&str> = made.cases.iter().map(|case| &*case.name).collect();
        assert_eq!(names, ["full handshake", "resumed handshake", "kept alive"]);
        for target in &made.targets {
            assert!(!target.echoes(), "{target:?}");
            let text = format!("{:?}", target.server);
            assert!(!text.contains("unix:{") && !text.contains("unix@{"), "{text}");
        }
        let made = scenario(&["nginx", "hitch"], Some("unix:/run/app.sock")).unwrap();
        assert_eq!(made.upstream, Some(Endpoint::Unix("/run/app.sock".into())));
        assert!(format!("{:?}", made.targets).contains("unix:{upstream}"));
    }

    #[test]
    fn an_upstream_that_a_target_cannot_have_is_refused() {
        let refusal = |name, upstream| scenario(&[name], Some(upstream)).unwrap_err();
        let unix = "--upstream 127.0.0.1:80: hitch has a Unix socket to its upstream; give unix:PATH";
        assert_eq!(refusal("hitch", "127.0.0.1:80"), unix);
        let tcp = "--upstream unix:/a: sozu has TCP to its upstream; give HOST:PORT";
        assert_eq!(refusal("sozu", "unix:/a"), tcp);
        assert!(refusal("nginx", "https://127.0.0.1:80").contains("without TLS"));
        assert!(refusal("nginx", "127.0.0.1").ends_with("give HOST:PORT"));
    }
}
