//! From the text of a scenario to the scenario.

use std::collections::BTreeSet;

use model::figures::FigureName;
use records::text::clean;

use super::case::CheckFlags;
use super::error::{ScenarioError, unknown};
use super::table::{ScenarioSource, Table};
use super::target::{Defaults, workers};
use super::{
    BenchAssertion, BenchCase, BenchTarget, BenchTlsConfig, CommandServer, Placement, PublishedFigure,
    ROUNDS_MIN, Scenario, Server, case, target,
};
use crate::compare::BenchCondition;

/// The default number of measurements of each cell.
const ROUNDS: u32 = 10;
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The longest name of a target or a case, in characters.
const NAME_CHARS_MAX: usize = 100;

impl Scenario {
    /// Parses the text of a scenario. `check` gets the flags of each case, without the URL.
    ///
    /// # Errors
    /// With the line and the problem.
    pub fn parse(name: &str, text: &str, check: CheckFlags<'_>) -> Result<Self, ScenarioError> {
        let source = ScenarioSource { name, text };
        if text.len() > TEXT_BYTES_MAX {
            return Err(source.error(0, format!("the scenario has more than {TEXT_BYTES_MAX} bytes")));
        }
        let mut root = source.table()?;
        let tls = tls(&mut root)?;
        let defaults = Defaults { workers: workers(&mut root)?.unwrap_or(1), tls };
        let target_tables = root.tables("target")?;
        let targets = target_tables
            .into_iter()
            .map(|table| target::read(table, &defaults))
            .collect::<Result<Vec<_>, _>>()?;
        check_names(&root, "target", targets.iter().map(|target| (&*target.name, target.line)))?;
        let cases = case::read_all(root.tables("case")?, check)?;
        check_names(&root, "case", cases.iter().map(|case| (&*case.name, case.line)))?;
        let baseline = match root.get::<String>("baseline")? {
            Some(baseline) => baseline,
            None => targets[0].name.clone(),
        };
        let scenario = Self {
            name: name.to_owned(),
            title: root.get("title")?.unwrap_or_else(|| name.to_owned()),
            notes: root.get("notes")?.unwrap_or_default(),
            baseline,
            rounds: root.get("rounds")?.unwrap_or(ROUNDS),
            cpus: cpus(&mut root)?,
            tls: defaults.tls,
            certificate: None,
            upstream: None,
            assertions: assertions(root.tables("assert")?, &targets, &cases)?,
            published: published(root.tables("published")?, &targets, &cases)?,
            targets,
            cases,
        };
        root.finish(&[])?;
        scenario.check(&root)?;
        Ok(scenario)
    }

    /// Each target with each of its cases, in the order of the file.
    pub fn cells(&self) -> impl Iterator<Item = (&BenchTarget, &BenchCase)> {
        let cases_of = |target| self.cases.iter().filter(move |case| case.is_for(target));
        self.targets.iter().flat_map(move |target| cases_of(target).map(move |case| (target, case)))
    }

    fn check(&self, root: &Table<'_>) -> Result<(), ScenarioError> {
        if !self.targets.iter().any(|target| target.name == self.baseline) {
            let names: Vec<&str> = self.targets.iter().map(|target| &*target.name).collect();
            return Err(root.error_of("baseline", unknown("target", &self.baseline, &names)));
        }
        if self.rounds == 0 {
            return Err(root.error_of("rounds", format!("run 1 at least, and {ROUNDS_MIN} for a verdict")));
        }
        if let Some(excess) = self.excess() {
            return Err(root.error_of("rounds", excess));
        }
        let at_case = |case: &BenchCase, problem| ScenarioError {
            line: Some(case.line),
            problem: format!("case {:?} {problem}", case.name),
            ..root.error("")
        };
        for case in &self.cases {
            let is_unknown = |name: &&String| !self.targets.iter().any(|target| target.name == **name);
            if let Some(name) = case.only.iter().find(is_unknown) {
                let names: Vec<&str> = self.targets.iter().map(|target| &*target.name).collect();
                return Err(at_case(case, format!("has a wrong only: {}", unknown("target", name, &names))));
            }
            if !case.only.is_empty() && !case.only.contains(&self.baseline) {
                return Err(at_case(
                    case,
                    format!("needs the baseline {:?} among its targets", self.baseline),
                ));
            }
        }
        for (target, case) in self.cells() {
            let is_started = matches!(target.server, Server::Commands(_));
            let missing = if case.is_http2() && !target.speaks_http2() {
                "HTTP/2"
            } else if case.flag("expect-echo").is_some() && is_started && !target.echoes() {
                "echoes"
            } else {
                continue;
            };
            return Err(at_case(
                case,
                format!("wants {missing}, which target {:?} does not have", target.name),
            ));
        }
        Ok(())
    }
}

/// Reads the text of a template: one `[[target]]` with a command.
pub(crate) fn read_template(name: &str, text: &str) -> Result<CommandServer, ScenarioError> {
    let mut root = ScenarioSource { name, text }.table()?;
    let mut tables = root.tables("target")?;
    root.finish(&[])?;
    let (Some(mut table), None) = (tables.pop(), tables.pop()) else {
        return Err(root.error("a template has one [[target]]"));
    };
    table.require::<String>("name")?;
    let server = target::command(&mut table)?;
    table.finish(&[])?;
    Ok(server)
}

fn tls(root: &mut Table<'_>) -> Result<BenchTlsConfig, ScenarioError> {
    let defaults = BenchTlsConfig::default();
    let tls = BenchTlsConfig {
        key: root.get("certificate")?.unwrap_or_default(),
        cipher: root.get("cipher")?.unwrap_or(defaults.cipher),
        group: root.get("group")?.unwrap_or(defaults.group),
    };
    BenchTlsConfig::check_cipher(&tls.cipher).map_err(|problem| root.error_of("cipher", problem))?;
    BenchTlsConfig::check_group(&tls.group).map_err(|problem| root.error_of("group", problem))?;
    Ok(tls)
}

fn cpus(root: &mut Table<'_>) -> Result<Option<Placement>, ScenarioError> {
    if !root.has("cpus") {
        return Ok(None);
    }
    let mut placement = Placement::default();
    for (key, value) in root.entries_of("cpus")? {
        let list = value.get_ref().as_str().filter(|list| is_core_list(list)).map(str::to_owned);
        let list = list.ok_or_else(|| {
            root.error_of("cpus", format!("{key} must be a list of cores such as \"0-3,8\""))
        })?;
        match &*key {
            "target" => placement.target = Some(list),
            "load" => placement.load = Some(list),
            "upstream" => placement.upstream = Some(list),
            _ => return Err(root.error_of("cpus", unknown("key", &key, &["target", "load", "upstream"]))),
        }
    }
    Ok(Some(placement))
}

fn is_core_list(text: &str) -> bool {
    text.split(',').all(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let core = |core: &str| core.parse::<u16>().ok();
        core(first).zip(core(last)).is_some_and(|(first, last)| first <= last)
    })
}

/// Refuses names that are missing, not printable, too long or not unique.
fn check_names<'n>(
    root: &Table<'_>,
    kind: &'static str,
    names: impl Iterator<Item = (&'n str, usize)>,
) -> Result<(), ScenarioError> {
    let mut seen = BTreeSet::new();
    for (name, line) in names {
        let is_printable = clean::text(name) == name && name.trim() == name;
        let problem = if name.is_empty() || !is_printable || name.chars().count() > NAME_CHARS_MAX {
            format!("the name of a {kind} must have 1 to {NAME_CHARS_MAX} printable characters")
        } else if kind == "target" && name.contains(',') {
            format!("the name {name:?} has a comma, which separates the targets of --only; leave it out")
        } else if !seen.insert(name) {
            format!("there are two {kind}s {name:?}; give one another name")
        } else {
            continue;
        };
        return Err(ScenarioError { line: Some(line), ..root.error(problem) });
    }
    if seen.is_empty() {
        return Err(root.error(format!("there is no [[{kind}]]; give one at least")));
    }
    Ok(())
}

fn assertions(
    tables: Vec<Table<'_>>,
    targets: &[BenchTarget],
    cases: &[BenchCase],
) -> Result<Vec<BenchAssertion>, ScenarioError> {
    let assertion = |mut table: Table<'_>| {
        let target = known_target(&mut table, targets)?;
        let case = table.has("case").then(|| known_case(&mut table, cases)).transpose()?;
        let condition: String = table.require("condition")?;
        condition
            .parse::<BenchCondition>()
            .map_err(|error| table.error_of("condition", error.to_string()))?;
        table.finish(&["case"])?;
        Ok(BenchAssertion { line: table.line(), target, case, condition })
    };
    tables.into_iter().map(assertion).collect()
}

fn published(
    tables: Vec<Table<'_>>,
    targets: &[BenchTarget],
    cases: &[BenchCase],
) -> Result<Vec<PublishedFigure>, ScenarioError> {
    let mut published = Vec::new();
    for mut table in tables {
        let target = known_target(&mut table, targets)?;
        let case = known_case(&mut table, cases)?;
        let figures: toml::Table = table.require("figures")?;
        for (figure, value) in figures {
            figure.parse::<FigureName>().map_err(|error| table.error_of("figures", error.to_string()))?;
            let value = value.as_float().or_else(|| Some(value.as_integer()? as f64));
            let value = value.filter(|value| value.is_finite());
            let value =
                value.ok_or_else(|| table.error_of("figures", format!("{figure} must be a number")))?;
            published.push(PublishedFigure { target: target.clone(), case: case.clone(), figure, value });
        }
        table.finish(&[])?;
    }
    Ok(published)
}

fn known_target(table: &mut Table<'_>, targets: &[BenchTarget]) -> Result<String, ScenarioError> {
    known_name(table, "target", targets.iter().map(|target| &*target.name))
}

fn known_case(table: &mut Table<'_>, cases: &[BenchCase]) -> Result<String, ScenarioError> {
    known_name(table, "case", cases.iter().map(|case| &*case.name))
}

fn known_name<'n>(
    table: &mut Table<'_>,
    key: &'static str,
    names: impl Iterator<Item = &'n str>,
) -> Result<String, ScenarioError> {
    let name: String = table.require(key)?;
    let names: Vec<&str> = names.collect();
    if names.contains(&&*name) { Ok(name) } else { Err(table.error_of(key, unknown(key, &name, &names))) }
}
