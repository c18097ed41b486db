if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
    observers=$(systemctl list-units --all --plain --no-legend 'tlsdash-observe@*' | cut -d' ' -f1)
    # shellcheck disable=SC2086
    systemctl --no-reload disable --now tlsdash.service tlsdash-wire.service $observers
fi
