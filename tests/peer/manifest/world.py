"""A real `serve` with TLS, and a proxy before it that sees every request and can answer some itself."""

import atexit
import http.client
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from started import end_all  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
CLI = os.path.join(BUILD, "src/better-compute/better-compute")
BCD = os.path.join(BUILD, "src/bcd/bcd")
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("BETTER_COMPUTE_", "BCD_", "XDG_CONFIG_HOME"))}
WELL_KNOWN = "/.well-known/better-compute"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, mode=0o600):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)


def make_certificate(folder, name):
    certificate, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-days", "1", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    return certificate, key


class Proxy:
    """Forwards to the API; keeps each request's method and path."""

    def __init__(self, target, certificate, key):
        self.target, self.context = target, ssl.create_default_context(cafile=certificate)
        self.seen, self.well_known, self.after_token = [], None, None
        self.refuse_token = self.refuse_revoke = False
        self.lose_answers = 0  # of mints: so many are forwarded, and what comes back isn't
        self.instead = 502, b"<html>Bad Gateway</html>"
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, text, headers = proxy.ask(self.command, self.path, body, self.headers)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = "https://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self, method, path, body, headers):
        self.seen.append("%s %s" % (method, path.split("?")[0]))
        if path == WELL_KNOWN and self.well_known:
            status, text, more = self.well_known
            return status, text.encode(), more
        if (method == "POST" and path == "/v1/join-tokens" and self.refuse_token) or (
                path.endswith("/revoke") and self.refuse_revoke):
            return 500, b'{"error":{"code":"INTERNAL","message":"not today"}}', {}
        status, text = self.forward(method, path, body, headers)
        if method == "POST" and path == "/v1/join-tokens":
            if self.after_token:
                self.after_token()
            if self.lose_answers:
                self.lose_answers -= 1
                return (*self.instead, {})
        return status, text, {"Content-Type": "application/json"}

    def forward(self, method, path, body, headers):
        connection = http.client.HTTPSConnection(self.target, timeout=30, context=self.context)
        kept = {name: headers[name] for name in ("Authorization", "Content-Type") if headers[name]}
        connection.request(method, path, body or None, kept)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    helm_program = None

    def __init__(self, folder, pool=True, gateway="127.0.0.1:0"):
        self.gateway_listen = gateway
        self.folder, self.serve, self.proxy = folder, None, None
        self.home, self.work = os.path.join(folder, "home"), os.path.join(folder, "work")
        self.key_file, self.log = os.path.join(folder, "admin.key"), os.path.join(folder, "serve.log")
        os.mkdir(self.work)
        self.ca, key = make_certificate(folder, "api")
        make_certificate(self.work, "other")
        subprocess.run([CLI, "serve", "--init", "--home", self.home, "--key-out", self.key_file], check=True, env=CLEAN,
                       capture_output=True)
        self.start(key)
        self.proxy = Proxy(self.api, self.ca, key)
        self.pins = json.loads(subprocess.run([CLI, "pki", "show", "--home", self.home, "-o", "json"], check=True, env=CLEAN,
                                              capture_output=True).stdout)
        self.tenant = self.call("POST", "/v1/tenants", {"name": "acme"})["id"]
        if pool:
            self.make_pool()

    def make_pool(self):
        self.site = self.call("POST", "/v1/sites", {"tenantId": self.tenant, "name": "dc1", "kind": "platform"})["id"]
        self.pool = self.call("POST", "/v1/pools", {
            "tenantId": self.tenant, "siteId": self.site, "name": "h100", "class": "metal-host", "gpuModel": "H100",
            "policy": {}})["id"]

    def start(self, key):
        ready = os.path.join(self.folder, "ready.json")
        with open(self.log, "ab") as log:
            self.serve = subprocess.Popen(
                [CLI, "serve", "--home", self.home, "--listen", "127.0.0.1:0", "--gateway-listen", self.gateway_listen,
                 "--tls-cert", self.ca, "--tls-key", key, "--ready-file", ready],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=CLEAN)
        end = time.monotonic() + 60
        while not os.path.exists(ready):
            assert self.serve.poll() is None and time.monotonic() < end, read(self.log)
            time.sleep(0.02)
        told = json.loads(read(ready))
        self.api, self.gateway = told["api"].split("//")[1], told["gateway"]

    def end(self):
        if self.proxy:
            self.proxy.end()
        if self.serve:
            end_all([self.serve])

    def call(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + read(self.key_file).strip(), "Content-Type": "application/json"}
        status, text = self.proxy.forward(method, path, json.dumps(body) if body is not None else None, headers)
        assert status == 200, "%s %s: %d %s" % (method, path, status, text)
        return json.loads(text)

    def tokens(self):
        return self.call("GET", "/v1/join-tokens")["items"]

    def document(self):
        return json.loads(self.proxy.forward("GET", WELL_KNOWN, None, {"Authorization": None, "Content-Type": None})[1])

    def environment(self):
        return dict(CLEAN, BETTER_COMPUTE_API=self.proxy.url, BETTER_COMPUTE_KEY_FILE=self.key_file,
                    BETTER_COMPUTE_CA_FILE=self.ca, HOME=self.folder)

    def manifest_begun(self, *words, stdout=subprocess.PIPE):
        return subprocess.Popen([CLI, "kubernetes", "manifest", *words], cwd=self.work, env=self.environment(), text=True,
                                stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def manifest(self, *words, code=0, env=None, stdout=subprocess.PIPE):
        done = subprocess.run([CLI, "kubernetes", "manifest", *words], cwd=self.work, env=dict(self.environment(), **(env or {})),
                              text=True, check=False, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == code, "%s: exit %d, not %d\n%s%s" % (" ".join(words), done.returncode, code, done.stdout,
                                                                       done.stderr)
        return done

    @classmethod
    def helm(cls):
        """Helm's engine, built once a run."""
        if not cls.helm_program:
            folder = tempfile.mkdtemp(prefix="bc-helm-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            go = subprocess.run([os.path.join(ROOT, "tests/peer/cluster/find-go"), "1.26.0"], check=True, capture_output=True,
                                text=True).stdout.strip()
            subprocess.run([go, "build", "-p", "2", "-o", os.path.join(folder, "helm"), "."], check=True,
                           cwd=os.path.join(HERE, "helm"),
                           env=dict(os.environ, GOTOOLCHAIN="local", GOWORK="off", CGO_ENABLED="0"))
            cls.helm_program = os.path.join(folder, "helm")
        return cls.helm_program
