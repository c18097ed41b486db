#!/usr/bin/env bash
# Records the captures of this folder anew: handshakes of OpenSSL clients with nginx, `openssl s_server` and stunnel, on
# loopback. The tests know how many of each there are. Needs root, tcpdump, openssl, nginx, stunnel and curl.
set -euo pipefail
captures=$(cd "$(dirname "$0")" && pwd) folder=$(mktemp -d) pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 20 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem 2>/dev/null
cat cert.pem key.pem > both.pem
cat > nginx.conf <<END
daemon off; pid $folder/pid; error_log stderr crit; user root;
events { }
http {
    access_log off; client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
    ssl_session_cache shared:sessions:1m; ssl_ecdh_curve X25519:secp384r1; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate cert.pem; ssl_certificate_key key.pem;
    server { listen 127.0.0.1:24430; return 200 hello; }
    server { listen 127.0.0.1:24431 ssl; listen [::1]:24431 ssl; return 200 hello; }
}
END
cat > stunnel.conf <<END
foreground = yes
pid =
debug = 0
[web]
accept = 127.0.0.1:24433
connect = 127.0.0.1:24430
cert = $folder/both.pem
sslVersionMin = TLSv1.2
END
nginx -e stderr -p "$folder" -c nginx.conf & pids+=($!)
openssl s_server -quiet -accept 127.0.0.1:24432 -cert cert.pem -key key.pem -early_data -no_anti_replay -num_tickets 1 >/dev/null 2>&1 < <(sleep 100) & pids+=($!)
stunnel stunnel.conf >/dev/null 2>&1 & pids+=($!)
sleep 1

begin() { tcpdump -i lo --immediate-mode -U -s 0 -w "$captures/$1.pcap" 'tcp portrange 24431-24433' 2>tcpdump.said & tcpdump=$!; sleep 1; }
end() { sleep 0.5; kill -INT "$tcpdump"; wait "$tcpdump"; }
# A handshake with a port, which asks for a name unless that is `-`, and a request.
ask() {
    name=(-servername "$2")
    [ "$2" != - ] || name=(-noservername)
    printf 'GET / HTTP/1.0\r\n\r\n' |
        timeout 10 openssl s_client -quiet -ign_eof "${name[@]}" -connect "${host:-127.0.0.1}:$1" "${@:3}" >/dev/null 2>&1 || true
}
# A handshake with the server that has no HTTP.
wait_for_ticket() {
    sleep 0.5 | timeout 10 openssl s_client -quiet -servername "$2" -connect "127.0.0.1:$1" "${@:3}" >/dev/null 2>&1 || true
}

# TLS 1.2: 4 full, of which 1 with a ticket that is refused, and 4 resumed, of which 1 by its session identifier.
begin tls12
ask 24431 one.example -tls1_2 -sess_out ticket
ask 24431 one.example -tls1_2 -sess_in ticket
ask 24431 one.example -tls1_2 -sess_in ticket -cipher ECDHE-ECDSA-AES256-GCM-SHA384
ask 24431 two.example -tls1_2 -no_ticket -cipher ECDHE-ECDSA-CHACHA20-POLY1305 -sess_out id
ask 24431 two.example -tls1_2 -no_ticket -cipher ECDHE-ECDSA-CHACHA20-POLY1305 -sess_in id
wait_for_ticket 24432 three.example -tls1_2 -groups P-384:P-256 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -sess_in ticket -sess_out other
wait_for_ticket 24432 three.example -tls1_2 -groups P-384:P-256 -sess_in other
host=[::1] ask 24431 four.example -tls1_2 -groups P-384:P-256
end

# TLS 1.3: 7 full, of which 1 with a HelloRetryRequest and 1 with a ticket that is refused, and 5 resumed, of which 1 with a
# HelloRetryRequest and 1 with early data.
begin tls13
ask 24431 one.example -sess_out ticket
ask 24431 one.example -sess_in ticket
ask 24431 one.example -sess_in ticket -groups P-256:X25519
ask 24431 two.example -groups P-256:P-384 -ciphersuites TLS_CHACHA20_POLY1305_SHA256
wait_for_ticket 24432 three.example -ciphersuites TLS_AES_128_GCM_SHA256 -sess_out early
printf 'GET / HTTP/1.0\r\n\r\n' > request
wait_for_ticket 24432 three.example -ciphersuites TLS_AES_128_GCM_SHA256 -sess_in early -early_data request
ask 24431 three.example -ciphersuites TLS_AES_128_GCM_SHA256 -sess_in early
ask 24433 four.example -groups P-521:P-256 -sess_out stunnel
ask 24433 four.example -groups P-521:P-256 -sess_in stunnel
host=[::1] ask 24431 - -sess_out without
host=[::1] ask 24431 - -sess_in without
curl -sko /dev/null https://localhost:24431/ --resolve localhost:24431:127.0.0.1
end

# TLS 1.3: 100 requests on one connection.
begin kept
curl -sk 'https://127.0.0.1:24431/[1-100]' >/dev/null
end

# Failures: a client that distrusts the certificate, with both versions; no TLS; a version that is too old; no common suite;
# a client that leaves without a byte, and one within its ClientHello.
begin failed
ask 24431 one.example -tls1_2 -verify_return_error -verify 1
ask 24431 one.example -verify_return_error -verify 1
curl -so /dev/null http://127.0.0.1:24431/
ask 24431 one.example -tls1_1 -cipher DEFAULT:@SECLEVEL=0
ask 24431 one.example -tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256
bash -c 'exec 3<>/dev/tcp/127.0.0.1/24431; exec 3>&-'
bash -c 'exec 3<>/dev/tcp/127.0.0.1/24431; printf "\x16\x03\x01\x01\x00\x01\x00" >&3; exec 3>&-'
end
ls -l "$captures"
