// A small TLS terminator as one writes it in Go, to compare with: proxy LISTEN CERT KEY UNIXSOCKET.
package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"os"
)

type halfCloser interface{ CloseWrite() error }

func copyAll(to net.Conn, from net.Conn, done chan<- struct{}) {
	io.Copy(to, from)
	to.(halfCloser).CloseWrite()
	done <- struct{}{}
}

func serve(client net.Conn, socket string) {
	defer client.Close()
	if client.(*tls.Conn).Handshake() != nil {
		return
	}
	upstream, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer upstream.Close()
	done := make(chan struct{}, 2)
	go copyAll(upstream, client, done)
	go copyAll(client, upstream, done)
	<-done
	<-done
}

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	listener, err := tls.Listen("tcp", os.Args[1], config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(client, os.Args[4])
	}
}
