//! What a key, a pane or a hint needs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRequirement {
    Nothing,
    Clients,
    Http,
    Hosts,
    Services,
    /// Several upstreams, or one that is not up.
    Upstreams,
    /// A certificate that is served.
    Certificates,
    /// Another run to show.
    Runs,
    /// A journal that can be read again.
    Journal,
    /// A run of this process.
    Process,
    /// A process that only watches.
    Viewer,
    Recorder,
    /// Panes that are hidden.
    HiddenPanes,
    /// A run that takes commands.
    Control,
    Load,
}
