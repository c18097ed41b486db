//! A run of which little is kept, since there are too many: its totals and its last interval.

use std::collections::VecDeque;

use super::Run;
use crate::model::run::clients::Clients;
use crate::model::run::experiment::Experiments;
use crate::model::run::failures::Failures;
use crate::model::run::timeline::Markers;
use crate::model::series::Track;
use crate::record::{Body, Record};

impl Run {
    /// Lets go of all but what a list of runs shows, from now on too.
    pub(in crate::model) fn abridge(&mut self) {
        self.is_brief = true;
        self.history = 1;
        self.proxy.iter_mut().for_each(Track::abridge);
        self.load.iter_mut().for_each(Track::abridge);
        self.clients = Clients::new(1);
        self.hosts.drain(..self.hosts.len().saturating_sub(1));
        self.hosts.shrink_to(1);
        self.experiments = Experiments::default();
        self.log = VecDeque::new();
        self.markers = Markers::default();
        self.failures = Failures::default();
    }

    /// Takes in a record of such a run.
    pub(super) fn apply_briefly(&mut self, record: Record) {
        let stamp = record.stamp;
        match record.body {
            Body::Run(run) => self.apply_run(stamp, run),
            Body::Proxy(proxy) => self.apply_proxy(&stamp, &proxy),
            Body::Load(load) => self.apply_load(&stamp, *load),
            Body::Setting(setting) => self.apply_setting(&stamp, setting),
            Body::Host(host) => {
                self.hosts.clear();
                self.apply_host(&stamp, host);
            }
            Body::Health(health) => self.health = health,
            Body::Client(_) | Body::Connection(_) | Body::Mark(_) | Body::Experiment(_) | Body::Notice(_) => {
            }
        }
        self.markers = Markers::default();
        // They are made anew by the records of a run that begins later.
        self.proxy.iter_mut().for_each(Track::abridge);
        self.load.iter_mut().for_each(Track::abridge);
    }
}
