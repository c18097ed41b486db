systemd-sysusers tlsdash.conf
systemd-tmpfiles --create tlsdash.conf
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
