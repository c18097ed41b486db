//! Sequences that make a terminal ring or notify.

use crate::options::AlertNotify;

const TITLE: &str = "tlsdash";

/// Returns what to write to the terminal. Within tmux it is passed on to the terminal outside, if
/// `allow-passthrough` is on.
pub(crate) fn sequence(how: AlertNotify, text: &str, is_in_tmux: bool) -> String {
    // A semicolon separates the parts of a notification.
    let text: String = text.chars().filter(|c| !c.is_control()).collect::<String>().replace(';', ",");
    let sequence = match how {
        AlertNotify::Off => return String::new(),
        AlertNotify::Bell => return "\x07".to_owned(),
        AlertNotify::Osc9 => format!("\x1b]9;{TITLE}: {text}\x07"),
        AlertNotify::Osc777 => format!("\x1b]777;notify;{TITLE};{text}\x07"),
    };
    if is_in_tmux { format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")) } else { sequence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_notification() {
        let text = "alert: a;b\x07\x1b]0;title\x07";
        assert_eq!(sequence(AlertNotify::Osc9, text, false), "\x1b]9;tlsdash: alert: a,b]0,title\x07");
        assert_eq!(
            sequence(AlertNotify::Osc777, text, true),
            "\x1bPtmux;\x1b\x1b]777;notify;tlsdash;alert: a,b]0,title\x07\x1b\\"
        );
        assert_eq!(sequence(AlertNotify::Bell, text, true), "\x07");
        assert_eq!(sequence(AlertNotify::Off, text, false), "");
    }
}
