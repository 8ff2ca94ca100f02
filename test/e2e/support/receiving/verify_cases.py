"""Reads cases from standard input, one a line, and says of each whether the page's verify accepts it."""
import base64
import sys

from verify import verify

for line in sys.stdin:
    secret, webhook_id, timestamp, signature, body, now = line.rstrip("\n").split("\t")
    everything = {"webhook-id": webhook_id, "webhook-timestamp": timestamp, "webhook-signature": signature}
    headers = {name: value for name, value in everything.items() if value}
    try:
        verify(secret, headers, base64.b64decode(body), int(now))
        print("accepted")
    except ValueError:
        print("refused")
