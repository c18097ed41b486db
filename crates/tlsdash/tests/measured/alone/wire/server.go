// A TLS server of Go's standard library: server ADDRESS CERTIFICATE KEY. It answers each head of a request with 5 bytes.
package main

import (
	"bufio"
	"crypto/tls"
	"log"
	"net"
	"os"
	"strings"
)

func serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for {
		mustClose := false
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
			mustClose = mustClose || strings.EqualFold(line, "connection: close\r\n")
		}
		if _, err := connection.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")); err != nil || mustClose {
			return
		}
	}
}

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := tls.Listen("tcp", os.Args[1], &tls.Config{
		Certificates:     []tls.Certificate{certificate},
		MinVersion:       tls.VersionTLS12,
		CurvePreferences: []tls.CurveID{tls.X25519},
	})
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection)
	}
}
