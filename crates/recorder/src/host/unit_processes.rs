//! The processes of a systemd unit, by their control groups.

use std::fs;
use std::io;

/// The root processes of a unit, such as `nginx.service`: processes whose parents are not in the unit.
///
/// # Errors
/// If the unit has no process, or `/proc` cannot be read.
pub fn unit_processes(unit: &str) -> io::Result<Vec<u32>> {
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| is_in_unit(&text, unit))
        })
        .filter_map(|pid| Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?)))
        .collect();
    let is_within = |pid: u32| all.iter().any(|(other, _)| *other == pid);
    let roots: Vec<u32> = all.iter().filter(|(_, parent)| !is_within(*parent)).map(|(pid, _)| *pid).collect();
    if roots.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no process is of the unit {unit}")));
    }
    Ok(roots)
}

/// Whether the control group of a process (`cgroups(7)`, `/proc/PID/cgroup`) is that of a unit, or below it.
fn is_in_unit(text: &str, unit: &str) -> bool {
    text.lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .any(|path| path.split('/').any(|part| part == unit))
}

/// The innermost service or scope of a control group, but for that of a login session.
pub(super) fn unit_of(text: &str) -> Option<&str> {
    let mut paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let is_unit = |part: &&str| {
        let is_session = part.starts_with("session-") || part.starts_with("user@") || *part == "init.scope";
        matches!(part.rsplit_once('.'), Some((_, "service" | "scope"))) && !is_session
    };
    paths.find_map(|path| path.rsplit('/').find(is_unit))
}

fn parent(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("PPid:")).and_then(|pid| pid.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_process_is_a_part_of_its_control_groups_path() {
        let groups = "12:pids:/system.slice/nginx.service\n0::/system.slice/nginx.service/workers\n";
        assert!(is_in_unit(groups, "nginx.service"));
        assert!(!is_in_unit(groups, "nginx"));
        assert!(!is_in_unit("0::/user.slice\n", "nginx.service"));
        let in_session = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-web.service\n";
        let of = ["0::/user.slice/user-1000.slice/session-3.scope\n", "0::/init.scope\n", "0::/\n"];
        assert_eq!((unit_of(groups), unit_of(in_session)), (Some("nginx.service"), Some("app-web.service")));
        assert_eq!(of.map(unit_of), [None; 3]);
        assert_eq!(parent("Name:\tx\nPPid:\t12\n"), Some(12));
    }

    #[test]
    fn a_unit_without_processes_is_an_error_that_names_it() {
        let error = unit_processes("no-such-unit.service").unwrap_err();
        assert!(error.to_string().contains("no-such-unit.service"), "{error}");
    }
}
