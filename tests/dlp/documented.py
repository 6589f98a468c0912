"""Examples of RFCs: what they call credentials and addresses, and what they do not."""

JWT = (
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

# (where, entity, text, value)
POSITIVE = [
    ("RFC 6749, 4.1.4", "secret/access_token", '{"access_token":"2YotnFZFEjr1zCsicMWpAA","token_type":"example"}', "2YotnFZFEjr1zCsicMWpAA"),
    ("RFC 6749, 5.1", "secret/refresh_token", '"expires_in":3600,\n"refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA"', "tGzv3JOkF0XG5Qx2TlKWIA"),
    ("RFC 6749, 2.3.1", "secret/client_secret", "client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw", "7Fjfp0ZBr1KtDRbnfVdmIw"),
    ("RFC 6749, 4.1.3", "secret/basic", "Authorization: Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW", "czZCaGRSa3F0MzpnWDFmQmF0M2JW"),
    ("RFC 6749, 4.3.2", "secret/password", "grant_type=password&username=johndoe&password=A3ddj3w", "A3ddj3w"),
    ("RFC 6750, 2.1", "secret/bearer", "Authorization: Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM"),
    ("RFC 6750, 2.3", "secret/bearer", "GET /resource?access_token=mF_9.B5f-4.1JqM HTTP/1.1", "mF_9.B5f-4.1JqM"),
    ("RFC 7519, 3.1", "secret/jwt", JWT, JWT),
    ("RFC 7617, 2", "secret/basic", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
    ("RFC 7617, 2.1", "secret/basic", "Authorization: Basic dGVzdDoxMjPCow==", "dGVzdDoxMjPCow=="),
    ("RFC 8693, 2.3", "secret/access_token", "subject_token=accVkjcJyb4BWCxGsndESCJQbdFMogUC5PbRDqceLTC&scope=x", "accVkjcJyb4BWCxGsndESCJQbdFMogUC5PbRDqceLTC"),
    ("RFC 3966, 6", "PHONE_NUMBER", "tel:+1-201-555-0123", "+1-201-555-0123"),
    ("RFC 6350, 8", "EMAIL", "EMAIL;TYPE=work:simon.perreault@viagenie.ca", "simon.perreault@viagenie.ca"),
    ("RFC 6350, 8", "PHONE_NUMBER", 'TEL;VALUE=uri;TYPE="work,voice":tel:+1-418-656-9254;ext=102', "+1-418-656-9254"),
    ("RFC 5322, A.1.1", "EMAIL", "From: John Doe <jdoe@machine.example>", "jdoe@machine.example"),
]

NEGATIVE = [
    ("RFC 9562, 4", "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("RFC 4648, 10", 'BASE64("foobar") = "Zm9vYmFy", BASE32("foobar") = "MZXW6YTBOI======", BASE16("foobar") = "666F6F626172"'),
    ("RFC 3339, 5.8", "1985-04-12T23:20:50.52Z 1996-12-19T16:39:57-08:00 1937-01-01T12:00:27.87+00:20"),
    ("RFC 5424, 6.5", "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed for lonvick on /dev/pts/8"),
    ("RFC 7946, 1.5", '{"type": "Point", "coordinates": [102.0, 0.5], "bbox": [-10.0, -10.0, 10.0, 10.0]}'),
    ("RFC 8259, 13", '{"Image": {"Width": 800, "Height": 600, "Animated": false, "IDs": [116, 943, 234, 38793]}}'),
    ("RFC 6749, 4.1.1", "GET /authorize?response_type=code&client_id=s6BhdRkqt3&state=xyz HTTP/1.1"),
    ("RFC 9110, 8.8.3", 'ETag: W/"xyzzy"\nLast-Modified: Tue, 15 Nov 1994 12:45:26 GMT\nContent-Length: 3495'),
    ("RFC 3966, 6", "tel:7042;phone-context=example.com"),
    ("RFC 6901, 5", '{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "m~n": 8}'),
]


def add(cases):
    for where, entity, text, value in POSITIVE:
        cases.positive("given", "RFC", where, entity, text, value)
    for where, text in NEGATIVE:
        cases.negative("RFC", where, "none", text)
