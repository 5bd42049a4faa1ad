"""Settings of a connection: files that people have, what kafka-python is given for them, and what is refused."""
import json
import ssl
import subprocess
import threading
import warnings
from base64 import b64decode, urlsafe_b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, strategies as st
from test_cli import one_line, run

from kafka_assign.clients import cluster, connection
from kafka_assign.clients.connection import SettingsError, checked_servers, client_settings, read_settings
from kafka_assign.snapshot import Groups

SECRET = "open-sesame"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin",
         "sasl.password": SECRET}


def certificate(folder, name, *extensions):
    """Make a certificate that vouches for itself, `name`.pem, its key, `name`.key, and a file of both, `name`.both."""
    usage = "keyUsage=critical,digitalSignature,keyCertSign"        # without it, new versions of Python refuse it
    options = [word for one in (usage, *extensions) for word in ("-addext", one)]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem", *options],
                   check=True, capture_output=True)
    (folder / f"{name}.both").write_text("".join((folder / f"{name}.{end}").read_text() for end in ("key", "pem")))


@contextmanager
def token_server():
    """A server of tokens: `answer` is what it sends next, or the code with which it refuses; `seen`: all requests, each
    as the login in its header (None = without), and its form."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            kind, _, login = self.headers.get("Authorization", "").partition(" ")
            server.seen.append((b64decode(login).decode() if kind == "Basic" else None, dict(parse_qsl(form))))
            if isinstance(server.answer, str):
                self.send_response(302)
                self.send_header("Location", server.answer)
            else:
                self.send_response(server.answer if isinstance(server.answer, int) else 200)
            body = server.answer if isinstance(server.answer, bytes) else json.dumps(server.answer).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        do_GET = do_POST

        def log_message(self, *_):
            pass
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.url, server.seen = f"http://127.0.0.1:{server.server_port}/token", []
        server.answer = {"access_token": "t-1", "expires_in": 3600}
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def unsecured(name):
    """A token without a signature that says who somebody is, which only brokers in tests believe."""
    parts = {"alg": "none"}, {"sub": name, "iat": 0, "exp": 4_000_000_000}
    return ".".join([urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts]) + "."


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("BOOTSTRAP_SERVERS", "COMMAND_CONFIG"):
        monkeypatch.delenv(f"KAFKA_ASSIGN_{name}", raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Certificates of a broker and of a client; the client's key once more, with a password."""
    made = tmp_path_factory.mktemp("certificates")
    certificate(made, "broker", "subjectAltName=DNS:broker")
    certificate(made, "client")
    subprocess.run(["openssl", "pkcs8", "-topk8", "-in", made / "client.key", "-passout", f"pass:{SECRET}",
                    "-out", made / "client.locked"], check=True, capture_output=True)
    (made / "locked.both").write_text((made / "client.locked").read_text() + (made / "client.pem").read_text())
    return made


def handshake(context, folder, name):
    """Connect to the broker under a name, in memory; the name in the certificate that the client shows, if any."""
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "client.pem")
    theirs.load_cert_chain(folder / "broker.both")
    theirs.verify_mode = ssl.CERT_OPTIONAL
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [context.wrap_bio(back, there, server_hostname=name), theirs.wrap_bio(there, back, server_side=True)]
    left = ends * 3
    while left:
        try:
            left.pop(0).do_handshake()
        except ssl.SSLWantReadError:
            pass
    shown = ends[1].getpeercert()
    return shown and dict(pair for part in shown["subject"] for pair in part)["commonName"]


# --- files that are read ---------------------------------------------------------------------------------------------

def plain(user, password, protocol="SASL_PLAINTEXT", mechanism="PLAIN"):
    """The keyword arguments of a login by name and password."""
    return {"security_protocol": protocol, "sasl_mechanism": mechanism, "sasl_plain_username": user,
            "sasl_plain_password": password}


def token(login="me:open-sesame", protocol="SASL_PLAINTEXT", extensions={}, **form):
    """The keyword arguments of a login by token: what the server of tokens sees, and what goes with the token."""
    return {"security_protocol": protocol, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": (
        login, {"grant_type": "client_credentials"} | form, extensions)}


TLS, JAAS = {"security_protocol": "SSL"}, "sasl.jaas.config=org.apache.kafka.common.security"
# Text -> keyword arguments; the name of the certificate that the client shows to the broker; {names} are replaced.
FILES = {
    "empty": ("", {"security_protocol": "PLAINTEXT"}),
    "comments only": ("# security.protocol=SSL\n! sasl.mechanism=PLAIN\n", {"security_protocol": "PLAINTEXT"}),
    "separators, escapes, a line that goes on": (
        " security.protocol : sasl_plaintext \nsasl.mechanism PLAIN\nsasl.username=\\u00e4\\\n    b\n"
        "sasl.password=first\nsasl.password = a\\=b\\:c\\\\ \n", plain("äb", "a=b:c\\")),
    "a comment that seems to go on": (
        "# one \\\nsecurity.protocol=SASL_PLAINTEXT\n! two \\\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p",
        plain("u", "p")),
    "librdkafka, PLAIN": (
        "metadata.broker.list=k:9092\nsecurity.protocol=sasl_plaintext\nsasl.mechanisms=PLAIN\nsasl.username=KEY\n"
        "sasl.password=a+b/c==\n", plain("KEY", "a+b/c==")),
    "librdkafka, SCRAM": (
        "bootstrap.servers=k:9092\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=u\n"
        "sasl.password=p\n", plain("u", "p", mechanism="SCRAM-SHA-256")),
    "a section head, as in Confluent's first steps": (
        "[default]\nbootstrap.servers=k\nsecurity.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\nsasl.username=KEY\n"
        "sasl.password=p\n\n[consumer]\ngroup.id=g\nauto.offset.reset=earliest\n", plain("KEY", "p", "SASL_SSL")),
    "Java, PLAIN, as Confluent Cloud shows it": (
        "# Required connection configs for Kafka producer, consumer, and admin\nbootstrap.servers=k.cloud:9092\n"
        f"security.protocol=SASL_SSL\n{JAAS}.plain.PlainLoginModule required username='KEY' password='a+b/c==';\n"
        "sasl.mechanism=PLAIN\nclient.dns.lookup=use_all_dns_ips\nsession.timeout.ms=45000\nacks=all\n",
        plain("KEY", "a+b/c==", "SASL_SSL")),
    "Java, PLAIN, on several lines": (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{JAAS}.plain.PlainLoginModule required \\\n"
        '    username="alice" \\\n    password="alice-secret";\n', plain("alice", "alice-secret")),
    "Java, SCRAM": (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n{JAAS}.scram.ScramLoginModule required "
        'username="u" password="p";', plain("u", "p", mechanism="SCRAM-SHA-512")),
    "Java, quotes and backslashes": (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{JAAS}.plain.PlainLoginModule REQUIRED "
        "username='it\\\\'s' password=\"a\\\\\"b\\\\\\\\c; d=e\" ;", plain("it's", 'a"b\\c; d=e')),
    "Java, without quotes": (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{JAAS}.plain.PlainLoginModule required "
        "username = u password=p-1 serviceName=kafka;", plain("u", "p-1")),
    "keys count before JAAS": (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=key\n{JAAS}.plain.PlainLoginModule "
        "required username=jaas password=p;", plain("key", "p")),
    "leftovers that mean nothing without TLS": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\n"
        "ssl.endpoint.identification.algorithm=\nssl.protocol=TLSv1.3\nssl.truststore.type=JKS\n", plain("u", "p")),
    "Java, a token": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url={token}\n"
        f"sasl.login.callback.handler.class=org.apache.kafka.X\n{JAAS}.oauthbearer.OAuthBearerLoginModule required \\\n"
        'clientId="me" clientSecret="open-sesame" scope="kafka read";', token(scope="kafka read")),
    "Java, a token, without JAAS": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url={token}\n"
        "sasl.oauthbearer.client.credentials.client.id=me\nsasl.oauthbearer.client.credentials.client.secret=a:b c\n"
        "sasl.oauthbearer.scope=k\n", token("me:a:b c", scope="k")),
    "Java, a token with extensions": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url={token}\n"
        f"{JAAS}.oauthbearer.OAuthBearerLoginModule required clientId=me clientSecret='open-sesame' "
        "extension_logicalCluster='lkc-1' extension_identityPoolId='pool-1';",
        token(extensions={"logicalCluster": "lkc-1", "identityPoolId": "pool-1"})),
    "librdkafka, a token": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
        "sasl.oauthbearer.client.id=me\nsasl.oauthbearer.client.secret=open-sesame\n"
        "sasl.oauthbearer.token.endpoint.url={token}\nsasl.oauthbearer.extensions=logicalCluster=lkc-1,pool=p\n",
        token(extensions={"logicalCluster": "lkc-1", "pool": "p"})),
    "TLS, the machine's certificates": ("security.protocol=SSL\n", TLS),
    "librdkafka, one to trust": ("security.protocol=ssl\nssl.ca.location={folder}/broker.pem\n", TLS, None),
    "librdkafka, a client's certificate": (
        "security.protocol=SSL\nssl.ca.location={folder}/broker.pem\nssl.certificate.location={folder}/client.pem\n"
        "ssl.key.location={folder}/client.key\n", TLS, "client"),
    "librdkafka, a key with a password": (
        "security.protocol=SSL\nssl.ca.location={folder}/broker.pem\nssl.certificate.location={folder}/client.pem\n"
        "ssl.key.location={folder}/client.locked\nssl.key.password=open-sesame\n", TLS, "client"),
    "one file for certificate and key": (
        "security.protocol=SSL\nssl.ca.location={folder}/broker.pem\nssl.certificate.location={folder}/client.both\n",
        TLS, "client"),
    "librdkafka, in the file": (
        "security.protocol=SSL\nssl.ca.pem={broker_pem}\nssl.certificate.pem={client_pem}\nssl.key.pem={client_key}\n",
        TLS, "client"),
    "librdkafka, half of it in the file": (
        "security.protocol=SSL\nssl.ca.location={folder}/broker.pem\nssl.certificate.location={folder}/client.pem\n"
        "ssl.key.pem={client_locked}\nssl.key.password=open-sesame\n", TLS, "client"),
    "Java, PEM files": (
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={folder}/broker.pem\n"
        "ssl.keystore.type=pem\nssl.keystore.location={folder}/locked.both\nssl.key.password=open-sesame\n",
        TLS, "client"),
    "Java, in the file, each on one line": (
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={broker_pem_line}\n"
        "ssl.keystore.type=PEM\nssl.keystore.certificate.chain={client_pem_line}\nssl.keystore.key={client_key_line}\n",
        TLS, "client"),
    "Java, in the file, lines that go on": (
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={broker_pem_on}\n"
        "ssl.keystore.type=PEM\nssl.keystore.certificate.chain={client_pem_on}\nssl.keystore.key={client_locked_on}\n"
        "ssl.key.password=open-sesame\n", TLS, "client"),
    "SCRAM in TLS": (
        "security.protocol=SASL_SSL\nssl.ca.location={folder}/broker.pem\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.username=u\nsasl.password=p\n", plain("u", "p", "SASL_SSL", "SCRAM-SHA-256"), None),
    "a token in TLS": (
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={folder}/broker.pem\n"
        f"sasl.mechanism=OAUTHBEARER\n{JAAS}.oauthbearer.OAuthBearerLoginModule required clientId=me "
        "clientSecret='open-sesame';\nsasl.oauthbearer.token.endpoint.url={token}\n", token(protocol="SASL_SSL"), None)}


def filled(text, folder, url="http://localhost/token"):
    """The text of a file with the paths, the address, and the PEM text of certificates and keys in three forms."""
    values = {"{folder}": str(folder), "{token}": url}
    for name in ("broker.pem", "client.pem", "client.key", "client.locked"):
        lines, short = (folder / name).read_text().split("\n"), name.replace(".", "_")
        values |= {f"{{{short}}}": "\\n".join(lines), f"{{{short}_line}}": " ".join(lines).strip(),
                   f"{{{short}_on}}": " \\\n    ".join(lines[:-1])}
    for name, value in values.items():
        text = text.replace(name, value)
    return text


@pytest.mark.needs("openssl")
@pytest.mark.filterwarnings("ignore:.* not used")
@pytest.mark.parametrize("name", FILES)
def test_files_that_people_have(name, folder, tmp_path):
    text, expected, *shown = FILES[name]
    file = tmp_path / "client.properties"
    with token_server() as server:
        file.write_text(filled(text, folder, server.url), encoding="latin-1")
        settings = read_settings(file)
        made = client_settings(settings)
        shows = repr(made) + str(made) + repr(settings)
        assert not any(one in shows for one in (SECRET, "a+b/c==", "a:b c", "PRIVATE"))
        context = made.pop("ssl_context", None)
        if provider := made.get("sasl_oauth_token_provider"):
            assert provider.token() == "t-1" and SECRET not in repr(vars(provider))
            made["sasl_oauth_token_provider"] = (*server.seen[0], provider.extensions())
    assert made == expected and (context is None) == (not expected["security_protocol"].endswith("SSL"))
    if shown:
        assert handshake(context, folder, "broker") == shown[0]
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(context, folder, "other")


@pytest.mark.needs("openssl")
@pytest.mark.parametrize(("value", "checked"), [
    ("", False), ("none", False), ("https", True), ("HTTPS", True), ("htps", True)])
def test_whether_the_name_of_the_broker_is_checked(value, checked, folder):
    made = client_settings({"security.protocol": "SSL", "ssl.ca.location": str(folder / "broker.pem"),
                            "ssl.endpoint.identification.algorithm": value})
    assert made["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    try:
        handshake(made["ssl_context"], folder, "other")
    except ssl.SSLCertVerificationError:
        assert checked
    else:
        assert not checked


def test_every_mechanism_of_the_client_is_read_or_refused_in_a_line():
    sasl = pytest.importorskip("kafka.net.sasl")
    read = []
    for name, mechanism in sasl.SASL_MECHANISMS.items():
        settings = LOGIN | {"sasl.mechanism": name, "sasl.oauthbearer.token.endpoint.url": "https://t",
                            "sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": SECRET}
        try:
            mechanism(**client_settings(settings))
            read.append(name)
        except SettingsError as error:
            assert f"(got '{name}')" in str(error) and "kafka-consumer-groups.sh" in str(error)
    assert sorted(read) == ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


# --- files that are refused ------------------------------------------------------------------------------------------

KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true principal='kafka@EXAMPLE.ORG';"
JKS = {"security.protocol": "SSL", "ssl.truststore.location": "/etc/a.jks", "ssl.truststore.password": SECRET}
PKCS12 = {"security.protocol": "SSL", "ssl.keystore.location": "a b.p12", "ssl.keystore.type": "PKCS12",
          "ssl.keystore.password": SECRET}
BEARER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT = BEARER | {"sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": SECRET}
WRONG = [
    ({"security.protocol": "SASL_SSL", "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": KRB5},
     "(got no sasl.mechanism, which means GSSAPI); with another one, let kafka-consumer-groups.sh --describe"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": KRB5}, "(got 'GSSAPI'); "),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM", "sasl.client.callback.handler.class": "a.B",
      "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}, "(got 'AWS_MSK_IAM'); with"),
    (JKS, "ssl.truststore.type must be PEM (got 'JKS'); convert it: keytool -importkeystore -srckeystore '/etc/a.j"),
    (JKS | {"ssl.truststore.type": "jks"}, "ssl.truststore.type must be PEM (got 'jks'); convert it"),
    (PKCS12, "ssl.keystore.type must be PEM (got 'PKCS12'); convert it: keytool -importkeystore -srckeystore 'a b.p"),
    (LOGIN | {"sasl.password": "", "sasl.jaas.config": f'password="{SECRET}"'}, "sasl.jaas.config must have the form"),
    (LOGIN | {"sasl.password": "", "sasl.jaas.config": f'a.B required password="{SECRET}'}, "must have the form"),
    (LOGIN | {"sasl.password": "", "sasl.jaas.config": f"a.B required pasword={SECRET};"}, "got no sasl.password"),
    (LOGIN | {"security.protocol": "SASL"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL (got 'SASL')"),
    (LOGIN | {"security.protocol": "SSL"}, "sasl.mechanism must come with a security.protocol that has SASL (got SSL)"),
    (LOGIN | {"ssl.ca.location": "ca.pem"}, "ssl.ca.location must come with a security.protocol that has SSL"),
    (LOGIN | {"ssl.truststore.location": "ca.pem"}, "ssl.truststore.location must come with a security.protocol"),
    (LOGIN | {"sasl.mechanism": "PLAINE"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (got"),
    (LOGIN | {"sasl.password": ""}, "PLAIN must come with sasl.username, sasl.password, or with a sasl.jaas.config"),
    (LOGIN | {"sasl.password": "", "sasl.pasword": SECRET}, "got no sasl.password"),
    (LOGIN | {"sasl.mechanism": f'PLAIN password="{SECRET}"'}, "(got ***)"),
    (LOGIN | {"security.protocol": f"SASL_SSL password={SECRET}"}, "(got ***)"),
    (BEARER, "OAUTHBEARER must come with sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id, "),
    (BEARER | {URL: "https://t", "sasl.jaas.config": f"a.B required clientSecret='{SECRET}';"}, "client.id)"),
    (CLIENT | {URL: "http://idp.example.org/token"}, "must begin with https:// (got 'http://idp.example.org/token')"),
    (CLIENT | {URL: "http://localhost.example.org/"}, "must begin with https:// (got 'http://localhost.example.org/')"),
    (CLIENT | {URL: f"http://me:{SECRET}@idp/token"}, "must begin with https:// (got ***)"),
    (CLIENT | {URL: "file:///etc/token"}, "must begin with https:// (got 'file:///etc/token')"),
    ({"security.protocol": "SSL", "ssl.ca.location": "no such.pem"}, "got 'no such.pem': No such file"),
    ({"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": __file__},
     "ssl.truststore.location must name PEM files that can be read"),
    ({"security.protocol": "SSL", "ssl.key.pem": f"-----BEGIN PRIVATE KEY----- {SECRET}"}, "ssl.key.pem must name PEM"),
    ({"security.protocol": "SSL", "ssl.key.location": f"-----BEGIN PRIVATE KEY----- {SECRET}"}, "(got ***: "),
    ({"security.protocol": "SSL", "ssl.key.location": __file__}, "ssl.key.location must name PEM files")]


def written(settings, folder):
    """A properties file of these settings."""
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


@pytest.mark.parametrize(("settings", "words"), WRONG, ids=range(len(WRONG)))
def test_wrong_settings_are_one_line_without_the_password(settings, words, tmp_path):
    pytest.importorskip("kafka")
    file = written(settings, tmp_path)
    with pytest.raises(SettingsError) as error:
        client_settings(read_settings(file))
    assert words in str(error.value) and SECRET not in str(error.value) and one_line(f"{error.value}\n")
    done = run(["capture", "--bootstrap-server", "127.0.0.1:9", "--command-config", str(file)])
    assert done.code == 3 and words in done.err and SECRET not in done.err and one_line(done.err)


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("password", [None, "", "wrong"])
def test_a_key_with_another_password(password, folder, capfd):
    """Nothing is asked on the terminal."""
    settings = {"security.protocol": "SSL", "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(folder / "locked.both")}
    with pytest.raises(SettingsError, match="^ssl.keystore.location must name PEM .* ssl.key.password of a key that"):
        client_settings(settings | ({} if password is None else {"ssl.key.password": password}))
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_not_there(tmp_path):
    done = run(["capture", "--bootstrap-server", "127.0.0.1:9", "--command-config", str(tmp_path / "no")])
    assert (done.code, one_line(done.err)) == (3, True) and "No such file" in done.err


def test_an_escape_that_is_none(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.password=\\u12 {SECRET}\n")
    with pytest.raises(SettingsError, match="four hexadecimal digits$"):
        read_settings(file)


# --- keys that are not used ------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("more", "words"), [
    ({"group.id": "g", "request.timeout.ms": "3"}, "2 settings not used: group.id, request.timeout.ms"),
    ({"acks": "all"}, "1 setting not used"), ({"sasl.pasword": SECRET}, "1 setting not used: sasl.pasword"),
    ({"open": "sesame", "group.id": "g"}, "2 settings not used: group.id"), ({"open.sesame": ""}, "1 setting not used"),
    ({f"ssl.{SECRET}": "a"}, "1 setting not used"),
    ({f"a.{letter}": "1" for letter in "bcdefghijk"}, "a.b, a.c, a.d, a.e, a.f, a.g, a.h, a.i and 2 more")])
def test_other_keys_get_one_warning(more, words, tmp_path):
    file = written(LOGIN | more, tmp_path)
    with pytest.warns(UserWarning) as found:
        client_settings(read_settings(file))
    [text] = [str(one.message) for one in found]
    assert text.endswith(words) and SECRET not in text and "sesame" not in text


def test_the_program_says_in_a_line_what_is_not_used(monkeypatch, tmp_path):
    file = written(LOGIN | {"acks": "all", "group.id": "g"}, tmp_path)

    def captured(server, groups, settings, **more):
        warnings.warn("of a library", DeprecationWarning)
        assert client_settings(settings)
        return Groups({})
    monkeypatch.setattr(cluster, "capture", captured)
    for _ in range(2):
        done = run(f"capture --bootstrap-server k --command-config {file}")
        assert (done.code, done.err) == (0, "2 settings not used: group.id\n")


@given(st.dictionaries(st.text(), st.text()))
def test_any_settings_are_read_or_refused_in_a_line(more):
    with warnings.catch_warnings(record=True) as found:
        try:
            assert client_settings(LOGIN | more).keys() >= {"security_protocol"}
        except SettingsError as error:
            assert one_line(f"{error}\n")
    assert all(one_line(f"{one.message}\n") for one in found)


# --- tokens ----------------------------------------------------------------------------------------------------------

def provider(server):
    """What kafka-python asks for tokens of this server."""
    pytest.importorskip("kafka")
    return client_settings(CLIENT | {URL: server.url})["sasl_oauth_token_provider"]


def test_a_token_is_kept_for_half_of_its_lifetime(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(connection.time, "monotonic", lambda: now[0])
    with token_server() as server:
        asked = provider(server)
        assert [asked.token(), asked.token()] == ["t-1"] * 2 and len(server.seen) == 1
        server.answer = {"access_token": "t-2"}
        now[0] += 1799
        assert asked.token() == "t-1"
        now[0] += 2
        assert [asked.token(), asked.token()] == ["t-2"] * 2 and len(server.seen) == 3, "nobody knows how long"


@pytest.mark.parametrize(("answer", "words"), [
    (401, "HTTP 401"), (503, "HTTP 503"), (b"<html>open-sesame", "JSONDecodeError"), ({"error": SECRET}, "KeyError"),
    ([SECRET], "TypeError"), ({"access_token": "t", "expires_in": SECRET}, "ValueError")], ids=str)
def test_a_server_that_gives_no_token(answer, words):
    with token_server() as server:
        server.answer = answer
        with pytest.raises(SettingsError) as error:
            provider(server).token()
    assert str(error.value) == f"{URL} must answer with a token (got {words})"
    with pytest.raises(SettingsError, match=r"\(got ConnectionRefusedError\)$"):
        provider(server).token()


def test_a_redirect_gets_no_login():
    with token_server() as server, token_server() as other:
        server.answer = other.url
        provider(server).token()
    assert [login for login, _ in server.seen + other.seen] == [f"me:{SECRET}", None]


# --- addresses, and where they come from -----------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "servers"), [
    ("localhost", ["localhost:9092"]), ("h1, h2:9093 ", ["h1:9092", "h2:9093"]), ("[::1]", ["[::1]:9092"]),
    ("[fe80::1]:9", ["[fe80::1]:9"]), ("SASL_SSL://k.cloud:9092", ["k.cloud:9092"])])
def test_addresses(text, servers):
    assert checked_servers(text) == servers


@pytest.mark.parametrize("text", ["", "k:", ":9092", "k:0", "k:65536", "k:+9", "k:٩", "http://k:9", "::1", "k,,j",
                                  "a b"])
def test_what_is_no_address(text):
    with pytest.raises(SettingsError, match="must have the form HOST:PORT"):
        checked_servers(text)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the program asks `capture` for: the address, and the user that logs in; and two files of settings."""
    found = []

    def captured(server, groups, settings, **more):
        found.append((server, settings.get("sasl.username")))
        return Groups({})
    monkeypatch.setattr(cluster, "capture", captured)
    for name, more in ("with", {"bootstrap.servers": "java:9093"}), ("rdkafka", {"metadata.broker.list": "rd"}), (
            "without", {}):
        written(LOGIN | more | {"sasl.username": name}, tmp_path).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return found


SERVER, CONFIG = {"KAFKA_ASSIGN_BOOTSTRAP_SERVERS": "env"}, {"KAFKA_ASSIGN_COMMAND_CONFIG": "without"}


@pytest.mark.parametrize(("line", "variables", "expected"), [
    ("--bootstrap-server k", {}, ("k", None)), ("--command-config with", {}, ("java:9093", "with")),
    ("--command-config rdkafka", {}, ("rd", "rdkafka")),
    ("--command-config with --bootstrap-server k", {}, ("k", "with")),
    ("", SERVER, ("env", None)), ("", SERVER | CONFIG, ("env", "without")),
    ("", {"KAFKA_ASSIGN_COMMAND_CONFIG": "with"}, ("java:9093", "with")),
    ("--bootstrap-server k", SERVER | CONFIG, ("k", "without")),
    ("--command-config rdkafka", CONFIG, ("rd", "rdkafka")),
    ("--bootstrap-server k", {"KAFKA_ASSIGN_BOOTSTRAP_SERVERS": "", "KAFKA_ASSIGN_COMMAND_CONFIG": ""}, ("k", None))])
def test_where_the_address_and_the_settings_come_from(line, variables, expected, asked, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for command in ("capture", "compare -s range"):
        assert run(f"{command} {line}").err == ""
    assert asked == [expected] * 2


@pytest.mark.parametrize("variables", [{}, {"KAFKA_ASSIGN_BOOTSTRAP_SERVERS": ""}, CONFIG])
def test_no_address_is_a_line(variables, asked, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for command in ("capture", "capture --command-config without", "rank", "compare"):
        done = run(command)
        assert done.code == 2 and one_line(done.err) and not asked and (
            ", bootstrap.servers in --command-config" in done.err)


def test_files_count_before_the_environment(asked, monkeypatch, tmp_path):
    for name, value in (SERVER | {"KAFKA_ASSIGN_COMMAND_CONFIG": "nowhere"}).items():
        monkeypatch.setenv(name, value)
    assert run("assign nothing.json -s range").err.startswith("kafka-assign: nothing.json: ")
    for line in ("compare --demo", "compare nothing.json", "rank nothing.json"):
        done = run(line)
        assert done.code == (0 if "demo" in line else 3) and "nowhere" not in done.err and not asked
    assert run("compare --demo --bootstrap-server k").code == 2


def test_help_names_the_environment():
    for command in ("capture", "compare", "rank"):
        text = run(f"{command} --help").out
        assert "KAFKA_ASSIGN_BOOTSTRAP_SERVERS" in text and "KAFKA_ASSIGN_COMMAND_CONFIG" in text
