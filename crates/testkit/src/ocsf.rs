//! Requirements of OCSF 1.9 for an event of the class API Activity (6003) with the profiles
//! `security_control`, `record_integrity`, `ai_operation` and `trace`: which attributes there are,
//! which of them are required, of which type, and which numbers an enum has.
//!
//! Compared attribute by attribute (requirement, type, enum, constraint) with the schema's repository
//! at 1.9.0-dev of July 2026, the first version that has `record_integrity`.
//!
//! Only the parts that Portcullis writes are described; anything else is a fault.

use serde_json::{Map, Value};

/// Required type of a value.
enum Kind {
    Text,
    Number,
    Flag,
    /// Milliseconds since 1970.
    Time,
    Address,
    /// One of these numbers; each has its caption in the attribute beside it.
    Enum(&'static [(i64, &'static str)], &'static str),
    Object(&'static [Attribute], &'static [&'static str]),
    List(&'static Kind),
    /// Whatever the source has: `unmapped`.
    Anything,
}

/// An attribute: its name, whether it is required, and what it is.
type Attribute = (&'static str, bool, Kind);

use Kind::{Address, Anything, Enum, Flag, List, Number, Object, Text, Time};

const ENTITY: &[&str] = &["name", "uid"];

const POLICY: Kind = Object(
    &[
        ("name", false, Text),
        ("uid", false, Text),
        ("version", false, Text),
        ("group", false, Object(&[("name", false, Text), ("uid", false, Text)], ENTITY)),
    ],
    &["name", "uid", "type"],
);

const USER_TYPES: &[(i64, &str)] =
    &[(0, "Unknown"), (1, "User"), (2, "Admin"), (3, "System"), (4, "Service"), (99, "")];

const USER: Kind = Object(
    &[
        ("name", false, Text),
        ("uid", false, Text),
        ("type", false, Text),
        ("type_id", false, Enum(USER_TYPES, "type")),
    ],
    &["account", "name", "uid"],
);

const ACTOR: Kind = Object(
    &[
        ("user", false, USER),
        ("app_uid", false, Text),
        ("session", false, Object(&[("uid", false, Text), ("issuer", false, Text)], &[])),
    ],
    &["process", "user", "iam_role", "invoked_by", "session", "app_name", "app_uid"],
);

const API: Kind = Object(
    &[
        ("operation", true, Text),
        ("service", false, Object(&[("name", false, Text), ("uid", false, Text)], ENTITY)),
        ("request", false, Object(&[("uid", true, Text)], &[])),
        ("response", false, Object(&[("code", false, Number), ("error", false, Text)], &[])),
    ],
    &[],
);

const PRODUCT: Kind = Object(
    &[("name", false, Text), ("vendor_name", false, Text), ("version", false, Text)],
    ENTITY,
);

const METADATA: Kind = Object(
    &[
        ("version", true, Text),
        ("product", true, PRODUCT),
        ("profiles", false, List(&Text)),
        ("uid", false, Text),
        ("original_event_uid", false, Text),
        ("event_code", false, Text),
        ("sequence", false, Number),
        ("tenant_uid", false, Text),
        ("log_name", false, Text),
        ("logged_time", false, Time),
        ("original_time", false, Text),
    ],
    &[],
);

const FINGERPRINT: Kind = Object(
    &[
        ("algorithm_id", true, Enum(&[(3, "SHA-256")], "algorithm")),
        ("algorithm", false, Text),
        ("encoding_id", false, Enum(&[(1, "Hex"), (2, "Base64")], "encoding")),
        ("encoding", false, Text),
        ("serialization_id", false, Enum(&[(1, "Flat"), (2, "JCS")], "serialization")),
        ("serialization", false, Text),
        ("value", true, Text),
    ],
    &[],
);

const ATTESTATION: Kind = Object(
    &[("chain_uid", false, Text), ("fingerprint", false, FINGERPRINT)],
    &["fingerprint", "signatures"],
);

const RESOURCE: Kind = Object(
    &[
        ("name", false, Text),
        ("uid", false, Text),
        ("type", false, Text),
        ("version", false, Text),
        ("role", false, Text),
        (
            "role_id",
            false,
            Enum(&[(1, "Target"), (2, "Actor"), (3, "Affected"), (4, "Related")], "role"),
        ),
    ],
    ENTITY,
);

const ACTIVITIES: &[(i64, &str)] =
    &[(0, "Unknown"), (1, "Create"), (2, "Read"), (3, "Update"), (4, "Delete"), (99, "")];
const SEVERITIES: &[(i64, &str)] = &[
    (0, "Unknown"),
    (1, "Informational"),
    (2, "Low"),
    (3, "Medium"),
    (4, "High"),
    (5, "Critical"),
    (6, "Fatal"),
    (99, ""),
];
const STATUSES: &[(i64, &str)] = &[(0, "Unknown"), (1, "Success"), (2, "Failure"), (99, "")];
const ACTIONS: &[(i64, &str)] =
    &[(0, "Unknown"), (1, "Allowed"), (2, "Denied"), (3, "Observed"), (4, "Modified"), (99, "")];
const DISPOSITIONS: &[(i64, &str)] = &[
    (1, "Allowed"),
    (2, "Blocked"),
    (11, "Corrected"),
    (17, "Logged"),
    (24, "Access Revoked"),
    (25, "Rejected"),
    (26, "Unauthorized"),
    (27, "Error"),
];

const AUTHORIZATION: Kind = Object(&[("decision", false, Text), ("policy", false, POLICY)], &[]);

const EVENT: Kind = Object(
    &[
        ("category_uid", true, Enum(&[(6, "Application Activity")], "category_name")),
        ("category_name", false, Text),
        ("class_uid", true, Enum(&[(6003, "API Activity")], "class_name")),
        ("class_name", false, Text),
        ("activity_id", true, Enum(ACTIVITIES, "activity_name")),
        ("activity_name", false, Text),
        ("type_uid", true, Number),
        ("type_name", false, Text),
        ("severity_id", true, Enum(SEVERITIES, "severity")),
        ("severity", false, Text),
        ("status_id", false, Enum(STATUSES, "status")),
        ("status", false, Text),
        ("status_code", false, Text),
        ("status_detail", false, Text),
        ("time", true, Time),
        ("count", false, Number),
        ("metadata", true, METADATA),
        ("actor", true, ACTOR),
        ("api", true, API),
        (
            "src_endpoint",
            true,
            Object(&[("ip", false, Address), ("name", false, Text)], &["ip", "name", "uid"]),
        ),
        ("resources", false, List(&RESOURCE)),
        ("http_request", false, Object(&[("uid", false, Text), ("user_agent", false, Text)], &[])),
        ("http_response", false, Object(&[("code", true, Number)], &[])),
        ("action_id", false, Enum(ACTIONS, "action")),
        ("action", false, Text),
        ("disposition_id", false, Enum(DISPOSITIONS, "disposition")),
        ("disposition", false, Text),
        ("is_alert", false, Flag),
        ("policy", false, POLICY),
        ("authorizations", false, List(&AUTHORIZATION)),
        ("attestation_list", false, List(&ATTESTATION)),
        ("ai_agent", false, Object(&[("name", false, Text), ("uid", false, Text)], ENTITY)),
        ("trace", false, Object(&[("uid", true, Text)], &[])),
        ("unmapped", false, Anything),
    ],
    &[],
);

/// Faults of an event of the class; none if it conforms.
pub fn ocsf_faults(event: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check("", event, &EVENT, &mut faults);
    let number = |name: &str| event.get(name).and_then(Value::as_i64).unwrap_or_default();
    if number("type_uid") != number("class_uid") * 100 + number("activity_id") {
        faults.push("type_uid is not class_uid * 100 + activity_id".to_owned());
    }
    if event.get("count").is_some() && number("count") < 2 {
        faults.push("count is of aggregates only, which are two or more".to_owned());
    }
    let profiles = event.pointer("/metadata/profiles").and_then(Value::as_array);
    let profiles: Vec<&str> = profiles.into_iter().flatten().filter_map(Value::as_str).collect();
    for (attribute, profile) in [
        ("action_id", "security_control"),
        ("attestation_list", "record_integrity"),
        ("ai_agent", "ai_operation"),
        ("trace", "trace"),
    ] {
        if event.get(attribute).is_some() != profiles.contains(&profile) {
            faults.push(format!("{attribute} and the profile {profile} go together"));
        }
    }
    faults
}

fn check(path: &str, value: &Value, kind: &Kind, faults: &mut Vec<String>) {
    let fits = match kind {
        Text => value.as_str().is_some_and(|text| !text.is_empty()),
        Number => value.is_i64() || value.is_u64(),
        Flag => value.is_boolean(),
        Time => value
            .as_i64()
            .is_some_and(|millis| (946_684_800_000..4_102_444_800_000).contains(&millis)),
        Address => value.as_str().is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok()),
        Enum(known, _) => {
            value.as_i64().is_some_and(|number| known.iter().any(|(id, _)| *id == number))
        }
        Object(attributes, one_of) => {
            if let Value::Object(members) = value {
                return check_object(path, members, attributes, one_of, faults);
            }
            false
        }
        List(each) => {
            if let Value::Array(items) = value {
                return items.iter().for_each(|item| check(path, item, each, faults));
            }
            false
        }
        Anything => value.is_object(),
    };
    if !fits {
        faults.push(format!("{path} is {value}"));
    }
}

fn check_object(
    path: &str,
    members: &Map<String, Value>,
    attributes: &[Attribute],
    one_of: &[&str],
    faults: &mut Vec<String>,
) {
    for name in members.keys() {
        if !attributes.iter().any(|(known, ..)| known == name) {
            faults.push(format!("{path}/{name} is not in the class"));
        }
    }
    for (name, required, kind) in attributes {
        match members.get(*name) {
            Some(value) => {
                check(&format!("{path}/{name}"), value, kind, faults);
                if let Enum(known, sibling) = kind {
                    let caption = members.get(*sibling).and_then(Value::as_str).unwrap_or_default();
                    let right = known.iter().any(|(id, name)| {
                        value.as_i64() == Some(*id) && (name.is_empty() || *name == caption)
                    });
                    if !right || caption.is_empty() {
                        faults.push(format!("{path}/{sibling} is not the caption of {value}"));
                    }
                }
            }
            None if *required => faults.push(format!("{path}/{name} is missing")),
            None => {}
        }
    }
    if !one_of.is_empty() && !one_of.iter().any(|name| members.contains_key(*name)) {
        faults.push(format!("{path} has none of {}", one_of.join(", ")));
    }
}
