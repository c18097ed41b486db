// A server as one writes it with Go's standard library.
//
//	server plain LISTEN                             answers over HTTP
//	server native LISTEN CERT KEY GROUP             answers over HTTPS
//	server proxy LISTEN CERT KEY GROUP UPSTREAM     forwards to a Unix socket
//
// LISTEN is HOST:PORT or unix:PATH. GET /bytes/N answers N bytes, POST /echo the body of the request.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

const bytesMax = 1 << 30

var pattern = bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz"), 2521)[:64*1024]

var groups = map[string][]tls.CurveID{
	"x25519":    {tls.X25519},
	"secp256r1": {tls.CurveP256},
	"secp384r1": {tls.CurveP384},
}

func answerBytes(w http.ResponseWriter, r *http.Request) {
	left, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/bytes/"))
	if err != nil || left < 0 || left > bytesMax {
		http.Error(w, "expected /bytes/N", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(left))
	for left > 0 {
		written, err := w.Write(pattern[:min(left, len(pattern))])
		if err != nil {
			return
		}
		left -= written
	}
}

// The server of HTTP/1.1 reads no more of a body once it has answered, so the whole body comes first.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// bufferPool is what a ReverseProxy takes its buffers from.
type bufferPool struct{ sync.Pool }

func (pool *bufferPool) Get() []byte       { return pool.Pool.Get().([]byte) }
func (pool *bufferPool) Put(buffer []byte) { pool.Pool.Put(buffer) }

func reverseProxy(socket string) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "upstream"})
	proxy.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns:        8192,
		MaxIdleConnsPerHost: 8192,
		DisableCompression:  true,
	}
	proxy.BufferPool = &bufferPool{sync.Pool{New: func() any { return make([]byte, 32*1024) }}}
	return proxy
}

func listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		return net.Listen("tcp", address)
	}
	listener, err := net.Listen("unix", path)
	if err == nil {
		// A proxy before it may run as another user.
		err = os.Chmod(path, 0o666)
	}
	return listener, err
}

func main() {
	mode, address := os.Args[1], os.Args[2]
	routes := http.NewServeMux()
	if mode == "proxy" {
		routes.Handle("/", reverseProxy(os.Args[6]))
	} else {
		routes.HandleFunc("/bytes/", answerBytes)
		routes.HandleFunc("/echo", echo)
	}
	listener, err := listen(address)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: routes}
	if mode == "plain" {
		log.Fatal(server.Serve(listener))
	}
	curves, isKnown := groups[os.Args[5]]
	if !isKnown {
		log.Fatalf("there is no group %s", os.Args[5])
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, CurvePreferences: curves}
	// Without it, each client that goes away is a line.
	server.ErrorLog = log.New(io.Discard, "", 0)
	log.Fatal(server.ServeTLS(listener, os.Args[3], os.Args[4]))
}
