// A server as one writes it with Node's standard library.
//
//   node server.js plain LISTEN WORKERS                            answers over HTTP
//   node server.js native LISTEN WORKERS CERT KEY CIPHERS GROUP    answers over HTTPS
//
// LISTEN is HOST:PORT or unix:PATH. GET /bytes/N answers N bytes, POST /echo the body of the request.
'use strict';
const cluster = require('node:cluster');
const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');

const [mode, listen, workers, cert, key, ciphers, group] = process.argv.slice(2);
const BACKLOG = 4096;
const BYTES_MAX = 1 << 30;
const PATTERN = Buffer.alloc(64 * 1024, 'abcdefghijklmnopqrstuvwxyz');

function answerBytes(bytes, response) {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': bytes });
  if (bytes <= PATTERN.length) {
    response.end(PATTERN.subarray(0, bytes));
    return;
  }
  let left = bytes;
  const writeMore = () => {
    while (left > 0) {
      const part = PATTERN.subarray(0, Math.min(left, PATTERN.length));
      left -= part.length;
      if (!response.write(part) && left > 0) {
        response.once('drain', writeMore);
        return;
      }
    }
    response.end();
  };
  writeMore();
}

function answer(request, response) {
  if (request.method === 'POST' && request.url === '/echo') {
    const length = request.headers['content-length'];
    response.writeHead(200, length === undefined ? {} : { 'Content-Length': length });
    request.pipe(response);
    return;
  }
  const bytes = /^\/bytes\/(\d+)$/.exec(request.url);
  if (request.method === 'GET' && bytes && Number(bytes[1]) <= BYTES_MAX) {
    answerBytes(Number(bytes[1]), response);
    return;
  }
  response.writeHead(404).end();
}

function server() {
  const limits = { keepAliveTimeout: 600_000, requestTimeout: 0, headersTimeout: 0 };
  if (mode === 'plain') {
    return http.createServer(limits, answer);
  }
  const tls = {
    cert: fs.readFileSync(cert),
    key: fs.readFileSync(key),
    ciphers,
    ecdhCurve: group,
    // Workers share them, so that a session resumes with each.
    ticketKeys: Buffer.from(process.env.TICKET_KEYS, 'hex'),
  };
  return https.createServer({ ...limits, ...tls }, answer);
}

if (cluster.isPrimary) {
  const TICKET_KEYS = crypto.randomBytes(48).toString('hex');
  for (let worker = 0; worker < Number(workers); worker += 1) {
    cluster.fork({ TICKET_KEYS });
  }
  // A worker that cannot start ends all.
  cluster.on('exit', (_worker, code) => process.exit(code || 1));
} else if (listen.startsWith('unix:')) {
  // A proxy before it may run as another user.
  server().listen({ path: listen.slice('unix:'.length), backlog: BACKLOG, writableAll: true });
} else {
  const [host, port] = listen.split(':');
  server().listen({ host, port: Number(port), backlog: BACKLOG });
}
