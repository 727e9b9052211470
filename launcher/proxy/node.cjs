// Loaded by Node before a program inside, by NODE_OPTIONS: what it sends by http, https and fetch goes through the proxy.
//
// Node 22.21 and 24.5 and later read HTTP_PROXY and its like by themselves, and nothing is done here. Before, agents of http and
// https know no proxy, nor does fetch. Both get their connections from one function, and ours asks the proxy for a tunnel.
// Nothing is loaded until a program loads http or https, or calls fetch: to others this costs a file that is read.
'use strict';

const LONGEST_ANSWER = 16384;
const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

function knowsProxies() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
}

// Where to: the proxy for a host, or nothing for one that is reached straight.

function valueOf(name) {
  return process.env[name.toLowerCase()] || process.env[name.toUpperCase()] || '';
}

function isDirect(host, port) {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '').replace(/\.$/, '');
  for (const entry of valueOf('no_proxy').toLowerCase().split(/[\s,]+/)) {
    if (!entry) continue;
    if (entry === '*' || entry.replace(/^\[|\]$/g, '') === name) return true;
    const [, rule, only] = /^([^:]+|\[.*\])(?::(\d+))?$/.exec(entry) || [];
    if (!rule || (only && Number(only) !== Number(port))) continue;
    const suffix = rule.replace(/^\*?\./, '').replace(/^\[|\]$/g, '');
    if (name === suffix || name.endsWith('.' + suffix)) return true;
  }
  return false;
}

function proxyFor(scheme, host, port) {
  const said = valueOf(scheme + '_proxy') || valueOf('all_proxy');
  if (!said || isDirect(host, port)) return null;
  try {
    const url = new URL(said);
    return url.protocol === 'http:' ? { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 80) } : null;
  } catch {
    return null;
  }
}

// A tunnel: done(error) or done(null, socket).

function tunnel(proxy, host, port, done) {
  const where = host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
  const socket = require('net').connect(proxy);
  let answer = Buffer.alloc(0);
  function end(error) {
    socket.removeListener('data', hear).removeListener('error', end).removeListener('close', lose);
    if (error) socket.on('error', () => {}).destroy();
    done(error || null, error ? undefined : socket);
  }
  function lose() {
    end(refused(answer, where, 'the proxy ended the connection'));
  }
  function hear(piece) {
    answer = Buffer.concat([answer, piece]);
    const at = answer.indexOf('\r\n\r\n');
    if (at < 0) return answer.length > LONGEST_ANSWER ? lose() : undefined;
    if (!/^HTTP\/1\.[01] 2/.test(answer.toString('latin1', 0, 12))) return socket.once('end', lose);
    socket.pause();
    const rest = answer.subarray(at + 4);
    end(null);
    if (rest.length) socket.unshift(rest);
  }
  socket.on('data', hear).on('error', end).on('close', lose);
  socket.write(`CONNECT ${where} HTTP/1.1\r\nHost: ${where}\r\n\r\n`);
}

function refused(answer, where, otherwise) {
  const [head, body] = answer.toString('utf8').split('\r\n\r\n', 2);
  const status = /^HTTP\/1\.[01] (\d+)/.exec(head);
  const error = new Error((status && (body || head.split('\r\n')[0]).trim()) || `${where}: ${otherwise}`);
  return Object.assign(error, { code: status && status[1] === '403' ? 'EACCES' : 'ECONNREFUSED', syscall: 'connect' });
}

function tunnelTls(proxy, host, port, options, done) {
  tunnel(proxy, host, port, (error, socket) => {
    if (error) return done(error);
    const secure = require('tls').connect({ ...options, socket, host: undefined, port: undefined, path: undefined });
    const fail = (problem) => done(problem);
    secure.once('error', fail).once('secureConnect', () => done(null, secure.removeListener('error', fail)));
  });
}

// http and https: every agent, the global ones and a program's own. A subclass with a way of its own keeps it.

function patchAgent(module, scheme) {
  const prototype = module.Agent.prototype;
  const direct = prototype.createConnection;
  prototype.createConnection = function createConnection(...words) {
    const [options, done] = words;
    const asked = options && typeof options === 'object' && typeof done === 'function' && !options.socketPath && !options.socket;
    const host = asked ? String(options.host || 'localhost') : '';
    const port = asked ? Number(options.port) || (scheme === 'https' ? 443 : 80) : 0;
    const proxy = asked ? proxyFor(scheme, host, port) : null;
    if (!proxy || (proxy.host === host && proxy.port === port)) return direct.apply(this, words);
    if (scheme === 'https') tunnelTls(proxy, host, port, secureOptions(options, host), done);
    else tunnel(proxy, host, port, done);
    return undefined;
  };
}

function secureOptions(options, host) {
  const { timeout, lookup, ...kept } = options;
  const name = options.servername || host;
  return { ...kept, servername: require('net').isIP(name) ? '' : name };
}

// fetch: its dispatcher's class is Node's own and can be had only from the one that is there once fetch was loaded.

function install() {
  const before = globalThis[DISPATCHER];
  if (!before) void globalThis.Headers; // loads it
  const current = globalThis[DISPATCHER];
  if (!current || current.constructor.name !== 'Agent') return; // a program's own
  globalThis[DISPATCHER] = new current.constructor({ connect });
}

function connect(options, done) {
  const host = options.hostname.replace(/^\[|\]$/g, '');
  const scheme = options.protocol === 'https:' ? 'https' : 'http';
  const port = Number(options.port) || (scheme === 'https' ? 443 : 80);
  const proxy = proxyFor(scheme, host, port);
  const net = require('net');
  const name = options.servername || host;
  const secure = { ALPNProtocols: ['http/1.1'], servername: net.isIP(name) ? '' : name };
  const ready = (error, socket) => (error ? done(error) : done(null, socket.setNoDelay(true)));
  if (proxy && scheme === 'https') return tunnelTls(proxy, host, port, secure, ready);
  if (proxy) return tunnel(proxy, host, port, ready);
  const socket = scheme === 'https' ? require('tls').connect({ ...secure, host, port }) : net.connect({ host, port });
  const fail = (error) => ready(error);
  socket.once('error', fail).once(scheme === 'https' ? 'secureConnect' : 'connect', () => ready(null, socket.removeListener('error', fail)));
}

function patchFetch() {
  const fetch = globalThis.fetch;
  if (typeof fetch !== 'function') return;
  let installed = false;
  const value = function (input, init = undefined) {
    if (!installed) install();
    installed = true;
    return fetch(input, init);
  };
  Object.defineProperty(value, 'name', { value: 'fetch' });
  Object.defineProperty(globalThis, 'fetch', { ...Object.getOwnPropertyDescriptor(globalThis, 'fetch'), value });
}

// On first use: `http` and `https` are loaded by most programs late or never.

function patchWhenLoaded() {
  const Module = require('module');
  const load = Module._load;
  const waiting = new Set(['http', 'https']);
  Module._load = function (request, ...words) {
    const loaded = load.call(this, request, ...words);
    const name = String(request).replace(/^node:/, '');
    if (waiting.delete(name)) patchAgent(loaded, name);
    if (!waiting.size) Module._load = load;
    return loaded;
  };
}

if (!knowsProxies()) {
  patchFetch();
  patchWhenLoaded();
}
