//! The scenario of `--against`: tlsdash beside other terminators, by their names alone.

use std::fmt::Write as _;

use crate::scenario::{CheckFlags, CommandServer, Scenario, UpstreamKind};
use crate::template::ServerTemplate;

const NAME: &str = "--against";
/// The baseline.
const TLSDASH: &str = "tlsdash";
const CASES: &str = include_str!("cases.toml");

/// Makes the scenario that compares tlsdash with these terminators: names of templates, or their first words, such as
/// `nginx`. All are HTTP proxies, if each has such a template; otherwise those forward bytes that can.
///
/// # Errors
/// If there is no such terminator.
pub fn scenario(names: &[String], check: CheckFlags<'_>) -> Result<Scenario, String> {
    let mut contenders = vec![(TLSDASH, terminators(TLSDASH))];
    for name in names.iter().map(String::as_str) {
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
    Scenario::parse(&name, &(text + CASES), check).map_err(|error| error.to_string())
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
    use crate::scenario::Server;

    /// The names of the targets with their templates, or why there are none.
    fn targets(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let scenario = scenario(&names, &|_| Ok(()))?;
        assert_eq!(scenario.baseline, TLSDASH);
        let template = |server: &Server| match server {
            Server::Commands(servers) => servers[0].template.clone(),
            Server::Address(_) => String::new(),
        };
        let target = scenario.targets.iter();
        Ok(target.map(|target| format!("{} {}", target.name, template(&target.server))).collect())
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
}
