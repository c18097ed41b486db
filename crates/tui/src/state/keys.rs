//! What keys and commands mean at the moment.

use super::State;
use super::screen::Screen;
use crate::input::context::KeyContext;
use crate::input::intent::{Intent, PaneAction};
use crate::input::keymap::Binding;
use crate::input::requirement::KeyRequirement;

impl State {
    /// The context that decides what keys do.
    pub(crate) fn context(&self) -> KeyContext {
        match self.screen {
            Screen::Tuning => KeyContext::Tuning,
            Screen::Experiments => KeyContext::Experiments,
            Screen::Runs => KeyContext::Runs,
            Screen::Choice(..) => KeyContext::Choice,
            _ if self.is_replay() => KeyContext::Replay,
            Screen::Dashboard
            | Screen::Help { .. }
            | Screen::Details(_)
            | Screen::Findings(_)
            | Screen::Requests { .. } => KeyContext::Panes,
        }
    }

    /// Returns whether the requirements of a key are met.
    pub(crate) fn can(&self, needs: KeyRequirement) -> bool {
        let figures = self.figures();
        match needs {
            KeyRequirement::Nothing => true,
            KeyRequirement::Clients => figures.is_none_or(|figures| figures.proxy.is_some()),
            KeyRequirement::Http => self.has_http(),
            KeyRequirement::Hosts => self.has_hosts(),
            KeyRequirement::Services => self.has_services(),
            KeyRequirement::Upstreams => self.has_upstreams(),
            KeyRequirement::Certificates => self.has_certificates(),
            KeyRequirement::Runs => self.options.watches && self.model.runs().count() > 1,
            KeyRequirement::Journal => self.options.history.is_some(),
            KeyRequirement::Process => !self.options.watches,
            KeyRequirement::Viewer => self.options.watches,
            KeyRequirement::Recorder => !self.options.watches || self.options.remote.is_some(),
            KeyRequirement::HiddenPanes => !self.panes.hidden.is_empty(),
            KeyRequirement::Control => self.obstacle().is_none(),
            KeyRequirement::Load => {
                self.obstacle().is_none() && figures.is_none_or(|figures| figures.load.is_some())
            }
        }
    }

    /// Returns whether a command has an effect on this screen, whose key need not reach it.
    pub(crate) fn can_run(&self, binding: &Binding) -> bool {
        let is_here = match binding.context {
            KeyContext::Anywhere | KeyContext::Panes => true,
            context => context == self.context(),
        };
        is_here && self.can(binding.needs) && self.accepts(binding.intent)
    }

    /// Returns whether a request makes sense on this screen and in this mode.
    pub(crate) fn accepts(&self, intent: Intent) -> bool {
        let needs = match intent {
            Intent::Requests => KeyRequirement::Http,
            Intent::DrainUpstream => KeyRequirement::Upstreams,
            Intent::Pane(PaneAction::Preset(preset)) => preset.needs(),
            _ => KeyRequirement::Nothing,
        };
        let is_seen = !matches!(self.screen, Screen::Help { .. }) || acts_on_help(intent);
        is_seen && self.can(needs)
    }
}

/// Returns whether a request makes sense while the help covers the panes: what it changes would not be seen.
fn acts_on_help(intent: Intent) -> bool {
    matches!(
        intent,
        Intent::Quit
            | Intent::Help
            | Intent::Back
            | Intent::Filter
            | Intent::Scroll(_)
            | Intent::Palette
            | Intent::Copy
            | Intent::Redraw
            | Intent::Suspend
    )
}
