"""Secrets of every kind, made up for tests, none of which opens anything, and the words around them."""

from dataclasses import dataclass

RANDOM = "AbC9dEf0GhI1jKlM2nOpQ3rStU4vWx5YzA6bCdE7fGh8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A text, the secret in it, and the kind that its marker has to name."""

    text: str
    secret: str
    kind: str


def _pem(kind: str) -> str:
    lines = "\n".join("MIIEowIBAAKCAQEA0Z3VS5JJcds3xfnygWyF8PbnGy0AHB7MhgHcTz6sE2I2yPBq" for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\nq1W2e3R4==\n-----END {kind}PRIVATE KEY-----"


def _plant(template: str, secret: str, kind: str) -> Planted:
    return Planted(text=template.format(secret), secret=secret, kind=kind)


_JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
_PUTTY = (
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAIEq1W2e3R4t5\n"
    "Private-MAC: 0a1b2c3d4e5f60718293a4b5c6d7e8f9"
)

PLANTED = (
    _plant("The deploy key is this one:\n{}\nKeep it.", _pem("RSA "), "private key"),
    _plant("key.pem says {}", _pem(""), "private key"),
    _plant('{{"private_key": "{}"}}', _pem("OPENSSH ").replace("\n", "\\n"), "private key"),
    _plant("It broke off here: {}", _pem("EC ")[:200], "private key"),
    _plant("From the old laptop: {}", _PUTTY, "private key"),
    _plant("Use {} for the bucket.", "AKIAQ3EGTXPL5SMN7VWZ", "key"),
    _plant("aws_secret_access_key = {}", "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", "key"),
    _plant("export OPENAI_API_KEY={}", f"sk-proj-{RANDOM}", "key"),
    _plant("The other one: {}.", f"sk-ant-api03-{RANDOM}-x_yAA", "key"),
    _plant("maps: {}", f"AIza{RANDOM[:35]}", "key"),
    _plant("Payments go by {} now.", f"sk_live_{RANDOM[:24]}", "key"),
    _plant("X-Api-Key: {}", "1234abcd5678efgh", "key"),
    _plant("the api key is {}, don't lose it", "q7w8e9r0t1y2", "key"),
    _plant("client_secret: '{}'", "a1b2c3d4e5f6a7b8", "key"),
    _plant("Found this one on a note: {}", "Zq8r2TzLdKe+wJalrXUtn9FEMI3K7MDENG4bPxRf", "key"),
    _plant("git clone with {} works", f"ghp_{RANDOM[:36]}", "token"),
    _plant("fine-grained: {}", f"github_pat_11ABCDEFG0{RANDOM}", "token"),
    _plant("CI has {} for that.", f"glpat-{RANDOM[:20]}", "token"),
    _plant("slack bot: {}", f"xoxb-123456789012-1234567890123-{RANDOM[:24]}", "token"),
    _plant("Your session: {}.", _JWT, "token"),
    _plant("Authorization: Bearer {}", "abcdef1234567890abcdef", "token"),
    _plant("curl -H 'Authorization: Basic {}' x", "dXNlcjpwYXNzd29yZDE=", "token"),
    _plant("//registry.npmjs.org/:_authToken={}", f"npm_{RANDOM[:36]}", "token"),
    _plant("token={}", "550e8400-e29b-41d4-a716-446655440000", "token"),
    _plant("Engram itself: {}", f"engram_{RANDOM[:43]}", "token"),
    _plant("my password is {}.", "hunter2", "password"),
    _plant("The wifi password is {}", "Sommer2024!", "password"),
    _plant("password: {}", "xY7pq!d", "password"),
    _plant("das Passwort lautet {}", "geheim123", "password"),
    _plant("Merk dir, dass mein Passwort {} ist.", "Sonne2024x", "password"),
    _plant("Mein WLAN Passwort {} ist neu.", "Sonne2024x", "password"),
    _plant("Merk dir bitte, dass {} mein WLAN Passwort ist.", "Sonne2024", "password"),
    _plant("Remember that {} is my password.", "Sonne2024x", "password"),
    _plant("I use {} as my wifi password, always.", "Sonne2024x", "password"),
    _plant("{} ist unser Kennwort für den Drucker", "Tinte!77", "password"),
    _plant("DB_PASSWORD={}", "letmein", "password"),
    _plant('{{"user": "mia", "password": "{}"}}', "correct-horse", "password"),
    _plant("my PIN is {}", "4711", "password"),
    _plant("DATABASE_URL=postgres://app:{}@db.internal:5432/x", "S3cr3t!pa@ss", "password"),
    _plant("Server=x;User Id=sa;Password={};Database=1", "P@ssw0rd", "password"),
    _plant("redis://:{}@localhost:6379/0", "tidewatch", "password"),
    _plant("mysql -u root -p{} tides", "S3cret", "password"),
    _plant("curl -u bob:{} https://example.org", "pa55", "password"),
    _plant("pay with {} please", "4111 1111 1111 1111", "card number"),
    _plant("card {}, expires 12/27", "5555555555554444", "card number"),
    _plant("Amex {}", "3782 822463 10005", "card number"),
    _plant("in 2024 it was {} still", "6011-1111-1111-1117", "card number"),
)

# What looks a little like a secret and is none.
ORDINARY = (
    "Commit 3f1c2e4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d0e fixed the login.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "The row 550e8400-e29b-41d4-a716-446655440000 is the one that hangs.",
    "It is ep_3f1c2e4a5b6c and contradicts bl_0a1b2c3d4e5f since cy_9f8e7d6c5b4a.",
    "The password is stored with Argon2 and never shown.",
    "Password: at least 12 characters, one of them a digit.",
    "Keepass2 is a password manager, 1Password is the other; SHA-256 is for the password.",
    "In 2024 Anna1 forgot the password, which is why OAuth2 is our password now.",
    "The password form2 is ugly, und das Passwort war weg.",
    "The token is refreshed every 90 minutes; max_tokens=4096 and prompt_tokens: 1234.",
    "def login(*, user: str, password: str | None = None, token: Token) -> Session:",
    "password = getpass(); client = Client(password=password, api_key=settings.API_KEY)",
    'api_key=os.environ["OPENAI_API_KEY"], secret = request.headers["x-secret"]',
    "Authorization: Bearer <token>, or Basic authentication behind the proxy.",
    "password: ${DB_PASSWORD}, token: {{ vault.token }}, secret: ****",
    "The order 4929 1234 5678 9012 is late, ask for 1234567890123456.",  # no card passes with these digits
    "Call +49 30 1234 5678 between 2024-01-01 and 2026-12-31, at 1769774400000.",
    "See https://docs.example.org/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit#gid=0",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl mia@harbour",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "Mount -p8080:80 and http://localhost:8000/api/v1/episodes?limit=10 answers.",
    "memory/consolidation/rebuild/TestOfSomethingVeryLong2_AndMore/leavings.py:120",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "Turn the key, then pin the note: the secret is patience.",
    "The secret is out: OAuth2, SHA-256 and base64-encoded tokens of v2.1.",
    "class TokenBucketThrottlingRateLimiterForApiKeys2(BaseThrottle): ...",
)
