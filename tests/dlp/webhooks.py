"""Events as services post them to webhooks, full of ids, times and numbers, without anything to be found."""

import base64
import json

from negatives import integer
from values import HEX, UPPER, URL, WORD, of, uuid4

NOUNS = "invoice order ticket message commit deploy build incident review branch subscription page".split()


def moment(random):
    return (f"2026-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}T{random.randrange(24):02}:"
            f"{random.randrange(60):02}:{random.randrange(60):02}.{integer(random, 6)}Z")


def payment(random):
    amount = integer(random, 5)
    return {
        "id": f"evt_{of(random, WORD, 24)}", "object": "event", "api_version": "2026-03-25", "created": integer(random, 10),
        "livemode": True, "pending_webhooks": 2, "type": "charge.succeeded",
        "request": {"id": f"req_{of(random, WORD, 14)}", "idempotency_key": uuid4(random)},
        "data": {"object": {
            "id": f"ch_{of(random, WORD, 24)}", "amount": amount, "amount_captured": amount, "currency": "eur",
            "balance_transaction": f"txn_{of(random, WORD, 24)}", "customer": f"cus_{of(random, WORD, 14)}",
            "payment_intent": f"pi_{of(random, WORD, 24)}", "payment_method": f"card_{of(random, WORD, 24)}",
            "payment_method_details": {"card": {"brand": "visa", "exp_month": 8, "exp_year": 2029, "last4": str(integer(random, 4)),
                                                "fingerprint": of(random, WORD, 16), "network_transaction_id": str(integer(random, 15))}},
            "receipt_number": f"{integer(random, 4)}-{integer(random, 4)}", "risk_score": random.randrange(100),
        }},
    }


def push(random):
    commits = [{"id": of(random, HEX, 40), "tree_id": of(random, HEX, 40), "timestamp": moment(random), "distinct": True,
                "message": f"Update {random.choice(NOUNS)} {integer(random, 4)}", "added": [f"src/{of(random, HEX, 8)}.rs"]}
               for _ in range(random.randrange(1, 5))]
    return {
        "ref": f"refs/heads/{random.choice(NOUNS)}-{integer(random, 4)}", "before": of(random, HEX, 40), "after": commits[-1]["id"],
        "repository": {"id": integer(random, 9), "node_id": f"R_kgDO{of(random, URL, 8)}", "size": integer(random, 6),
                       "pushed_at": integer(random, 10), "stargazers_count": integer(random, 4)},
        "sender": {"id": integer(random, 8), "node_id": base64.b64encode(f"04:User{integer(random, 8)}".encode()).decode()},
        "commits": commits, "compare": f"https://git.example.com/compare/{of(random, HEX, 12)}...{of(random, HEX, 12)}",
    }


def chat(random):
    return {
        "team_id": f"T{of(random, UPPER, 10)}", "api_app_id": f"A{of(random, UPPER, 10)}", "event_id": f"Ev{of(random, UPPER, 10)}",
        "event_time": integer(random, 10), "event_context": f"4-{of(random, URL, 90)}",
        "event": {"type": "message", "user": f"U{of(random, UPPER, 10)}", "ts": f"{integer(random, 10)}.{integer(random, 6)}",
                  "thread_ts": f"{integer(random, 10)}.{integer(random, 6)}", "channel": f"C{of(random, UPPER, 10)}",
                  "client_msg_id": uuid4(random), "text": f"Is {random.choice(NOUNS)} {integer(random, 6)} done?"},
        "authorizations": [{"is_bot": True, "user_id": f"U{of(random, UPPER, 10)}"}],
    }


def shop(random):
    def line():
        return {"id": integer(random, 14), "product_id": integer(random, 13), "variant_id": integer(random, 14), "sku": of(random, UPPER, 10),
                "grams": integer(random, 3), "price": f"{integer(random, 2)}.{integer(random, 2)}", "quantity": random.randrange(1, 9)}

    return {
        "id": integer(random, 13), "admin_graphql_api_id": f"gid://shop/Order/{integer(random, 13)}", "app_id": integer(random, 7),
        "checkout_id": integer(random, 14), "checkout_token": None, "number": integer(random, 4), "order_number": integer(random, 5),
        "cart_token": None, "created_at": moment(random), "line_items": [line() for _ in range(random.randrange(1, 5))],
        "total_weight": integer(random, 4), "location_id": integer(random, 11),
        "shipping_address": {"latitude": random.uniform(-90, 90), "longitude": random.uniform(-180, 180), "country_code": "DE"},
    }


def gateway(random):
    return {
        "op": 0, "s": integer(random, 6), "t": "MESSAGE_CREATE", "d": {
            "id": str(integer(random, 19)), "channel_id": str(integer(random, 18)), "guild_id": str(integer(random, 18)),
            "nonce": str(integer(random, 19)), "timestamp": moment(random), "edited_timestamp": None, "tts": False,
            "author": {"id": str(integer(random, 18)), "avatar": of(random, HEX, 32), "discriminator": "0", "public_flags": 64},
            "attachments": [{"id": str(integer(random, 19)), "size": integer(random, 6), "filename": f"IMG_{integer(random, 4)}.png",
                             "height": 1080, "width": 1920}],
        },
    }


def telemetry(random):
    def sample():
        return {"name": random.choice(NOUNS), "value": random.random() * 10 ** random.randrange(-6, 6),
                "time_unix_nano": str(integer(random, 19)), "trace_id": of(random, HEX, 32), "span_id": of(random, HEX, 16)}

    return {"resource": {"host": f"node-{integer(random, 3)}", "pid": integer(random, 5), "version": "10.0.19045.3803",
                         "mac": ":".join(of(random, HEX, 2) for _ in range(6)), "boot_id": uuid4(random)},
            "samples": [sample() for _ in range(8)], "start": integer(random, 13), "window_ms": 60000,
            "position": [random.uniform(-180, 180), random.uniform(-90, 90), random.uniform(0, 4000)]}


def metrics(random):
    """Numbers of every length below names that say nothing."""
    points = [[integer(random, 13), f"{random.random() * 10 ** random.randrange(12):.{random.randrange(1, 12)}f}"] for _ in range(12)]
    return {"series": [{"metric": f"{random.choice(NOUNS)}_{unit}_total", "value": integer(random, random.randrange(6, 20)),
                        "labels": {"instance": f"10.0.{random.randrange(256)}.{random.randrange(256)}:9100", "shard": str(integer(random, 2))}}
                       for unit in ("bytes", "wei", "ticks", "rows")],
            "values": points, "histogram": [random.random() for _ in range(6)], "total": integer(random, 16),
            "counts": [integer(random, random.randrange(12, 20)) for _ in range(4)], "revision": f"{integer(random, 2)}.{integer(random, 3)}.{integer(random, 5)}.{integer(random, 4)}",
            "cursor": [integer(random, 16), of(random, UPPER, 16)], "ratio": f"{random.random():.16f}", "bounds": f"{random.random()}, {random.random()}"}


def delivery(random):
    return {"event": "delivered", "id": of(random, URL, 22), "timestamp": integer(random, 10) + random.random(),
            "message": {"headers": {"message-id": f"{integer(random, 14)}.{of(random, HEX, 16)}@mail.example.com"}, "size": integer(random, 5)},
            "sg_event_id": of(random, URL, 22), "sg_message_id": f"{of(random, URL, 22)}.filter{integer(random, 4)}p1las1-{integer(random, 5)}-{of(random, HEX.upper(), 8)}-{integer(random, 2)}.0",
            "storage": {"key": f"{of(random, URL, 60)}", "region": "eu"}, "delivery-status": {"code": 250, "attempt-no": 1, "session-seconds": random.random()}}


ALL = [payment, push, chat, shop, gateway, telemetry, metrics, delivery]


def events(random, size):
    """Events until their text is as long as `size` bytes."""
    length = 0
    while length < size:
        line = json.dumps(random.choice(ALL)(random))
        length += len(line) + 1
        yield line
